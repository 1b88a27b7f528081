"""`Chain`: the runs that were made for one part of a case, and which run of the session each of them is."""

from dataclasses import dataclass

from reattach_chaos.cases.errands import Part
from reattach_chaos.schedules import Schedule


@dataclass(frozen=True, slots=True)
class Chain:
    """A part of a case with the runs that were made for it: the last is what the client follows."""

    part: Part
    runs: tuple[str, ...]
    session_id: str
    actions: tuple[str, ...] = ()
    goes_on: bool = False
    """What the client answers makes another run."""


def names_of(chains: list[Chain], schedule: Schedule) -> list[str]:
    """Return the runs' ids in the order of their numbers in the schedule; a run that nobody follows has a made-up one."""
    followed: dict[int, str] = {}
    behind: dict[int, str] = {}
    for chain in chains:
        last = chain.part.run
        if chain.goes_on:
            # A fault of a status is met by who answers, and says itself which run's status that is.
            asked = [planned.at.run for planned in schedule.faults if planned.route == "status"]
            last = asked[0] if asked else last - 1
        if chain.runs and last > 0:
            followed[last] = chain.runs[-1]
        behind |= {last - back: run for back, run in enumerate(reversed(chain.runs)) if last > back > 0}
    names = behind | followed  # a run that another only goes on from is not the one of its number that is followed
    return [names.get(number, f"(run {number})") for number in range(1, max(names, default=0) + 1)]
