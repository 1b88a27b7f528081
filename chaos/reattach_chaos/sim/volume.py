"""Volume: schedules drawn from one seed after the other, played and judged as they come, with progress.

What a history holds is dropped once it is judged; the failing ones are kept as schedules, which say all.
"""

import gc
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from reattach_chaos.checkers import CaseVerdict, judge
from reattach_chaos.history import CutFired, CutPlanned, History
from reattach_chaos.schedules import Schedule, drawn_schedule
from reattach_chaos.sim.play import play, quietly

COLLECT_EVERY = 200
"""Schedules after which garbage is collected by hand: left to itself it costs a quarter of the time."""


@dataclass(slots=True)
class Volume:
    """What many schedules showed.

    Attributes:
        played: How many were played.
        planned: Faults that were planned in them.
        fired: Faults that came.
        fired_of: How often each fault came.
        invalid: The schedules that broke a law, with their verdicts; at most `most` of them.
        unknown: Reasons why nothing is known, and how often; a fault that did not fire is not counted here.
    """

    played: int = 0
    planned: int = 0
    fired: int = 0
    fired_of: Counter[str] = field(default_factory=Counter)
    invalid: list[tuple[Schedule, CaseVerdict]] = field(default_factory=list)
    unknown: Counter[str] = field(default_factory=Counter)

    def __str__(self) -> str:
        """Return the line of progress."""
        return f"{self.played} played, {self.fired} of {self.planned} faults fired, {len(self.invalid)} failing"


def volume(
    seeds: Iterable[int],
    *,
    told: Callable[[Schedule, History, CaseVerdict], None] | None = None,
    most: int = 1,
    step: Any = None,
) -> Volume:
    """Play the schedule of each seed and judge it; stop when so many have failed.

    Args:
        seeds: Of `drawn_schedule`.
        told: Called after each, for progress, and to keep what is worth it.
        most: Failing schedules after which it ends.
        step: Instead of the client's core: a mutant of it.
    """
    return simulate((drawn_schedule(seed) for seed in seeds), told=told, most=most, step=step)


def simulate(
    schedules: Iterable[Schedule],
    *,
    told: Callable[[Schedule, History, CaseVerdict], None] | None = None,
    most: int = 1,
    step: Any = None,
) -> Volume:
    """Play schedules and judge each; see `volume`."""
    found = Volume()

    collected = gc.isenabled()
    gc.disable()
    try:
        with quietly():
            for schedule in schedules:
                history = play(schedule, step=step)
                verdict = judge(history)
                _count(found, schedule, history, verdict)
                if told is not None:
                    told(schedule, history, verdict)
                if len(found.invalid) >= most:
                    break
                if found.played % COLLECT_EVERY == 0:
                    gc.collect()
    finally:
        if collected:
            gc.enable()
    return found


def _count(found: Volume, schedule: Schedule, history: History, verdict: CaseVerdict) -> None:
    found.played += 1
    found.planned += len(history.of(CutPlanned))
    fired = {record.cut: record.fault for record in history.of(CutFired)}
    found.fired += len(fired)
    found.fired_of.update(fired.values())
    if verdict.word == "invalid":
        found.invalid.append((schedule, verdict))
    found.unknown.update(reason for reason in verdict.unknown if not reason.startswith("inconclusive"))
