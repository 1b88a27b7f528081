"""What could not be done to a server is said when the case is over, and nothing of the case is read before."""

import asyncio
from types import SimpleNamespace

import pytest

from chaos_cases import faults
from reattach_chaos.cases.servers.control import ServerTrouble
from reattach_chaos.cases.servers.deeds import Deeds
from reattach_chaos.cases.servers.ways import Ways
from reattach_chaos.schedules import Fault, Place, Planned, at


class Control:
    """A server that says another thing each time why it does not play along."""

    def __init__(self):
        self.asked = 0

    async def settled(self, run, limit_s):
        self.asked += 1
        raise ServerTrouble(f"trouble {self.asked}")


def test_the_first_thing_that_could_not_be_done_is_raised_when_all_is_over(tmp_path):
    """Not where it was to be done: there the connection goes on, and a later fault is tried as well."""
    expired = Planned(fault=Fault.EXPIRE, at=at(Place.AFTER_EVENT, 2))

    async def play():
        control = Control()
        async with Deeds(control, None, None, Ways(faults(), tmp_path), faults(expired)) as deeds:
            for _ in range(2):
                await deeds.perform(expired, SimpleNamespace(run="run_1"))
            with pytest.raises(ServerTrouble, match="trouble 1"):
                await deeds.over()
        assert control.asked == 2

    asyncio.run(asyncio.wait_for(play(), 30))
