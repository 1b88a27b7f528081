"""The two forms in which a `MemoryServer` speaks on a connection: an event stream, or a WebSocket. Bytes only, no behaviour.

A block is what a plan counts and cuts: a block of the stream, or a message of the socket.
"""

from __future__ import annotations

from typing import Any, Protocol

from reattach.testing import frames, socket_frames
from reattach.testing.model_run import Logged


class Form(Protocol):
    """What is said on a connection, as bytes."""

    beat: bytes
    """A sign of life."""
    over: bytes
    """What is said before a clean end."""

    def attached(self, sequence: int, **members: Any) -> bytes:
        """Return the block with which a connection begins."""
        ...

    def event(self, event: Logged) -> bytes:
        """Return the block of an event."""
        ...

    def closing(self, reason: str) -> bytes:
        """Return the block that says why the server closes."""
        ...


class StreamForm:
    """An event stream."""

    beat = frames.HEARTBEAT
    over = b""

    def attached(self, sequence: int, **members: Any) -> bytes:
        """Return `stream.attached`."""
        return frames.attached(sequence, **members)

    def event(self, event: Logged) -> bytes:
        """Return the event's block."""
        return event.block

    def closing(self, reason: str) -> bytes:
        """Return `stream.closing`."""
        return frames.closing(reason)


class SocketForm:
    """A WebSocket."""

    beat = socket_frames.PING
    over = socket_frames.close(1000)

    def attached(self, sequence: int, **members: Any) -> bytes:
        """Return `resume_ok`."""
        return socket_frames.resume_ok(sequence, last_sequence=members.pop("last"), **members)

    def event(self, event: Logged) -> bytes:
        """Return the event's message."""
        return socket_frames.wrapped(event.text, f"{event.epoch}.{event.sequence}")

    def closing(self, reason: str) -> bytes:
        """Return `closing` and its close."""
        return socket_frames.closing(reason)
