"""A client of raw bytes, that says what no library would: broken HTTP, half requests, frames of its own making.

Everything waits with a limit; nothing here knows the server.
"""

import socket
import struct
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import urlsplit

PATIENCE = 30.0  # seconds; only a broken server takes longer

UPGRADE = (
    b"GET /v1/socket HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: reattach.v1\r\n"
)
"""The head of an upgrade, but for its last empty line."""


@dataclass
class Raw:
    """What came, up to the end or to the moment at which nothing more did."""

    data: bytes
    ended: bool

    @property
    def status(self) -> int:
        """The status of the first answer; 0 if there is none."""
        return int(self.data[9:12]) if self.data.startswith(b"HTTP/1.1 ") else 0

    @property
    def is_problem(self) -> bool:
        return b"application/problem+json" in self.data.partition(b"\r\n\r\n")[0]


class RawClient:
    """One connection. Use as a context manager."""

    def __init__(self, url: str, *, receive_buffer: int | None = None) -> None:
        parts = urlsplit(url)
        self.socket = socket.socket()
        if receive_buffer is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.settimeout(PATIENCE)
        self.socket.connect((parts.hostname, parts.port))

    def __enter__(self) -> "RawClient":
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send(self, data: bytes) -> bool:
        """Send all of it; tell whether the server still takes any."""
        try:
            self.socket.sendall(data)
        except OSError:
            return False
        return True

    def offer(self, data: bytes, seconds: float = 0.2) -> int:
        """Send as much as is taken within that time; return how much that was."""
        self.socket.settimeout(seconds)
        sent = 0
        with suppress(OSError):
            while sent < len(data):
                sent += self.socket.send(data[sent : sent + 65_536])
        self.socket.settimeout(PATIENCE)
        return sent

    def all(self) -> Raw:
        """Return everything up to the end of the connection."""
        data = bytearray()
        try:
            while piece := self.socket.recv(1_048_576):
                data += piece
        except TimeoutError:
            return Raw(bytes(data), ended=False)
        except OSError:
            return Raw(bytes(data), ended=True)  # reset: an end too
        return Raw(bytes(data), ended=True)

    def some(self, seconds: float) -> Raw:
        """Return what is there, and what comes within so many seconds."""
        self.socket.settimeout(seconds)
        try:
            return self.all()
        finally:
            self.socket.settimeout(PATIENCE)

    def until(self, mark: bytes) -> bytes:
        """Return everything up to where `mark` has come."""
        data = b""
        while mark not in data:
            piece = self.socket.recv(65_536)
            if not piece:
                raise ConnectionError(f"ended before {mark!r}: {data[-200:]!r}")
            data += piece
        return data

    def drip(self, data: bytes, until: bytes | None = None) -> Raw:
        """Send a byte at a time, over and over, until the server ends it or says `until`; return what it said."""
        said = b""
        self.socket.settimeout(0.005)
        for number in range(200_000):
            try:
                self.socket.send(data[number % len(data) : number % len(data) + 1])
                piece = self.socket.recv(65_536)
            except TimeoutError:
                continue
            except OSError:
                return Raw(said, ended=True)
            if not piece:
                return Raw(said, ended=True)
            said += piece
            if until is not None and until in said:
                break
        return Raw(said, ended=False)


def frame(opcode: int, payload: bytes = b"", *, fin: bool = True, masked: bool = True, reserved: int = 0) -> bytes:
    """Return a WebSocket frame, of whatever sense."""
    head = bytes([fin << 7 | reserved << 4 | opcode])
    flag = masked << 7
    if len(payload) < 126:
        head += bytes([flag | len(payload)])
    elif len(payload) < 65_536:
        head += bytes([flag | 126]) + struct.pack("!H", len(payload))
    else:
        head += bytes([flag | 127]) + struct.pack("!Q", len(payload))
    # A mask of zeros leaves the payload as it is.
    return head + (bytes(4) if masked else b"") + payload
