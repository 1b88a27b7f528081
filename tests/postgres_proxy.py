"""A proxy that knows where PostgreSQL's messages begin, and does something before it passes one on.

Messages of all connections and of both directions are counted together, from `arm` on; before the n-th one `act` is called, once.
What it answers is what happens to that message's connection: "cut" (both ends are reset, the message is lost), "mute" (it stays
open and nothing passes any more), "pass".
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Callable
from typing import Literal

Fate = Literal["cut", "mute", "pass"]


class Proxy:
    """Listens on a free loopback port for as long as its context lasts.

    Args:
        port: The server's.
    """

    def __init__(self, port: int) -> None:
        self._target = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._refusing = False
        self._at: int | None = None
        self._act: Callable[[], Fate] = lambda: "cut"
        self.count = 0
        """Messages since `arm`."""
        self.acted = threading.Event()

    def arm(self, at: int | None, act: Callable[[], Fate] | Fate = "cut") -> None:
        """Count from here; before message `at` (from 1; None: never) do something."""
        with self._lock:
            self.count = 0
            self._at = at
            self._act = act if callable(act) else lambda: act
            self.acted.clear()

    def refuse(self, refusing: bool) -> None:
        """End all connections and take no new one, or take them again."""
        with self._lock:
            self._refusing = refusing
            left = list(self._open) if refusing else []
        for each in left:
            _end(each)

    def __enter__(self) -> Proxy:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        _end(self._listener)
        with self._lock:
            left = list(self._open)
        for each in left:
            _end(each)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                if self._refusing:
                    raise ConnectionRefusedError
                server = socket.create_connection(("127.0.0.1", self._target))
            except OSError:
                client.close()
                continue
            for each in (client, server):  # before either end is read, and may be closed for it
                each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            muted = threading.Event()
            with self._lock:
                self._open |= {client, server}
            for source, sink, greets in ((client, server, True), (server, client, False)):
                threading.Thread(target=self._carry, args=(source, sink, greets, muted), daemon=True).start()

    def _carry(self, source: socket.socket, sink: socket.socket, greets: bool, muted: threading.Event) -> None:
        with contextlib.suppress(OSError):
            while message := _message(source, greets):
                greets = False
                fate = self._fate()
                if fate == "cut":
                    _end(source, reset=True)
                    _end(sink, reset=True)
                    return
                if fate == "mute":
                    muted.set()
                if not muted.is_set():
                    sink.sendall(message)
        if not muted.is_set():
            _end(source)
            _end(sink)

    def _fate(self) -> Fate:
        with self._lock:
            self.count += 1
            due = self.count == self._at
        if not due:
            return "pass"
        fate = self._act()
        self.acted.set()
        return fate


def _message(source: socket.socket, greets: bool) -> bytes:
    """Return the next message, the very first of a client having no letter; empty at the end."""
    head = _exactly(source, 4 if greets else 5)
    if not head:
        return b""
    return head + _exactly(source, struct.unpack(">I", head[-4:])[0] - 4)


def _exactly(source: socket.socket, size: int) -> bytes:
    found = bytearray()
    while len(found) < size:
        piece = source.recv(size - len(found))
        if not piece:
            return b""
        found += piece
    return bytes(found)


def _end(end: socket.socket, *, reset: bool = False) -> None:
    with contextlib.suppress(OSError):
        if reset:
            end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        # Also wakes the thread that reads it, which keeps it open.
        end.shutdown(socket.SHUT_RD if reset else socket.SHUT_RDWR)
    end.close()
