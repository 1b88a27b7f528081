"""Composition: the rulings of all laws make the verdict of a case, the verdicts of all cases that of a run.

Proven wrong beats not known; not known beats valid. A fault that did not fire makes a case inconclusive, never green.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from reattach_chaos.checkers.coverage import Coverage
from reattach_chaos.checkers.laws import LAWS
from reattach_chaos.checkers.ruling import Invalid, Law, Ruling, Unknown
from reattach_chaos.history import CutFired, CutPlanned, History, Other
from reattach_chaos.history.recorder import TRUNCATED

Word: TypeAlias = Literal["valid", "invalid", "unknown"]
EXIT_CODES: Mapping[Word, int] = {"valid": 0, "invalid": 1, "unknown": 3}


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseVerdict:
    """What all laws say of one case.

    Attributes:
        case: Its id.
        rulings: By the laws' numbers, in their order.
        planned: How many faults were planned.
        fired: How many of them fired.
        trouble: Why nothing can be said, from outside of the history; empty for none.
    """

    case: str
    rulings: Mapping[str, Ruling] = field(default_factory=dict)
    planned: int = 0
    fired: int = 0
    trouble: str = ""

    @property
    def broken(self) -> dict[str, Invalid]:
        """The laws that are broken."""
        return {law: ruling for law, ruling in self.rulings.items() if isinstance(ruling, Invalid)}

    @property
    def unknown(self) -> list[str]:
        """Why something is not known; trouble first, since it is why the laws have nothing to go by."""
        reasons = [ruling.reason for ruling in self.rulings.values() if isinstance(ruling, Unknown)]
        return [self.trouble, *reasons] if self.trouble else reasons

    @property
    def word(self) -> Word:
        """The verdict."""
        return "invalid" if self.broken else "unknown" if self.unknown else "valid"

    def sentence(self) -> str:
        """Return the line that leads a report: INVALID: duplicated. Case rst-after-event-7: event 7 (e1.7) was shown twice."""
        if self.broken:
            first = next(iter(self.broken.values()))
            return f"INVALID: {first.anomaly}. Case {self.case}: {first.sentence}."
        if self.unknown:
            return f"UNKNOWN. Case {self.case}: {self.unknown[0]}."
        return f"VALID. Case {self.case}."


def judge(history: History, laws: Iterable[Law] = LAWS) -> CaseVerdict:
    """Judge one case by all laws. Pure: the same history gives the same verdict."""
    if any(record.name == TRUNCATED for record in history.of(Other)):
        return CaseVerdict(case=history.case.id, trouble="the history was cut off: it grew too long")
    done = {record.cut for record in history.of(CutFired)}
    planned = history.of(CutPlanned)
    return CaseVerdict(
        case=history.case.id,
        rulings={law.id: law.check(history) for law in laws},
        planned=len(planned),
        fired=sum(cut.cut in done for cut in planned),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RunVerdict:
    """The verdict of a whole run of cases.

    Attributes:
        cases: In the order in which they were played.
        coverage: What fired over all of them (I22).
        require_coverage: Whether missing coverage makes a run that is valid otherwise unknown.
    """

    cases: tuple[CaseVerdict, ...]
    coverage: Coverage = field(default_factory=Coverage)
    require_coverage: bool = False

    def count(self, word: Word) -> int:
        """Return how many cases have this verdict."""
        return sum(case.word == word for case in self.cases)

    @property
    def word(self) -> Word:
        """The verdict. A run without cases proved nothing."""
        if self.count("invalid"):
            return "invalid"
        if self.count("unknown") or not self.cases or (self.require_coverage and not self.coverage.complete):
            return "unknown"
        return "valid"

    @property
    def exit_code(self) -> int:
        """0 valid, 1 invalid, 3 unknown."""
        return EXIT_CODES[self.word]

    @property
    def first(self) -> CaseVerdict | None:
        """The case that leads the report: the first that is broken, else the first that is not known."""
        for word in ("invalid", "unknown"):
            for case in self.cases:
                if case.word == word:
                    return case
        return None

    def sentence(self) -> str:
        """Return the report's first line."""
        if self.first is not None:
            return self.first.sentence()
        if not self.cases:
            return "UNKNOWN. No case was played."
        if self.word == "unknown":
            return f"UNKNOWN. {self.coverage.sentence()}."
        return f"VALID. {len(self.cases)} cases, every fault fired."
