"""An origin on loopback for one test: raw sockets and threads, so that every byte is the test's own."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from collections.abc import Callable
from types import TracebackType

Answer = Callable[[socket.socket], None]

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
UNTIL_CLOSE = HEAD + b"\r\n"
LAST_CHUNK = b"0\r\n\r\n"


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def event(number: int, text: bytes = b"x") -> bytes:
    return b"id: %d\ndata: %b\n\n" % (number, text)


def sending(*parts: bytes) -> Answer:
    """Send the parts and close."""

    def answer(connection: socket.socket) -> None:
        for part in parts:
            connection.sendall(part)

    return answer


def until_gone(*parts: bytes) -> Answer:
    """Send the parts and stay until the client is gone."""

    def answer(connection: socket.socket) -> None:
        connection.sendall(b"".join(parts))
        gone(connection)

    return answer


def gone(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while connection.recv(65536):
            pass


class Origin:
    """Serves each connection in a thread: reads one request whole, then lets `answer` speak, then closes.

    `requests` has the raw requests. With `answer` None nothing is read and nothing said.
    """

    def __init__(self, answer: Answer | None, *, tls: ssl.SSLContext | None = None) -> None:
        self._answer = answer
        self._tls = tls
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port: int = self._listener.getsockname()[1]
        self.url = f"{'http' if tls is None else 'https'}://127.0.0.1:{self.port}"
        self.requests: list[bytes] = []
        self.connections = 0
        self._open: set[socket.socket] = set()
        self._threads = [threading.Thread(target=self._accept, daemon=True)]

    def __enter__(self) -> Origin:
        self._threads[0].start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for connection in list(self._open):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(10)
            assert not thread.is_alive(), "a connection's thread did not end"

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            self._open.add(connection)
            thread = threading.Thread(target=self._serve, args=(connection,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        plain = connection
        try:
            if self._answer is None:
                gone(connection)
                return
            if self._tls is not None:
                connection = self._tls.wrap_socket(connection, server_side=True)
            self.requests.append(_request(connection))
            self._answer(connection)
        except OSError:
            pass  # the client went away, as many tests want it to
        finally:
            self._open.discard(plain)
            connection.close()
            plain.close()


def _request(connection: socket.socket) -> bytes:
    data = b""
    while b"\r\n\r\n" not in data:
        data += _more(connection)
    head, _, body = data.partition(b"\r\n\r\n")
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            while len(body) < int(line.split(b":")[1]):
                body += _more(connection)
    return head + b"\r\n\r\n" + body


def _more(connection: socket.socket) -> bytes:
    data = connection.recv(65536)
    if not data:
        raise OSError("the client is gone")
    return data
