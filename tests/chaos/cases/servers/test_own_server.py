"""A case's own server is heard out and waited for, whatever it says, and whichever of its processes it is."""

import asyncio
from pathlib import Path

import pytest

from reattach_chaos.cases.servers import own_server
from reattach_chaos.cases.servers.control import ServerTrouble
from reattach_chaos.cases.servers.own_server import OwnServer
from reattach_chaos.cases.servers.server_steps import Step
from reattach_chaos.schedules import Place

SERVING = '{"kind":"serving"}'


class Life:
    """A server's process: it says its lines, then nothing until it is signalled; it ends when it is let."""

    def __init__(self, *lines):
        self.lines = list(lines)
        self.signals = []
        self.lets = asyncio.Event()
        self.closed = False

    async def line(self):
        if self.lines:
            return self.lines.pop(0)
        await self.lets.wait()
        return None

    async def code(self):
        await self.lets.wait()
        return 0

    def signal(self, word):
        self.signals.append(word)

    def close(self):
        self.closed = True


@pytest.fixture
def server(monkeypatch):
    """A server of which each start takes the next of its `lives`."""
    server = OwnServer(Path("nursery"), [], (1, 2), Path("stderr"))
    server.lives = []

    async def bear(*args):
        return server.lives.pop(0)

    monkeypatch.setattr(own_server.BornProcess, "bear", bear)
    return server


def test_what_did_not_come_back_is_waited_for_as_well(server, monkeypatch):
    """The process of the restart, not the one before it, which has ended long ago."""

    async def play():
        first, second = server.lives = [Life(SERVING), Life()]
        await server.start()
        first.lets.set()
        await server.end("kill")
        monkeypatch.setattr(own_server, "START_S", 0.0)
        with pytest.raises(ServerTrouble, match="did not start"):
            await server.start()
        ending = asyncio.create_task(server.end("kill"))
        for _ in range(10):
            await asyncio.sleep(0)
        assert (ending.done(), second.signals) == (False, ["kill"])
        second.lets.set()
        await ending
        assert second.closed

    asyncio.run(asyncio.wait_for(play(), 30))


@pytest.mark.parametrize("odd", ["a warning", "[1]", '{"kind":"at"}', '{"kind":"at","cut":9}'])
def test_what_is_no_word_of_a_server_is_passed_over(server, odd):
    """Before it serves and after: it says where it stands all the same, and its end raises nothing."""

    async def play():
        server.steps = {cut: Step(cut, Place.APPENDED, 1, 2) for cut in (1, 2)}
        stood = []
        server.stands = stood.append
        (life,) = server.lives = [Life(odd, '{"kind":"at","cut":1}', SERVING, odd, '{"kind":"at","cut":2}')]
        await server.start()
        life.lets.set()
        await server.end("term")
        assert (stood, server.steps) == ([1, 2], {})

    asyncio.run(asyncio.wait_for(play(), 30))
