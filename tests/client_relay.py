"""A relay before a server that can let one create go wrong, and count creates: what leaves a client is seen here, and nowhere else.

It works on bytes and on nothing else of the protocol: "POST /v1/runs HTTP" begins a create.
"""

import contextlib
import socket
import threading
from collections.abc import Callable
from urllib.parse import urlsplit

CREATE = b"POST /v1/runs HTTP"


class Relay:
    """Relays to `url`; `lose` makes the next create go wrong.

    Attributes:
        creates: How many creates left a client.
    """

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._to = (parts.hostname, parts.port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.creates = 0
        self._lost: tuple[str, Callable[[], None]] | None = None
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def lose(self, how: str, then: Callable[[], None] = lambda: None) -> None:
        """Swallow the next create, or with "answered" only its answer; `then` is called, and the connection breaks."""
        self._lost = (how, then)

    def close(self) -> None:
        self._listener.close()
        for each in self._open:
            with contextlib.suppress(OSError):
                each.close()

    def __enter__(self) -> "Relay":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(self._to)
                self._open += [client, server]
                doomed: list[Callable[[], None]] = []
                threading.Thread(target=self._up, args=(client, server, doomed), daemon=True).start()
                threading.Thread(target=self._down, args=(server, client, doomed), daemon=True).start()

    def _up(self, client: socket.socket, server: socket.socket, doomed: list[Callable[[], None]]) -> None:
        with contextlib.suppress(OSError):
            while data := client.recv(65_536):
                if CREATE in data:
                    self.creates += 1
                    lost, self._lost = self._lost, None
                    if lost is not None:
                        how, then = lost
                        if how == "swallowed":
                            then()
                            break
                        doomed.append(then)
                server.sendall(data)
        for each in (client, server) if not doomed else ():
            _cut(each)

    def _down(self, server: socket.socket, client: socket.socket, doomed: list[Callable[[], None]]) -> None:
        with contextlib.suppress(OSError):
            while data := server.recv(65_536):
                if doomed:
                    doomed.pop()()
                    break
                client.sendall(data)
        for each in (client, server):
            _cut(each)


def _cut(each: socket.socket) -> None:
    with contextlib.suppress(OSError):
        each.shutdown(socket.SHUT_RDWR)
