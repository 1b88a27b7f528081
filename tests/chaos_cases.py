"""For tests of the cases: a session by hand, schedules in a word, and a run of cases that is played once for several tests."""

import asyncio
from dataclasses import replace

from reattach_chaos.cases.servers.control import Event
from reattach_chaos.cases.session import RunOf, Session
from reattach_chaos.cases.theatre import Bill, theatre
from reattach_chaos.history import Logged
from reattach_chaos.schedules import Schedule


def _run(given, depth, *types):
    """Return a run of these types."""
    events = [Logged(id=f"evt_{n}", cursor=f"e1.{n}", sequence=n, type=type) for n, type in enumerate(types, 1)]
    return RunOf(given=given, depth=depth, events=tuple(Event(event, 100) for event in events))


SESSION = Session(
    runs=(
        _run("one", 0, "run.created", "message.delta", "tool.call", "run.completed"),
        _run("two", 0, "run.created", "action.required", "run.paused"),
        _run("two", 1, "run.created", "run.failed"),
    )
)
"""One completes, one pauses, the one that goes on from it fails."""


def faults(*planned, **rest):
    """Return a schedule with these faults."""
    return replace(Schedule(id="no-fault"), **rest).with_faults(planned)


def played(*schedules, **bill):
    """Play cases side by side; return them by id."""

    async def play():
        async with theatre(Bill(backend="embedded", **bill)) as stage:
            return await asyncio.gather(*map(stage.player.play, schedules))

    return {case.id: case for case in asyncio.run(play())}
