"""`Steps`: a server of ours stands still at a planned step of its own writing, and says so: who hears it ends it there.

In the server's process. Events of a run that come without a wait between them are appended together: a step of an event that is
not the last of such a batch is the batch's.

* executed, recorded: what the event tells was done, and the event is not in the log.
* appended: it is in the log, and nobody was told.
* published: its readers were told.
"""

import json
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Self

from reattach_chaos.schedules import Place
from reattach_mockserver.hooks import Hooks

AT = "at"
"""The kind of the line that is said."""
_BEFORE = frozenset({Place.EXECUTED, Place.RECORDED})


@dataclass(frozen=True, slots=True)
class Step:
    """A step at which a server is to end.

    Attributes:
        cut: The fault's number in the schedule.
        place: The step.
        run: The run's number on the server, from 1.
        event: Of the event, or of the first later one.
    """

    cut: int
    place: Place
    run: int
    event: int

    def __str__(self) -> str:
        """Return it as a word of a command line."""
        return f"{self.cut}:{self.place}:{self.run}:{self.event}"

    @classmethod
    def of(cls, word: str) -> Self:
        """Return what a word says."""
        cut, place, run, event = word.split(":")
        return cls(int(cut), Place(place), int(run), int(event))


class Steps:
    """The steps of one server.

    Args:
        steps: Those at which it stands still.
        number: Gives the number of a run by its id.
        until: Waits until the server is asked to end; one that is killed does not come back from it.
    """

    def __init__(
        self,
        steps: list[Step],
        number: Callable[[str], Awaitable[int]],
        until: Callable[[], Awaitable[object]],
    ) -> None:
        self._steps = steps
        self._number = number
        self._until = until
        self._count = 0

    def hooks(self) -> Hooks:
        """Return what the server is given; nothing where it is to end nowhere."""
        if not self._steps:
            return Hooks()
        return Hooks(
            created=self._created,
            reached=self._reached,
            appending=self._appending,
            durable=lambda run, last: self._meet(run, last, Place.APPENDED),
            woken=lambda run, last: self._meet(run, last, Place.PUBLISHED),
        )

    async def _created(self, run: str, last: int) -> None:
        await self._meet(run, last, Place.APPENDED)
        await self._meet(run, last, Place.PUBLISHED)

    async def _reached(self, run: str, point: str) -> None:
        word, *steps = point.split()
        if word == "append":
            self._count = len(steps)

    async def _appending(self, run: str, last: int) -> None:
        await self._meet(run, last + self._count, *_BEFORE)

    async def _meet(self, run: str, last: int, *places: Place) -> None:
        met = [step for step in self._steps if step.place in places and last >= step.event]
        met = [step for step in met if await self._number(run) == step.run and step in self._steps]
        for step in met:  # two of one batch are met at once: it is not written again
            self._steps.remove(step)
            sys.stdout.write(json.dumps({"kind": AT, "cut": step.cut}) + "\n")
            sys.stdout.flush()
        if met:
            await self._until()
