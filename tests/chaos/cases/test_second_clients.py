"""What a second client says becomes: its refusal is a word beside the case, any other error is the client's."""

import asyncio
import json
from pathlib import Path

import pytest

from chaos_cases import faults
from reattach_chaos.cases.client import Errand, OwnClient
from reattach_chaos.cases.second_clients import SecondClients
from reattach_chaos.history import CutFired, Delivered, Recorder, Said, Surfaced
from reattach_chaos.schedules import Fault, Place, Planned, at

SECOND = faults(Planned(fault=Fault.SECOND_CLIENT, at=at(Place.DELIVERED, 2), route=None))


class Script:
    """A process that says its lines and ends."""

    def __init__(self, *lines):
        self.lines = [json.dumps(line) for line in lines]

    async def line(self):
        return self.lines.pop(0) if self.lines else None

    async def code(self):
        return 1


def heard(*lines):
    """Let a second client say these lines; return the history."""
    client = OwnClient(None, None)

    async def start(errand, step, attempt):
        return Script(*lines)

    async def play():
        client.start = start
        recorder = Recorder()
        errand = Errand(
            task="follow",
            url="",
            run="r",
            token="",
            state=Path("state"),
            types=(),
            timeout_s=1.0,
            heartbeat_s=1.0,
            case="c",
        )
        async with SecondClients(client, recorder, SECOND, 1, lambda: 2) as second_clients:
            second_clients.hear(Delivered(id="e1.2"), 2, errand, 0)
            await second_clients.over()
        return recorder.history()

    return asyncio.run(asyncio.wait_for(play(), 30))


@pytest.mark.parametrize("code", ["run_busy", "lease_lost"])
def test_that_it_was_refused_is_no_error_of_the_client(code):
    """One of the two has to be."""
    history = heard({"kind": "error", "code": code})
    assert not history.of(Surfaced)
    assert history.of(Said)[0].text == f"the second client: {code}"
    assert len(history.of(CutFired)) == 1


def test_that_it_gave_up_is_an_error_as_the_first_ones_is():
    """It may be the one that has taken over: then nobody goes on any more, and the laws have to see that."""
    (error,) = heard({"kind": "error", "code": "unreachable"}).of(Surfaced)
    assert (error.reason, error.life) == ("unreachable", 2)


def test_the_run_that_it_names_is_the_one_that_its_lines_are_about():
    """Who answers makes another run than the one it was given."""
    (shown,) = heard({"kind": "run", "run": "r2"}, {"kind": "rendered", "id": "e1.1"}).of(Delivered)
    assert shown.run == "r2"
