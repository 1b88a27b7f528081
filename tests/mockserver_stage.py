"""The stage of the server's tests: an application in the test's own loop, and a client that speaks ASGI to it.

No socket and no HTTP library in between, so a test decides when each byte is taken; what only a real connection shows is
tested in tests/system.
"""

import asyncio
import itertools
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from reattach_mockserver.app import Application
from reattach_mockserver.engine.publisher import Publisher, entry
from reattach_mockserver.moment import moment
from reattach_mockserver.scenarios.script import Limits as ScriptLimits
from reattach_mockserver.scenarios.script import RawEvent, Say, Script, Wait

PATIENCE = 10.0  # seconds; only a broken server takes longer


@dataclass
class Answer:
    """A finished answer."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> str:
        assert self.headers["content-type"] == "application/problem+json", self.body
        problem = self.json
        assert problem["status"] == self.status
        return problem["code"]


@dataclass
class Block:
    """One block of an event stream, as the WHATWG's algorithm would see it."""

    id: str | None = None
    name: str | None = None
    data: str | None = None
    retry: str | None = None
    comments: list[str] = field(default_factory=list)

    @property
    def json(self) -> Any:
        return json.loads(self.data or "null")


class Exchange:
    """One call in flight."""

    def __init__(self, app: Application, scope: dict[str, Any], body: bytes) -> None:
        self._sent = [{"type": "http.request", "body": body, "more_body": False}]
        self._left = asyncio.Event()
        self._chunks: asyncio.Queue[bytes | None] = asyncio.Queue(maxsize=1)
        self._started: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._buffer = b""
        self.chunks: list[bytes] = []
        self.complete = False
        self.task = asyncio.create_task(self._run(app, scope))

    async def _run(self, app: Application, scope: dict[str, Any]) -> None:
        try:
            await app(scope, self._receive, self._send)
        finally:
            if not self._started.done():
                self._started.set_exception(ConnectionError("closed without an answer"))
            await self._chunks.put(None)

    async def _receive(self) -> dict[str, Any]:
        if self._sent:
            return self._sent.pop(0)
        await self._left.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Mapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self._started.set_result(dict(message))
            return
        if message.get("body"):
            await self._chunks.put(message["body"])
        if not message.get("more_body", False):
            self.complete = True

    async def started(self) -> tuple[int, dict[str, str]]:
        message = await asyncio.wait_for(asyncio.shield(self._started), PATIENCE)
        return message["status"], {name.decode(): value.decode() for name, value in message["headers"]}

    async def chunk(self) -> bytes | None:
        """Return the next piece of the body; None at its end."""
        piece = await asyncio.wait_for(self._chunks.get(), PATIENCE)
        if piece is not None:
            self.chunks.append(piece)
        return piece

    async def rest(self) -> bytes:
        body = b""
        while (piece := await self.chunk()) is not None:
            body += piece
        return body

    async def line(self) -> str | None:
        """Return the next line of the stream (LF), None at its end."""
        while b"\n" not in self._buffer:
            piece = await self.chunk()
            if piece is None:
                return None
            self._buffer += piece
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line.decode()

    async def block(self) -> Block | None:
        """Return the next block that is dispatched, None at the end."""
        block = Block()
        while (line := await self.line()) is not None:
            name, _, value = line.partition(":")
            value = value.removeprefix(" ")
            match name:
                case "" if not line:
                    return block
                case "":
                    block.comments.append(value)
                case "id":
                    block.id = value
                case "event":
                    block.name = value
                case "data":
                    assert block.data is None, "an event's text has no line breaks"
                    block.data = value
                case "retry":
                    block.retry = value
        return None

    async def blocks(self) -> list[Block]:
        """Return all blocks up to the end of the stream."""
        found = []
        while (block := await self.block()) is not None:
            found.append(block)
        return found

    def leave(self) -> None:
        self._left.set()

    async def close(self) -> None:
        """Go away, as a client does, and wait until the server has noticed."""
        self.leave()
        while not self.task.done():
            if not self._chunks.empty():
                self._chunks.get_nowait()
            await asyncio.sleep(0)
        await self.task


class Site:
    """A server and whoever asks it."""

    def __init__(self, app: Application, root_path: str = "") -> None:
        self.app = app
        self.engine = app.engine
        self.root_path = root_path
        self._keys = itertools.count(1)
        self._open: list[Exchange] = []

    def send(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str] | list[tuple[str, str]] | None = None,
        body: bytes = b"",
    ) -> Exchange:
        """Begin a call. Headers may be pairs, to name one twice."""
        pairs = list(headers.items()) if isinstance(headers, Mapping) else list(headers or [])
        bare, _, query = path.partition("?")
        scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": self.root_path + bare,
            "raw_path": (self.root_path + bare).encode(),
            "query_string": query.encode(),
            "root_path": self.root_path,
            "headers": [(name.lower().encode(), value.encode("latin-1")) for name, value in pairs],
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 8700),
        }
        exchange = Exchange(self.app, scope, body)
        self._open.append(exchange)
        return exchange

    async def call(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str] | list[tuple[str, str]] | None = None,
        body: bytes = b"",
    ) -> Answer:
        exchange = self.send(method, path, headers, body)
        status, received = await exchange.started()
        content = await exchange.rest()
        await exchange.task
        return Answer(status, received, content)

    async def get(self, path: str, headers: Mapping[str, str] | list[tuple[str, str]] | None = None) -> Answer:
        return await self.call("GET", path, headers)

    async def create(self, value: Any = None, *, key: str | None = None, **headers: str) -> Answer:
        named = {name.replace("_", "-"): text for name, text in headers.items()}
        body = json.dumps({"input": "x"} if value is None else value).encode()
        return await self.call("POST", "/v1/runs", {"Idempotency-Key": key or f"key-{next(self._keys)}", **named}, body)

    async def run(self, value: Any = None, **headers: str) -> dict[str, Any]:
        """Create a run and return it."""
        answer = await self.create(value, **headers)
        assert answer.status == 201, answer.body
        return answer.json

    async def settled(self, value: Any = None, **headers: str) -> dict[str, Any]:
        """Create a run and return it once it has settled."""
        run = await self.run(value, **headers)
        return await self.until_settled(run["id"], headers)

    async def until_settled(
        self, run_id: str, headers: Mapping[str, str] | None = None, *, patience: float = PATIENCE
    ) -> dict[str, Any]:
        with self.engine.hub.watching(run_id, "test", stream=False) as watcher:
            run = (await self.get(f"/v1/runs/{run_id}", headers)).json
            async with asyncio.timeout(patience):
                while run["status"] in ("queued", "running"):
                    await watcher.wait(None)
                    run = (await self.get(f"/v1/runs/{run_id}", headers)).json
        return run

    async def until_head(self, run_id: str, sequence: int) -> None:
        """Wait until the run's log has so many events."""
        with self.engine.hub.watching(run_id, "test", stream=False) as watcher:
            async with asyncio.timeout(PATIENCE):
                while (await self.engine.log.run(run_id)).last_sequence < sequence:
                    await watcher.wait(None)

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until something is so that nobody is told of; a turn of the loop at a time."""
        async with asyncio.timeout(PATIENCE):
            while not condition():  # noqa: ASYNC110 (what is waited for sets no event)
                await asyncio.sleep(0)

    def attach(self, run_id: str, query: str = "", **headers: str) -> Exchange:
        named = {name.replace("_", "-"): text for name, text in headers.items()}
        return self.send("GET", f"/v1/runs/{run_id}/events{query}", {"Accept": "text/event-stream", **named})

    async def follow(self, run_id: str, query: str = "", **headers: str) -> list[Block]:
        """Return all blocks of a stream that ends by itself."""
        exchange = self.attach(run_id, query, **headers)
        status, _ = await exchange.started()
        assert status == 200, await exchange.rest()
        blocks = await exchange.blocks()
        assert exchange.complete, "the stream was cut"
        return blocks

    async def append(self, run_id: str, *names: str) -> None:
        """Append events of the type `note`, as a producer of the engine's would."""
        run = await self.engine.log.run(run_id)
        now = self.engine.now()
        entries = [entry(run, name, "note", {"name": name}, time=moment(now), at=now) for name in names]
        limits = self.engine.limits(run)
        publisher = Publisher(self.engine.log, self.engine.hub, self.engine.settings.hooks)
        await publisher.publish(run, entries, limits.retention_events)

    async def close(self) -> None:
        for exchange in self._open:
            if not exchange.task.done():
                await exchange.close()
        await self.engine.stop()


OPEN = Script(name="open", steps=(RawEvent(type="note", data={"name": "first"}), Wait(ms=3_600_000)))
"""Three events, then an hour of real time: a run that stays open until the test is done with it."""

QUICK = Script(name="quick", clock="virtual", steps=(Say(text="one two three"),))
"""Seven events and the end, at once."""


def quiet(**limits: Any) -> Script:
    """Return OPEN with limits of its own."""
    return Script(name="quiet", limits=ScriptLimits(**limits), steps=OPEN.steps)
