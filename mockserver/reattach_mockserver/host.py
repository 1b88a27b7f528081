"""Runs an application on a port with uvicorn, and ends it in order: refuse, close, stop.

Shared by the command and by the server inside a test's process. Knows no argument and prints nothing.
"""

import asyncio
import socket
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass

import uvicorn
from starlette.types import ASGIApp

from reattach_mockserver.app import Application
from reattach_mockserver.guard import Guard
from reattach_mockserver.pinging import PingingProtocol

_DRAIN_SECONDS = 2.0  # how long open streams are given to take their last block


def bind(host: str, port: int) -> socket.socket:
    """Return a listening socket; port 0 takes a free one.

    Raises:
        OSError: The address cannot be had.
    """
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(2048)
        listener.setblocking(False)
    except OSError:
        listener.close()
        raise
    return listener


def url_of(listener: socket.socket) -> str:
    """Return the address under which the socket is reached."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


@dataclass(frozen=True, slots=True)
class Admin:
    """An application that is served beside the server, and the socket it listens on."""

    app: ASGIApp
    listener: socket.socket


class _Server(uvicorn.Server):
    """Leaves signals to whoever runs it, and says when it accepts."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._ready()


async def host(
    app: Application,
    listener: socket.socket,
    stop: asyncio.Event,
    ready: Callable[[], None],
    *,
    admin: Admin | None = None,
) -> None:
    """Serve on the socket until `stop` is set, then drain: new work is refused, streams are closed, players end.

    `ready` is called once connections are taken. `admin` is served beside it, to the end.

    Raises:
        UnknownScript: The log holds an unfinished run of a script that the application was not given.
    """
    await app.engine.start()
    server = _Server(_config(app, app), ready)
    # Its socket listens already: what comes before it serves waits there.
    beside = None if admin is None else _Server(_config(admin.app, app), lambda: None)
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    helping = [] if beside is None or admin is None else [asyncio.create_task(beside.serve(sockets=[admin.listener]))]
    stopping = asyncio.create_task(stop.wait())
    try:
        await asyncio.wait([serving, stopping, *helping], return_when=asyncio.FIRST_COMPLETED)
        app.engine.drain()
        await app.engine.hub.empty(_DRAIN_SECONDS)
    finally:
        stopping.cancel()
        server.should_exit = True
        if beside is not None:
            beside.should_exit = True
        try:
            await asyncio.gather(serving, *helping)
        finally:
            await app.engine.stop()


def _config(served: ASGIApp, app: Application) -> uvicorn.Config:
    settings = app.engine.settings
    return uvicorn.Config(
        served,
        loop="asyncio",
        http=type("_Guard", (Guard,), {"patience": settings.patience}),
        ws=type("_Pinging", (PingingProtocol,), {"patience": settings.patience}),
        ws_max_size=4 * settings.limits.body_bytes,  # above our limit, so that the refusal is ours
        ws_ping_interval=None,  # the face pings, at the pace of the run
        ws_per_message_deflate=False,
        lifespan="off",
        log_config=None,
        log_level="critical",  # a stream that is cut on purpose is not an error of the application
        access_log=False,
        server_header=False,
        date_header=not settings.deterministic,
        proxy_headers=False,
        timeout_keep_alive=75,  # seconds; above what clients keep idle connections for
        timeout_graceful_shutdown=1,
    )
