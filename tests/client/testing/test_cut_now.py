"""`MemoryServer.cut` and `.plan`: a test may break what is open now, and say later what comes next."""

import pytest

from client_stage import Async, collected, in_memory
from reattach.testing import Beat, Leg, Trip

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.mark.parametrize("how", ["fin", "reset", "stall"])
async def test_what_is_open_is_cut_now_and_followed_again(how):
    """The next connection goes on after what is on disk."""
    server, args = in_memory(inline=True, story=[Beat(), Beat()], jumps=False)
    async with Async().client(journal=":memory:", **args) as client:
        run = await client.start("work", key="k")
        shown = Async().beside(lambda: collected(run))
        await args["_seams"].clock().elapse(1.0)
        assert server.cut(server.run, how) == 1
        assert server.cut(server.run, how) == 0
        server.perform(server.run, Beat(do="end"))
        await args["_seams"].clock().elapse(60.0)
        assert [event.sequence for event in await shown.result()] == [1, 2, 3, 4]
    assert [sent.after for sent in server.wire.attaches()] == [None, "e1.3"]


async def test_further_plans_come_behind_those_that_are_left():
    """In order, each once."""
    server, args = in_memory(inline=True, legs=[Leg(refuse=503)])
    server.plan(legs=[Leg(lost=True)], creates=[Trip(lost="after")])
    async with Async().client(journal=":memory:", **args) as client:
        assert len(await collected(await client.start("work", key="k"))) == 5
    assert len(server.wire.attaches()) == 3
    assert len(server.wire.calls("POST", "/v1/runs")) == 2
