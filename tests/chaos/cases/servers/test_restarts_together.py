"""Two ends of one server that come together: it ends once, or one after the other; it is never started twice."""

import asyncio
import json

import pytest

from chaos_cases import faults
from reattach_chaos.cases.servers import own_server
from reattach_chaos.cases.servers.control import ServerTrouble
from reattach_chaos.cases.servers.own_server import OwnServer
from reattach_chaos.cases.servers.restarts import Restarts
from reattach_chaos.cases.servers.server_steps import Step
from reattach_chaos.history import CutFired, Recorder, Server
from reattach_chaos.schedules import Fault, Place, Planned, at

AT_ONCE = Planned(fault=Fault.SERVER_RESTART, at=at(Place.AFTER_EVENT, 2), settings={"down_ms": 0})
AT_A_STEP = Planned(fault=Fault.SERVER_RESTART, at=at(Place.APPENDED, 2), route=None, settings={"down_ms": 0})
SCHEDULE = faults(AT_ONCE, AT_A_STEP, AT_A_STEP)


class Made:
    """A server that lives while it is told to, and says at which step it stands where a test wants it to."""

    def __init__(self, while_it_ends=(), while_it_starts=(), *, starts=True):
        self.lives = True
        self.steps = {}
        self.stands = None
        self.told = []
        self._while_it_ends, self._while_it_starts = list(while_it_ends), list(while_it_starts)
        self._starts = starts

    async def end(self, word):
        if self._while_it_ends:
            self.stands(self._while_it_ends.pop())
        await asyncio.sleep(0)
        self.lives = False

    async def start(self):
        assert not self.lives, "it is started twice"
        await asyncio.sleep(0)
        if not self._starts:
            raise ServerTrouble("it does not start")
        self.lives = True
        if self._while_it_starts:
            self.stands(self._while_it_starts.pop())


def played(server, *deeds):
    """Let these things happen at once; return what was recorded, and whether the server was away at last."""
    recorder, away = Recorder(), []

    async def play():
        restarts = Restarts(server, SCHEDULE, recorder, away.append)
        await asyncio.gather(*(deed(restarts, server) for deed in deeds))
        await restarts.over()

    asyncio.run(asyncio.wait_for(play(), 30))
    return [each.did for each in recorder.history().of(Server)], len(recorder.history().of(CutFired)), away[-1]


async def _at_a_place(restarts, server):
    await restarts.perform(AT_ONCE)


async def _at_a_step(restarts, server):
    server.stands(2)


def test_two_places_that_are_met_at_once_are_two_restarts():
    """One after the other: the second waits for the server to be back."""
    assert played(Made(), _at_a_place, _at_a_place) == (["killed", "started"] * 2, 0, False)


def test_a_server_that_stands_still_while_it_is_ended_is_ended_once():
    """It died at its step, by the other's hand."""
    assert played(Made(while_it_ends=[2]), _at_a_place) == (["killed", "started"], 1, False)


@pytest.mark.parametrize("first", [_at_a_place, _at_a_step])
def test_a_server_that_stands_still_as_soon_as_it_is_back_is_ended_again(first):
    """It goes on with its runs before anybody can ask for them."""
    fired = 1 + (first is _at_a_step)
    assert played(Made(while_it_starts=[3]), first) == (["killed", "started"] * 2, fired, False)


@pytest.mark.parametrize("first", [_at_a_place, _at_a_step])
def test_a_server_that_does_not_come_back_is_trouble(first):
    """Whoever waits for it is told, and nothing is left that nobody waited for."""
    with pytest.raises(ServerTrouble, match="does not start"):
        played(Made(starts=False), first)


def test_what_a_server_says_before_it_serves_is_heard(monkeypatch, tmp_path):
    """Then that it stands is told; one that ends instead is trouble."""

    class Process:
        def __init__(self, *lines):
            self.lines = [json.dumps(each) for each in lines]

        async def line(self):
            return self.lines.pop(0) if self.lines else None

    async def play(*lines):
        async def bear(*args):
            return Process(*lines)

        monkeypatch.setattr(own_server.BornProcess, "bear", bear)
        server, seen = OwnServer(tmp_path, [], (1, 2), tmp_path / "stderr"), []
        server.steps, server.stands = {4: Step(4, Place.APPENDED, 1, 1)}, seen.append
        await server.start()
        return seen

    at_a_step = {"kind": "at", "cut": 4}
    assert asyncio.run(play(at_a_step, {"kind": "serving"})) == [4]
    with pytest.raises(ServerTrouble, match="it ended"):
        asyncio.run(play(at_a_step))
