"""Toxiproxy, embedded and real, ends the connections that the gate holds: the same bytes, its own FIN and RST."""

import asyncio
import contextlib

import pytest

import toxiproxy_stage
from gate_stage import body, framed, planned, stage
from reattach_chaos.gate.actuators.toxiproxy import ToxiproxyActuator
from reattach_chaos.history import Received

pytestmark = [pytest.mark.anyio]
ANSWER = framed(body())
END = ANSWER.index(b"data: two\n\n") + len(b"data: two\n\n")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module", params=toxiproxy_stage.BACKENDS)
def toxiproxy(request):
    with toxiproxy_stage.toxiproxy(request.param) as server:
        yield server


@pytest.mark.parametrize("fault", ["fin", "rst"])
async def test_the_end_comes_through_toxiproxy_at_the_byte(toxiproxy, fault):
    """Every byte before the place, none behind it, and the end of the kind."""
    async with stage(ANSWER, planned(fault, "after-event", 3), actuator=ToxiproxyActuator(toxiproxy)) as played:
        heard = await played.ask()
        assert (heard.data, heard.how) == (ANSWER[:END], fault)
        assert played.gate.troubles == []


@pytest.mark.parametrize("fault", ["stall", "half-open"])
async def test_silence_concerns_the_one_connection(toxiproxy, fault):
    """The next connection is served, while the silent one is still open."""
    async with stage(
        ANSWER, planned(fault, "after-event", 3), closes=True, actuator=ToxiproxyActuator(toxiproxy)
    ) as played:
        heard = await played.ask(silent=True)
        assert (heard.data, heard.how) == (ANSWER[:END], "silence")
        assert (await played.ask()).data == ANSWER


async def test_one_schedule_may_hold_both_kinds(toxiproxy):
    """The proxy is made ready for the next cut when one is done."""
    faults = [planned(fault, "after-event", 3, nth=nth) for nth, fault in enumerate(("fin", "rst", "fin"), 1)]
    async with stage(ANSWER, *faults, closes=True, actuator=ToxiproxyActuator(toxiproxy)) as played:
        heard: list[str] = []
        async with asyncio.timeout(toxiproxy_stage.PATIENCE):
            while len(heard) < len(faults):
                # In the moment in which the proxy is made ready for the next kind, nobody is let through.
                with contextlib.suppress(ConnectionRefusedError):
                    each = await played.ask()
                    if each.data:
                        assert each.data == ANSWER[:END]
                        heard.append(each.how)
                await asyncio.sleep(0.005)
        assert heard == ["fin", "rst", "fin"]
        assert played.missed == []
        assert len(played.server.requests) == 3


async def test_a_kind_that_the_proxy_is_not_ready_for_is_missed(toxiproxy):
    """Planned as the second, reached as the first: the case is inconclusive, and no cut of another kind is passed off as it."""
    faults = [planned("fin", "after-event", 3, nth=2), planned("rst", "after-event", 3)]
    async with stage(ANSWER, *faults, closes=True, actuator=ToxiproxyActuator(toxiproxy)) as played:
        assert (await played.ask()).data == ANSWER
    assert played.missed[0].reason == "connections of this Toxiproxy end with FIN until the next cut"
    assert len(played.of(Received)) == 4
