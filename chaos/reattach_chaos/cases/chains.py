"""`Chain`: the runs that were made for one part of a case, and which run of the session, and of the server, each of them is."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from reattach_chaos.cases.errands import Part
from reattach_chaos.cases.servers.server_steps import Step
from reattach_chaos.cases.session import Session
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
        if chain.part.task == "start" and last > 1:
            followed.setdefault(last - 1, f"(run {last - 1})")  # the run that it starts is the next that is named
        behind |= {last - back: run for back, run in enumerate(reversed(chain.runs)) if last > back > 0}
    names = behind | followed  # a run that another only goes on from is not the one of its number that is followed
    return [names.get(number, f"(run {number})") for number in range(1, max(names, default=0) + 1)]


def steps_of(schedule: Schedule, parts: Sequence[Part], session: Session) -> Iterator[Step]:
    """Yield the server's own steps at which it ends. The runs that the client makes come behind all that are made for it."""
    numbers: dict[int, int] = {}
    last = sum(_made_before(part, session) for part in parts)
    for part in parts:
        if part.task in ("start", "answer"):
            last += 1
            numbers[part.run] = last
    for cut, planned in enumerate(schedule.faults, 1):
        if planned.at.place.of_server:
            yield Step(cut, planned.at.place, numbers[planned.at.run], planned.at.event or 1)


def _made_before(part: Part, session: Session) -> int:
    depth = session.runs[part.run - 1].depth
    match part.task:
        case "start":
            return 0
        case "answer":
            return depth
        case _:
            return depth + 1
