"""What the protocol says in seconds, on a loop whose time moves only when everybody waits: exact, and at once."""

import asyncio
import json
import selectors
from typing import Any

import pytest

from mockserver_dialogue import Dialogue
from mockserver_stage import OPEN, quiet
from reattach_mockserver.bearer import parse_tokens
from reattach_mockserver.faces.socket import PING
from reattach_mockserver.logs.memory import MemoryLog

pytestmark = pytest.mark.anyio


class VirtualLoop(asyncio.SelectorEventLoop):
    """Instead of sleeping until the next timer, it says that the time has come."""

    def __init__(self) -> None:
        super().__init__(_Jumping(self))
        self.now = 1_000.0

    def time(self) -> float:
        return self.now


class _Jumping(selectors.DefaultSelector):
    def __init__(self, loop: VirtualLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> Any:
        ready = super().select(0)
        if not ready and timeout is not None:
            self._loop.now += timeout
        return ready


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, Any]]:
    return "asyncio", {"loop_factory": VirtualLoop}


def now() -> float:
    return asyncio.get_running_loop().time()


@pytest.mark.parametrize(("stated", "interval"), [(None, 10.0), (6_000, 4.0)])
async def test_a_quiet_stream_beats_at_two_thirds_of_what_it_states(sites, stated, interval):
    """RS-76, B18: 10 s by default, far below the 60 s at which proxies cut; each event starts the count again."""
    site = await sites(quiet(heartbeat_ms=stated))
    run = await site.run()
    await site.until_head(run["id"], 3)
    exchange = site.attach(run["id"], "?after=tail")
    attached = await exchange.block()
    began = now()
    assert attached.json["heartbeat_ms"] == (stated or 15_000)
    for beat in range(1, 6):
        assert await next_line(exchange) == ": still here"
        assert now() - began == pytest.approx(beat * interval)
    await asyncio.sleep(interval / 2)
    await site.append(run["id"], "x")
    await exchange.block()
    appended = now()
    assert await next_line(exchange) == ": still here"
    assert now() - appended == pytest.approx(interval)


async def next_line(exchange) -> str | None:
    """Read without a time limit of our own: on this loop it would be the next timer to fire."""
    while b"\n" not in exchange._buffer:
        exchange._buffer += await exchange._chunks.get()
    line, _, exchange._buffer = exchange._buffer.partition(b"\n")
    return line.decode()


@pytest.mark.parametrize(
    ("asked", "waited"), [(2_500, 2.5), (30_000, 30.0), (30_001, 30.0), (10**17, 30.0), (10**300, 30.0)]
)
async def test_a_long_poll_waits_as_long_as_asked_and_30_s_at_most(sites, asked, waited):
    site = await sites(OPEN)
    run = await site.run()
    await site.until_head(run["id"], 3)
    began = now()
    exchange = site.send("GET", f"/v1/runs/{run['id']}/events?after=tail&wait_ms={asked}")
    body = await exchange._chunks.get()
    assert json.loads(body)["events"] == []
    assert now() - began == pytest.approx(waited)


@pytest.mark.parametrize(
    ("tokens", "said", "code", "closed"),
    [
        (parse_tokens(["alice a1"]), [], "unauthenticated", 1008),
        (parse_tokens(["alice a1"]), [{"type": "auth", "token": "a1"}], "invalid_request", 4400),
        (None, [], "invalid_request", 4400),
    ],
)
async def test_a_socket_has_10_s_for_its_token_and_10_s_for_what_it_wants(sites, tokens, said, code, closed):
    """Each counted from when it could have been said; then an error, and the close that belongs to it."""
    site = await sites(OPEN, tokens=tokens)
    began = now()
    dialogue = Dialogue(site)
    assert (await dialogue._going.get())["type"] == "websocket.accept"
    for message in said:
        await asyncio.sleep(9.5)
        dialogue.send({"text": json.dumps(message)})
    error, close = [await dialogue._going.get() for _ in range(2)]
    assert (json.loads(error["text"])["code"], close["code"]) == (code, closed)
    assert now() - began == pytest.approx(9.5 * len(said) + 10.0)


async def test_a_quiet_socket_is_pinged_at_two_thirds_of_what_it_states(sites):
    """RS-76: as a stream is: 10 s by default, counted from what was sent last."""
    site = await sites(OPEN)
    run = await site.run()
    await site.until_head(run["id"], 3)
    dialogue = Dialogue(site)
    await dialogue._going.get()
    dialogue.say("resume", run_id=run["id"], cursor="tail")
    assert json.loads((await dialogue._going.get())["text"])["heartbeat_ms"] == 15_000
    began = now()
    for beat in (1, 2, 3):
        assert (await dialogue._going.get())["type"] == PING
        assert now() - began == pytest.approx(beat * 10.0)
    dialogue.leave()
    await dialogue.task


async def test_a_stream_lives_as_long_as_its_scenario_lets_it(sites):
    """Closed at its age, events or not, heartbeats before it."""
    site = await sites(quiet(stream_age_ms=25_000))
    run = await site.run()
    await site.until_head(run["id"], 3)
    exchange = site.attach(run["id"], "?after=tail")
    await exchange.block()
    began = now()
    lines = [await next_line(exchange) for _ in range(5)]
    assert lines == [": still here"] * 2 + ["retry: 1000", "event: stream.closing", 'data: {"reason":"max_age"}']
    assert now() - began == pytest.approx(25.0)


async def test_a_run_that_does_not_settle_in_10_s_is_not_superseded(sites):
    """503, the key unused: nothing was created beside a run that may still be at work."""

    class Stuck(MemoryLog):
        async def append(self, run_id, writer, entries, *, keep=None):
            if any(entry.type == "run.cancelled" for entry in entries):
                await asyncio.get_running_loop().create_future()
            return await super().append(run_id, writer, entries, keep=keep)

    site = await sites(OPEN, log=Stuck())
    run = await site.run({"input": 1, "session_id": "s"})
    await site.until_head(run["id"], 3)
    began = now()
    body = b'{"input":2,"session_id":"s","on_active":"cancel"}'
    exchange = site.send("POST", "/v1/runs", {"Idempotency-Key": "k"}, body)
    refusal = json.loads(await exchange._chunks.get())
    assert (refusal["status"], refusal["code"]) == (503, "overloaded")
    assert now() - began == pytest.approx(10.0)
    assert await site.engine.log.by_key("anyone", "k") is None
    assert (await site.engine.log.counts()).runs == 1
