"""`Session`: what each case plays: the runs, how each comes to be, and what a clean pass found in them.

A scenario makes a run; where that pauses, all that it waits for is answered, and the run that goes on from it is the next one of
the session. Who plays faults needs to know the events before: so everything is played once without any fault, by our own hand.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from reattach_chaos.cases.servers.control import Control, Event, ServerTrouble, operations
from reattach_chaos.schedules import Shape, shape_of

DEFAULT = ("session", "session-approval")
MOST_CONTINUATIONS = 5
SETTLE_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOf:
    """One run of the session.

    Attributes:
        given: The input of the create that it, or the first one of its chain, comes from.
        depth: So many pauses were answered before it.
        events: Its log in the clean pass.
    """

    given: Any
    depth: int
    events: tuple[Event, ...]

    @property
    def calls(self) -> int:
        """The operations that it calls for."""
        return len(operations(self.events))


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """All runs, in their order."""

    runs: tuple[RunOf, ...]

    @property
    def shape(self) -> Shape:
        """What a generator of schedules needs to know."""
        return shape_of(*([event.logged.type for event in run.events] for run in self.runs))

    @property
    def types(self) -> tuple[str, ...]:
        """All types of events that occur, and those that end a run."""
        found = [event.logged.type for run in self.runs for event in run.events]
        return tuple(dict.fromkeys([*found, "run.completed", "run.failed", "run.cancelled", "run.paused"]))


async def made(control: Control, given: Any, depth: int, key: str) -> list[dict[str, Any]]:
    """Make a run of the session and return it last, behind those that it goes on from.

    Raises:
        ServerTrouble: The server did not play along.
    """
    chain = [await control.create(given, key)]
    for number in range(1, depth + 1):
        paused = await control.settled(chain[-1]["id"], SETTLE_S)
        if paused["status"] != "requires_action":
            raise ServerTrouble(f"run {paused['id']} has {paused['status']}, where it paused in the clean pass")
        chain.append(await control.answer(paused, f"{key}-{number}"))
    return chain


async def clean_pass(control: Control, inputs: Sequence[Any], key: str) -> Session:
    """Play everything without a fault; return what came.

    Raises:
        ServerTrouble: A run did not come to its end.
    """
    runs: list[RunOf] = []
    for place, given in enumerate(inputs, 1):
        (told,) = await made(control, given, 0, f"{key}-{place}")
        for depth in range(MOST_CONTINUATIONS + 1):
            ended = await control.settled(told["id"], SETTLE_S)
            runs.append(RunOf(given=given, depth=depth, events=tuple(await control.log(told["id"]))))
            if ended["status"] != "requires_action" or depth == MOST_CONTINUATIONS:
                break
            told = await control.answer(ended, f"{key}-{place}-{depth + 1}")
    return Session(runs=tuple(runs))


def input_of(scenario: str) -> Any:
    """Return the input that asks a server for a scenario."""
    return {"scenario": scenario}


def as_text(given: Any) -> str:
    """Return an input as the text of REATTACH_INPUT."""
    return given if isinstance(given, str) else json.dumps(given)
