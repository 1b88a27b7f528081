"""A caller's client that speaks HTTP/2, and a server that says GOAWAY. By itself reattach speaks HTTP/1.1."""

import asyncio

import httpx
import pytest

import reattach
from h2_stage import front

pytestmark = [pytest.mark.anyio]
POLICY = reattach.Policy(retry_floor=0.01, retry_base=0.02)
LIMIT_S = 30.0


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def followed(server, plan, ready=0):
    """Start a run through HTTP/2 and follow it; return the ids that were shown, the server's log, and the front.

    A GOAWAY in mid-stream comes when so many events were shown; 0: right behind the bytes before it.
    """
    async with (
        asyncio.timeout(LIMIT_S),
        front(server.url, plan) as stage,
        httpx.AsyncClient(http1=False, http2=True, trust_env=False) as mine,
        reattach.AsyncClient(stage.url, ":memory:", http_client=mine, policy=POLICY) as client,
    ):
        run = await client.start({"scenario": "tools"}, key="k1")
        shown = []
        if not ready:
            stage.ready.set()
        async for event in run:
            shown.append(event.id)
            if len(shown) == ready:
                stage.ready.set()
        assert (await run.wait()).status is reattach.Status.COMPLETED
    return shown, [event["id"] for event in server.log(run.id)], stage


def sent(stage, method, tail):
    return [head for asked, path, head in stage.asked if asked == method and path.partition("?")[0].endswith(tail)]


@pytest.mark.parametrize("when", ["before the head", 2, pytest.param(4, marks=pytest.mark.slow)])
async def test_a_goaway_is_a_drop_and_nothing_is_lost(reattach_server, when):
    """B38: it made unexplained protocol errors. httpx throws away what comes in one piece with it; that is asked for again."""
    shown, log, stage = await followed(reattach_server, {("GET", "events", 1): when})
    assert shown == log
    assert stage.gone == 1
    assert len(sent(stage, "GET", "/events")) == 2


async def test_after_a_goaway_in_mid_stream_the_run_goes_on_behind_the_last_event(reattach_server):
    """B38: on a new connection, after the second event."""
    shown, log, stage = await followed(reattach_server, {("GET", "events", 1): 3}, ready=2)
    assert shown == log
    assert stage.connections == 2
    first, second = (head.get("last-event-id", "") for head in sent(stage, "GET", "/events"))
    assert first == ""
    assert second.endswith(".2")


@pytest.mark.parametrize("when", ["unprocessed", "before the head"])
async def test_a_create_that_meets_a_goaway_makes_one_run(reattach_server, when):
    """B38: asked again; what the server may have processed only under the key that says so."""
    shown, log, stage = await followed(reattach_server, {("POST", "runs", 1): when})
    assert shown == log
    assert (stage.gone, reattach_server.counts.runs) == (1, 1)
    assert len({head["idempotency-key"] for head in sent(stage, "POST", "/runs")}) == 1
    assert len(sent(stage, "POST", "/runs")) == 2
