"""Offsets: a clean pass notes the bytes of the places, Toxiproxy counts to them, and other bytes make the case inconclusive."""

import pytest

import toxiproxy_stage
from gate_stage import body, framed, planned, stage
from reattach_chaos.gate.actuators.limit_data import LimitDataActuator
from reattach_chaos.gate.offsets import boundary
from reattach_chaos.schedules import at

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


async def noted():
    """Return the boundary after event 3, from a clean pass."""
    async with stage(ANSWER, closes=True, notes=True) as played:
        await played.ask()
        found = boundary(played.gate.boundaries, at("after-event", 3))
        assert boundary(played.gate.boundaries, at("after-event", 9)) is None
    assert found is not None
    return found


async def test_a_clean_pass_notes_the_byte_of_each_place():
    """All bytes of the answer before it are counted."""
    assert (await noted()).offset == END


@pytest.mark.parametrize("fault", ["fin", "rst"])
async def test_toxiproxy_cuts_at_the_byte_by_its_own_count(toxiproxy, fault):
    """The client has the bytes before the place; the next connection passes."""
    found = await noted()
    actuator = LimitDataActuator(toxiproxy, fault, found.offset)
    cut = planned(fault, "offset", offset=found.offset)
    prefixes = {1: found.prefix_sha256}
    async with stage(ANSWER, cut, actuator=actuator, prefixes=prefixes) as played:
        heard = await played.ask()
        assert (heard.data, heard.how) == (ANSWER[:END], fault)
        assert played.gate.troubles == []
    assert [record.prefix_sha256 for record in played.fired] == [found.prefix_sha256]


async def test_other_bytes_before_the_place_are_inconclusive():
    """A digit more in a date, say: the place is another, so nothing is cut, and the fault is missed."""
    found = await noted()
    other = ANSWER.replace(b'{"n":1}', b'{"n":8}')
    cut = planned("fin", "offset", offset=found.offset)
    async with stage(other, cut, closes=True, prefixes={1: found.prefix_sha256}) as played:
        assert (await played.ask()).data == other
    assert played.fired == []
    assert [record.reason for record in played.missed] == ["the bytes before it are not those of the clean pass"]
