"""A server inside the test's own process: a thread, a free loopback port, and a hand on its engine.

For tests and fixtures. The engine lives in the server's event loop; `call` runs a coroutine there and waits for it, so a
test never touches the engine from its own thread.
"""

import asyncio
import socket
import threading
import uuid
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import replace
from types import TracebackType
from typing import Any, Self, TypeVar

from reattach_mockserver.admin.app import AdminApplication
from reattach_mockserver.app import Application, create_app
from reattach_mockserver.engine.engine import Engine
from reattach_mockserver.event import Stored
from reattach_mockserver.host import Admin, bind, host, url_of
from reattach_mockserver.library import Library
from reattach_mockserver.logs.base import Counts, RunRecord
from reattach_mockserver.settings import Playable, Settings

T = TypeVar("T")

_PATIENCE = 20.0  # seconds; only a broken server takes longer


class LiveServer:
    """A running server. Use as a context manager, or `start` and `stop`.

    Args:
        settings: The server's; default: every ready scenario, `hello` for what names none.
        scripts: Added to the settings' scripts; the last is the default.
        admin: Serve the admin interface, too, on a port of its own; a text is the token that it asks for.
    """

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        scripts: Mapping[str, Playable] | None = None,
        admin: bool | str = False,
    ) -> None:
        settings = settings or Settings(scripts=Library(), default="hello")
        if scripts:
            mine = settings.scripts
            library = mine.including(scripts) if isinstance(mine, Library) else Library({**mine, **scripts})
            settings = replace(settings, scripts=library, default=list(scripts)[-1])
        self.app: Application = create_app(settings)
        self.url = ""
        self.admin_url = ""
        self._with_admin = admin
        self._admin: Admin | None = None
        self._listener: socket.socket | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._ready = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="reattach live server", daemon=True)

    @property
    def engine(self) -> Engine:
        """The engine; to be touched through `call` only."""
        return self.app.engine

    def start(self) -> Self:
        """Serve; return when connections are taken."""
        self._listener = bind("127.0.0.1", 0)
        self.url = url_of(self._listener)
        if self._with_admin:
            application = AdminApplication(self.app, self._with_admin if isinstance(self._with_admin, str) else None)
            self._admin = Admin(application, bind("127.0.0.1", 0))
            self.admin_url = url_of(self._admin.listener)
        self._thread.start()
        if not self._ready.wait(_PATIENCE):
            raise TimeoutError("the server did not start")
        if self._failure is not None:
            raise self._failure
        return self

    def stop(self) -> None:
        """Drain and end; safe twice."""
        if self._loop is not None and self._stop is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
        if self._thread.ident is not None:
            self._thread.join(_PATIENCE)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as error:
            self._failure = error
        finally:
            self._ready.set()

    async def _serve(self) -> None:
        assert self._listener is not None
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        await host(self.app, self._listener, self._stop, self._ready.set, admin=self._admin)

    def call(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run a coroutine in the server's loop and return what it returns."""
        assert self._loop is not None, "the server was not started"
        return asyncio.run_coroutine_threadsafe(work(), self._loop).result(_PATIENCE)

    def events_url(self, run_id: str) -> str:
        """Return where the run's events are read."""
        return f"{self.url}/v1/runs/{run_id}/events"

    def log(self, run_id: str) -> tuple[bytes, ...]:
        """Return the JSON text of every event of the run, those too that are no longer handed out."""

        async def read() -> tuple[bytes, ...]:
            bodies: list[bytes] = []
            while page := await self.engine.log.read(run_id, len(bodies), 1_000, 1 << 24):
                bodies += [event.body for event in page]
            return tuple(bodies)

        return self.call(read)

    @property
    def counts(self) -> Counts:
        """How much work the log knows of."""

        async def count() -> Counts:
            return await self.engine.log.counts()

        return self.call(count)

    def readers(self, run_id: str) -> int:
        """Return how many read the run at the moment."""

        async def count() -> int:
            return self.engine.hub.readers(run_id)

        return self.call(count)

    def expire(self, run_id: str, first: int) -> RunRecord:
        """Let go of the run's events before `first`."""
        return self.call(lambda: self.engine.expire(run_id, first))

    def new_epoch(self, run_id: str, keep: int | None = None) -> RunRecord:
        """Replace the run's log; `keep` loses the events after that sequence."""
        return self.call(lambda: self.engine.new_epoch(run_id, keep))

    def runs(self) -> tuple[RunRecord, ...]:
        """Return every run, oldest first."""

        async def read() -> tuple[RunRecord, ...]:
            found: list[RunRecord] = []
            while page := await self.engine.log.runs(found[-1].number if found else 0, 1_000):
                found += page
            return tuple(found)

        return self.call(read)

    def publish(self, run_id: str, kind: str, data: Mapping[str, Any], text: str | None = None) -> Stored:
        """Append an event to the run, beside what it plays.

        Raises:
            KeyError: There is no such run.
            RunSettled: Its log grows no more.
            EventTooLarge: The event is above the limit.
        """

        async def append() -> Stored:
            run = await self.engine.log.run(run_id)
            if run is None:
                raise KeyError(run_id)
            _, stored = await self.engine.publish(run, uuid.uuid4().hex, kind, dict(data), text=text)
            return stored

        return self.call(append)

    def advance(self, ms: int) -> None:
        """Move the server's clock forward: waits of scenarios, expiry, retention and overload come closer by so much."""

        async def move() -> None:
            self.engine.advance(ms)

        self.call(move)

    def restart(self) -> None:
        """Do what the death and rebirth of the process would, on the same port and log."""
        self.call(self.engine.restart)
