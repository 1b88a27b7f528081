"""`Played` and `Suite`: one case that was played, and all of a run, as the report needs them. Values; they conclude nothing."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from reattach_chaos.checkers import CaseVerdict, RunVerdict
from reattach_chaos.history import History
from reattach_chaos.schedules import Schedule


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """One case.

    Attributes:
        schedule: What was planned.
        history: What was seen.
        verdict: What all laws say of it.
        file: Where the schedule was saved, "" where it was not.
        stderr: What the client wrote there at last; not judged.
    """

    schedule: Schedule
    history: History
    verdict: CaseVerdict
    file: str = ""
    stderr: str = ""

    @property
    def id(self) -> str:
        """The case's readable id."""
        return self.schedule.id


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """A run of cases.

    Attributes:
        verdict: Of the whole run; its cases are those of `played`, in the same order.
        played: All cases.
        planned: How many cases there were to play; more than were played where the run was cut short.
        target: The server that the client was tried against.
        client: The client under test, as it was named on the command line.
        backend: Which proxy did the cutting.
        sample: Which sample of schedules.
        seed: Of the run.
        seconds: How long it took.
        began: When, as a person reads it.
        versions: Of what took part.
        again: The command line that plays the leading case again, "" where there is none.
        notes: What else a reader must know to trust the verdict, a sentence each.
    """

    verdict: RunVerdict
    played: tuple[Played, ...]
    planned: int = 0
    target: str = ""
    client: str = "reattach"
    backend: str = ""
    sample: str = ""
    seed: int = 0
    seconds: float = 0.0
    began: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    again: str = ""
    notes: tuple[str, ...] = ()

    @property
    def first(self) -> Played | None:
        """The case that leads the report; None where all are valid."""
        leading = self.verdict.first
        return next((each for each in self.played if leading is not None and each.id == leading.case), None)

    def fired(self) -> tuple[int, int]:
        """Return how many faults fired, and how many were planned."""
        return sum(each.verdict.fired for each in self.played), sum(each.verdict.planned for each in self.played)

    def all_fired(self) -> int:
        """Return in how many cases every fault fired."""
        return sum(each.verdict.fired == each.verdict.planned for each in self.played)
