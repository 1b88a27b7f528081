"""The stage of the client's tests: one test, both faces.

A test is a coroutine. `Async` hands out the asynchronous face as it is, in the test's own loop; `Blocking` hands out the blocking
face behind the same awaited names, calling it in the test's own thread. What runs beside the test is a task there, a thread here.
"""

import asyncio
import concurrent.futures
import inspect
import pathlib
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager, closing
from typing import Any

import anyio

import reattach
from mockserver_stage import OPEN
from reattach.observe import Fact
from reattach.testing import Beat, InlineWriter, MemoryServer, Seams, VirtualClock
from reattach.testing.memory_server import URL
from reattach_mockserver.scenarios.script import Action, Ask, End, RawEvent, Say, Script, Status, Tool, Wait

PATIENCE = 20.0  # seconds; only a broken client takes longer

WORDS = Script(
    name="words",
    clock="virtual",
    steps=(
        Say(text="one two three four"),
        Tool(tool="charge", id="call_1", operation_id="op_1", arguments={"cents": 999}, result={"cents": 999}),
        Status(text="checking"),
        Say(text="done", split="whole"),
        End(result={"ok": True}),
    ),
)
"""A run that is over at once, with all kinds of events."""
SLOW = Script(name="slow", steps=(Say(text="one two three"), Wait(ms=3_600_000)))
"""Text, then an hour of real time."""
FAILED = Script(
    name="failed", clock="virtual", steps=(Say(text="oh"), RawEvent(type="note", data={}), End(status="failed"))
)
ASKS = Script(
    name="asks",
    clock="virtual",
    steps=(
        Say(text="may I? "),
        Ask(
            actions=(
                Action(id="act_1", tool="restart", arguments={"service": "shop"}, thread="ops"),
                Action(id="act_2", tool="clock", kind="client_tool"),
            ),
            approved=(Say(text="restarting"), End(result="restarted")),
            rejected=(End(status="cancelled"),),
        ),
    ),
)
"""A run that pauses for an approval of a sub-agent and a tool of the client's."""
SCRIPTS = {"words": WORDS, "slow": SLOW, "open": OPEN, "failed": FAILED, "asks": ASKS}


class Facts:
    """An observer that remembers."""

    def __init__(self) -> None:
        self.told: list[Fact] = []

    def __call__(self, fact: Fact) -> None:
        self.told.append(fact)

    def names(self) -> list[str]:
        return [fact.name for fact in self.told]

    def count(self, name: str) -> int:
        return Counter(self.names())[name]


class Async:
    """The asynchronous face."""

    name = "async"

    @asynccontextmanager
    async def client(self, *args: Any, **rest: Any):
        async with reattach.AsyncClient(*args, **rest) as client:
            yield client

    def beside(self, work: Callable[[], Awaitable[Any]]) -> "Beside":
        return Beside(asyncio.ensure_future(work()))

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE):
            while not condition():  # noqa: ASYNC110 (what is waited for sets no event of this loop)
                await asyncio.sleep(0.001)


class Trio(Async):
    """The asynchronous face under trio; what runs beside the test is a task of the loop's own."""

    name = "trio"

    def beside(self, work: Callable[[], Awaitable[Any]]) -> "Beside":
        import trio

        future: concurrent.futures.Future[Any] = concurrent.futures.Future()

        async def run() -> None:
            try:
                future.set_result(await work())
            except Exception as error:
                future.set_exception(error)

        trio.lowlevel.spawn_system_task(run)
        return BesideTrio(future)

    async def until(self, condition: Callable[[], bool]) -> None:
        with anyio.fail_after(PATIENCE):
            while not condition():  # noqa: ASYNC110 (what is waited for sets no event of this loop)
                await anyio.sleep(0.001)


class Blocking:
    """The blocking face, behind awaited names."""

    name = "blocking"

    @asynccontextmanager
    async def client(self, *args: Any, **rest: Any):
        with reattach.Client(*args, **rest) as client:
            yield Awaited(client)

    def beside(self, work: Callable[[], Awaitable[Any]]) -> "Beside":
        future: concurrent.futures.Future[Any] = concurrent.futures.Future()

        def run() -> None:
            try:
                future.set_result(asyncio.run(work()))
            except BaseException as error:
                future.set_exception(error)

        threading.Thread(target=run, daemon=True).start()
        return Beside(future)

    async def until(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < deadline, "it did not come true"
            time.sleep(0.001)  # noqa: ASYNC251 (this loop has nothing else to do)


class Beside:
    """What runs beside the test."""

    def __init__(self, future: Any) -> None:
        self._future = future

    @property
    def done(self) -> bool:
        return self._future.done()

    async def result(self) -> Any:
        if isinstance(self._future, concurrent.futures.Future):
            return self._future.result(PATIENCE)
        return await asyncio.wait_for(self._future, PATIENCE)

    async def error(self) -> BaseException:
        try:
            value = await self.result()
        except Exception as error:
            return error
        raise AssertionError(f"it ended well, with {value!r}")


class BesideTrio(Beside):
    """What runs beside the test in trio's loop, which must not be blocked."""

    async def result(self) -> Any:
        with anyio.fail_after(PATIENCE):
            while not self._future.done():  # noqa: ASYNC110 (a future of no loop)
                await anyio.sleep(0.001)
        return self._future.result()


class Awaited:
    """A blocking object behind awaited names: what it returns is wrapped likewise."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if not inspect.ismethod(found):
            return found
        if name in ("attach", "transaction", "views"):
            return lambda *args, **rest: wrapped(found(*map(unwrapped, args), **rest))

        async def call(*args: Any, **rest: Any) -> Any:
            return wrapped(found(*map(unwrapped, args), **rest))

        return call

    def __aiter__(self) -> "Awaited":
        iter(self._inner)
        return self

    async def __anext__(self) -> Any:
        try:
            return next(self._inner)
        except StopIteration:
            raise StopAsyncIteration from None

    async def aclose(self) -> None:
        self._inner.close()

    async def __aenter__(self) -> "Awaited":
        return wrapped(self._inner.__enter__())

    async def __aexit__(self, *error: Any) -> None:
        self._inner.__exit__(*error)


def wrapped(value: Any) -> Any:
    if isinstance(value, list) and value and isinstance(value[0], reattach.Run):
        return [Awaited(each) for each in value]
    if (
        isinstance(value, reattach.Run | reattach.Transaction)
        or hasattr(value, "__enter__")
        or hasattr(value, "__next__")
    ):
        return Awaited(value)
    return value


def unwrapped(value: Any) -> Any:
    return value._inner if isinstance(value, Awaited) else value


FACES = (Blocking(), Async())
TRIO = Trio()


def in_memory(
    beats: int = 3, *, inline: bool = False, jumps: bool = True, **plans: Any
) -> tuple[MemoryServer, dict[str, Any]]:
    """A model server of `beats` events and an end, all at once, on a clock that jumps; and what its client is made with.

    With `inline` each commit has settled before anything else happens, so that time does not run on meanwhile, however busy the
    machine, and what is asked after is known exactly. Without `jumps` time stands, so that only what needs no time happens.
    """
    clock = VirtualClock(autojump=jumps)
    story = [Beat(data={"message_id": "m1", "text": f"word {number} "}) for number in range(1, beats + 1)]
    server = MemoryServer(clock, beats=plans.pop("story", [*story, Beat(do="end", data="ok")]), **plans)
    seams = Seams(clock=lambda: clock, writer=InlineWriter) if inline else Seams(clock=lambda: clock)
    return server, {"url": URL, "transport": server.wire, "_seams": seams}


def held(server: MemoryServer, args: dict[str, Any]) -> None:
    """Let time stand until somebody attaches: in the blocking face it would go on between a start and a loop."""
    clock = args["_seams"].clock()

    def attached(_: object) -> None:
        server.attached = None
        clock.release()

    server.attached = attached
    clock.hold()


def sent_long_ago(journal: pathlib.Path) -> None:
    """Make every intent of a SQLite journal older than any server remembers a key."""
    with closing(sqlite3.connect(journal)) as connection, connection:
        connection.execute("UPDATE reattach_runs SET sent_at = '2025-01-01T00:00:00.000000Z'")


async def collected(
    run: Any, limit: int | None = None, into: list[reattach.Event] | None = None
) -> list[reattach.Event]:
    """Return the events of a loop, left after `limit`; put `into` a list, they are there also if it raises."""
    found: list[reattach.Event] = [] if into is None else into
    async for event in run:
        found.append(event)
        if limit is not None and len(found) >= limit:
            break
    return found


def sequences(events: list[reattach.Event]) -> list[int | None]:
    return [event.sequence for event in events]
