"""A real browser, Debian's Chromium by Playwright, and what lies between it and a server: a relay that cuts streams."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import socket
import threading
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

FLAGS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-dev-shm-usage", "--no-first-run", "--no-proxy-server",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    # A page of a public name may then call this machine: who may is our server's decision, and what is tested.
    "--disable-features=LocalNetworkAccessChecks,BlockInsecurePrivateNetworkRequests",
)  # fmt: skip
SHOP = "https://shop.example"
"""An origin of somebody else's; its only page is made up by the stage, and nothing is looked up."""


def chromium() -> str:
    """Return the browser; else skip loudly, or fail where everything is required."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if found := shutil.which(name):
            return found
    missing = "no chromium is installed; nothing was tested with a browser"
    if os.environ.get("REATTACH_REQUIRE_ALL") == "1":
        pytest.fail(missing)
    pytest.skip(missing)


@contextlib.contextmanager
def launched() -> Iterator[Browser]:
    """Run a browser for a while."""
    from playwright.sync_api import sync_playwright  # only the tests of browsers need it

    path = chromium()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        try:
            yield browser
        finally:
            browser.close()


@contextlib.contextmanager
def open_page(browser: Browser, patience: float) -> Iterator[Page]:
    """Open an empty page of the origin `SHOP`, in a profile of its own."""
    page = browser.new_page()
    try:
        page.set_default_timeout(patience * 1000)
        page.route(
            f"{SHOP}/", lambda route: route.fulfill(body="<!doctype html><title>shop</title>", content_type="text/html")
        )
        page.goto(f"{SHOP}/")
        page.unroute_all()  # while requests are intercepted Playwright answers preflights itself, and passes all
        yield page
    finally:
        page.close()


class Asked(NamedTuple):
    """A request for a stream, as it went over the wire; `cursor` is its `Last-Event-ID`."""

    path: str
    cursor: str | None


PATIENCE_S = 30.0  # seconds; what is held longer than that has a fault of its own


class CuttingRelay:
    """Relays to `url`; the n-th stream that is asked for breaks after so many bytes of its answer, later ones never.

    Args:
        url: The server.
        cuts: The bytes.
        held: By the number of a cut, from 0, what it waits for when its bytes have passed: a browser may throw away what has come
            and was not looked at when a connection breaks.

    Attributes:
        asked: The streams that were asked for, in order.
    """

    def __init__(self, url: str, cuts: list[int], held: Mapping[int, threading.Event] | None = None) -> None:
        parts = urlsplit(url)
        self._to = (parts.hostname, parts.port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.asked: list[Asked] = []
        self._cuts = list(enumerate(cuts))
        self._held = dict(held or {})
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> CuttingRelay:
        return self

    def __exit__(self, *error: object) -> None:
        for each in (self._listener, *self._open):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(self._to)
                self._open += [client, server]
                room: list[tuple[int, int]] = []
                threading.Thread(target=self._up, args=(client, server, room), daemon=True).start()
                threading.Thread(target=self._down, args=(server, client, room), daemon=True).start()

    def _up(self, client: socket.socket, server: socket.socket, room: list[tuple[int, int]]) -> None:
        """Pass requests on; `room` gets how much of the answer may pass, if the request is one for a stream."""
        with contextlib.suppress(OSError):
            while data := client.recv(65_536):
                text = data.decode("latin-1")
                found = re.match(r"GET (/v1/runs/[^ ]+/events[^ ]*) ", text)
                if found is not None:
                    cursor = re.search(r"^last-event-id: (.*?)\r$", text, re.IGNORECASE | re.MULTILINE)
                    self.asked.append(Asked(found[1], cursor and cursor[1]))
                    room += [self._cuts.pop(0)] if self._cuts else []
                server.sendall(data)
        _end(server)

    def _down(self, server: socket.socket, client: socket.socket, room: list[tuple[int, int]]) -> None:
        with contextlib.suppress(OSError):
            while data := server.recv(65_536):
                if room:
                    cut, left = room[0]
                    room[0] = cut, left - len(data)
                    client.sendall(data[:left])
                    if len(data) >= left:
                        if cut in self._held:
                            self._held[cut].wait(PATIENCE_S)
                        break
                else:
                    client.sendall(data)
        for each in (client, server):
            _end(each)


def _end(each: socket.socket) -> None:
    with contextlib.suppress(OSError):
        each.shutdown(socket.SHUT_RDWR)
