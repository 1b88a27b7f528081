"""What a run plays, laid out in time: what happens when, one step after the other.

Rests become times, and the branches of a parallel step are merged into one row: by time, and where two producers
come at the same moment, by a draw from the seed. So the same script and seed give the same order in every process, and
an engine that was killed finds its place again. Pure; waits for nothing.

Checked by tests/mockserver/test_values.py.
"""

import heapq
import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from reattach_mockserver.scenarios.expand import (
    Branches,
    CallTool,
    Emit,
    Finish,
    Operate,
    Pause,
    Planned,
    Rest,
    SettleTool,
)

Act: TypeAlias = Emit | CallTool | SettleTool | Operate | Pause | Finish


@dataclass(frozen=True, slots=True)
class Due:
    """Something to do, `at_ms` of the script's own time after its beginning. No act: a list of steps has ended."""

    at_ms: int
    act: Act | None


def timeline(plan: Iterable[Planned], seed: int, start_ms: int = 0) -> Iterator[Due]:
    """Lay out a plan, lazily. Times never decrease; the last item has no act and the time of the end."""
    now = start_ms
    for planned in plan:
        match planned:
            case Rest(ms=ms):
                now += ms
            case Branches(path=path, branches=branches):
                # A string seeds a Random the same way in every process and version.
                draw = random.Random(f"{seed}:{path}")
                for due in _merged([timeline(branch, seed, now) for branch in branches], draw):
                    now = max(now, due.at_ms)
                    if due.act is not None:
                        yield due
            case _:
                yield Due(now, planned)
    yield Due(now, None)


def _merged(branches: list[Iterator[Due]], draw: random.Random) -> Iterator[Due]:
    heap: list[tuple[int, float, int, Due]] = []

    def advance(index: int) -> None:
        for due in branches[index]:
            heapq.heappush(heap, (due.at_ms, draw.random(), index, due))
            return

    for index in range(len(branches)):
        advance(index)
    while heap:
        *_, index, due = heapq.heappop(heap)
        yield due
        advance(index)
