"""Bytes of the native protocol on a WebSocket for tests: what a good server sends, as RFC 6455 frames it.

Written from the protocol and the RFC, not from the client, and without any state; the texts are those of `frames`. A server's
frames carry no mask.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from reattach.testing import frames

PING = b"\x89\x00"
"""A ping without a payload: the heartbeat."""


def piece(opcode: int, payload: bytes, *, fin: bool = True) -> bytes:
    """Return one frame of a server; opcodes: 0 a continuation, 1 text, 2 binary, 8 close, 9 ping, 10 pong."""
    size = len(payload)
    if size < 126:
        head = bytes([size])
    elif size < 1 << 16:
        head = b"\x7e" + size.to_bytes(2)
    else:
        head = b"\x7f" + size.to_bytes(8)
    return bytes([opcode | (0x80 if fin else 0)]) + head + payload


def text(message: str, *, cuts: Sequence[int] = ()) -> bytes:
    """Return a text message; `cuts` are the bytes before which it is cut into fragments, in order."""
    whole = message.encode()
    edges = [0, *cuts, len(whole)]
    count = len(edges) - 1
    return b"".join(
        piece(1 if number == 0 else 0, whole[edges[number] : edges[number + 1]], fin=number == count - 1)
        for number in range(count)
    )


def close(code: int, reason: str = "") -> bytes:
    """Return a close."""
    return piece(8, code.to_bytes(2) + reason.encode())


def message(kind: str, **members: Any) -> bytes:
    """Return a message of a type."""
    return text(frames.compact({"type": kind} | members))


def event(sequence: int, *, epoch: str = frames.EPOCH, **rest: Any) -> bytes:
    """Return the message of an event; see `frames.event_json`."""
    return wrapped(frames.event_json(sequence, epoch=epoch, **rest), f"{epoch}.{sequence}")


def wrapped(event_json: str, cursor: str) -> bytes:
    """Return the message of an event's JSON text."""
    return text(f'{{"type":"event","cursor":"{cursor}","event":{event_json}}}')


def end(sequence: int, *, result: Any = None, **rest: Any) -> bytes:
    """Return the message of the settling event of a completed run."""
    return event(sequence, type="run.completed", data={"result": result}, **rest)


def resume_ok(after: int = 0, *, run_id: str = frames.RUN, epoch: str = frames.EPOCH, **other: Any) -> bytes:
    """Return the answer to a resume after a sequence.

    Args:
        after: The sequence.
        run_id: The run.
        epoch: The log's.
        other: Members instead of those made up here, such as `cursor_id`.
    """
    told = {
        "protocol": 1,
        "run_id": run_id,
        "epoch": epoch,
        "cursor": f"{epoch}.{after}",
        "cursor_id": frames.event_id(after, epoch),
        "last_sequence": after,
        "status": "running",
        "heartbeat_ms": 15_000,
    }
    return message("resume_ok", **(told | other))


def rejected(status: int, code: str, *, kind: str = "resume_rejected", **other: Any) -> bytes:
    """Return a refusal as a message."""
    problem = frames.problem_json(status, code, **other)
    return message(kind, **{name: value for name, value in problem.items() if name != "type"})


def closing(reason: str, *, retry_ms: int = 1000) -> bytes:
    """Return the reason of a planned close, and the close."""
    return message("closing", reason=reason, retry_ms=retry_ms) + close(1001)
