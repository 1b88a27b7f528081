"""Our own client and server with the gate between them: each transport is cut where it is planned, and nothing is lost."""

import asyncio

import pytest

import reattach
from reattach_chaos.gate import Gate
from reattach_chaos.history import Head, Received, Recorder, Request
from reattach_chaos.schedules import Fault, Planned, Schedule, at

pytestmark = [pytest.mark.anyio]
LIMIT_S = 30.0
POLICY = reattach.Policy(retry_floor=0.01, retry_base=0.02)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.mark.parametrize("transport", ["sse", "websocket", "longpoll"])
@pytest.mark.parametrize("place", ["after-event", "in-data-line"])
async def test_a_cut_transport_goes_on_without_loss(reattach_server, transport, place):
    """RST on the first request for events, again on the second; the log is shown once, in order."""
    run_id = reattach_server.start("tools")
    host, _, port = reattach_server.url.removeprefix("http://").partition(":")
    faults = tuple(Planned(fault=Fault.RST, at=at(place, event), nth=nth) for nth, event in ((1, 1), (2, 3)))
    recorder = Recorder()
    async with Gate((host, int(port)), Schedule(id="case", faults=faults), recorder) as gate:
        async with (
            asyncio.timeout(LIMIT_S),
            reattach.AsyncClient(gate.url, ":memory:", transport=transport, policy=POLICY) as client,
        ):
            shown = [event.id async for event in client.attach(run_id)]
        assert gate.troubles == []
        assert gate.fired == {1: 1, 2: 1}
    log = [event["id"] for event in reattach_server.log(run_id)]
    assert shown == log
    records = recorder.history()
    assert [record.nth for record in records.of(Request) if record.route == "stream"][:3] == [1, 2, 3]
    assert {record.sequence for record in records.of(Received)} >= {2, len(log)}
    assert records.of(Head)
