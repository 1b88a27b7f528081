"""Volume: schedules drawn from one seed after the other, played and judged as they come, in one process or in several.

What a history holds is dropped once it is judged; the failing ones are kept as schedules, which say all. Seeds are dealt out in
batches and their results put together in the order of the seeds, so that the result does not depend on the number of processes.
"""

import gc
import itertools
import multiprocessing
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from reattach_chaos.checkers import CaseVerdict, judge
from reattach_chaos.history import CutFired, CutPlanned, History
from reattach_chaos.schedules import Schedule, drawn_schedule
from reattach_chaos.sim.play import play, quietly

COLLECT_EVERY = 200
"""Schedules after which garbage is collected by hand: left to itself it costs a quarter of the time."""
BATCH = 100
"""Seeds that a process is given at a time: some two seconds of work."""
AHEAD = 3
"""Batches for each process that are under way at most; what was begun is finished when it ends."""


@dataclass(slots=True)
class Volume:
    """What many schedules showed.

    Attributes:
        played: How many were played.
        planned: Faults that were planned in them.
        fired: Faults that came.
        fired_of: How often each fault came.
        invalid: The schedules that broke a law, with their verdicts, in the order of their play; at most `most` of them.
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

    def add(self, more: "Volume") -> None:
        """Take in what came after."""
        self.played += more.played
        self.planned += more.planned
        self.fired += more.fired
        self.fired_of.update(more.fired_of)
        self.invalid += more.invalid
        self.unknown.update(more.unknown)


def volume(
    seeds: Iterable[int],
    *,
    most: int = 1,
    jobs: int = 1,
    progress: Callable[[Volume], None] | None = None,
    stop: Callable[[], bool] | None = None,
    step: Any = None,
) -> Volume:
    """Play the schedule of each seed and judge it; end when so many have failed.

    Args:
        seeds: Of `drawn_schedule`; may be without end.
        most: Failing schedules after which it ends.
        jobs: Processes. The result is the same for any number of them.
        progress: Called after each batch, with what was found so far.
        stop: Asked after each batch whether to end.
        step: Instead of the client's core: a mutant of it, in this process only.

    Raises:
        ValueError: A mutant is to be played in several processes.
    """
    if step is not None and jobs > 1:
        raise ValueError("a mutant of the core is played in one process")
    found = Volume()
    batches = _batches(seeds)
    results = _dealt(batches, most, jobs) if jobs > 1 else _here(batches, most, step)
    try:
        for result in results:
            found.add(result)
            del found.invalid[most:]
            if progress is not None:
                progress(found)
            if len(found.invalid) >= most or (stop is not None and stop()):
                break
    finally:
        results.close()
    return found


def simulate(
    schedules: Iterable[Schedule],
    *,
    told: Callable[[Schedule, History, CaseVerdict], None] | None = None,
    most: int = 1,
    step: Any = None,
) -> Volume:
    """Play schedules in this process and judge each.

    Args:
        schedules: Of the scenario "session".
        told: Called after each, to keep what is worth it.
        most: Failing schedules after which it ends.
        step: Instead of the client's core: a mutant of it.
    """
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


def _batches(seeds: Iterable[int]) -> Iterator[list[int]]:
    left = iter(seeds)
    while batch := list(itertools.islice(left, BATCH)):
        yield batch


def _batch(seeds: list[int], most: int, step: Any = None) -> Volume:
    return simulate(map(drawn_schedule, seeds), most=most, step=step)


def _here(batches: Iterator[list[int]], most: int, step: Any) -> Generator[Volume, None, None]:
    for batch in batches:
        yield _batch(batch, most, step)


def _dealt(batches: Iterator[list[int]], most: int, jobs: int) -> Generator[Volume, None, None]:
    """Yield the batches' results in their order; processes work ahead."""
    # A fork would take over this process's threads and locks in whatever state they are.
    with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
        begun: deque[Future[Volume]] = deque()
        try:
            for batch in batches:
                begun.append(pool.submit(_batch, batch, most))
                if len(begun) >= jobs * AHEAD:
                    yield begun.popleft().result()
            while begun:
                yield begun.popleft().result()
        finally:
            pool.shutdown(cancel_futures=True)


def _count(found: Volume, schedule: Schedule, history: History, verdict: CaseVerdict) -> None:
    found.played += 1
    found.planned += len(history.of(CutPlanned))
    fired = {record.cut: record.fault for record in history.of(CutFired)}
    found.fired += len(fired)
    found.fired_of.update(fired.values())
    if verdict.word == "invalid":
        found.invalid.append((schedule, verdict))
    found.unknown.update(reason for reason in verdict.unknown if not reason.startswith("inconclusive"))
