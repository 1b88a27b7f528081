"""`Record`: what every line of a history has, and the table of kinds.

A record is a fact that somebody saw at an instant: never a conclusion. A kind is one frozen class in this folder; its `kind` is
the word in the file. Here is only what they share. A line of a kind that nobody here knows is kept as `Other`, so that a newer
writer's history can be read, judged and written again by an older reader.

Rules: the chaos page, "History". Checked by tests/chaos/history/.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeVar


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One fact at one instant.

    Attributes:
        at_ms: Milliseconds since the case began, on the one clock of the case.
        n: The record's number in its history, from 1; the recorder gives it. 0: not recorded yet.
        who: Whose application or reader: "client" is the one under test; "gate", "server", "control" are ours; any other name is a
            further subscriber. Two processes on one store are one `who`: together they show one sequence.
        life: Which process of `who`, from 1: the one that is started after a kill is the next.
        run: The run's id.
        conn: The connection's number in the case, from 1.
    """

    kind: ClassVar[str] = "record"

    at_ms: float = 0.0
    n: int = 0
    who: str = "client"
    life: int = 1
    run: str | None = None
    conn: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Other(Record):
    """A line of a kind that is not known here, kept whole."""

    kind: ClassVar[str] = "other"

    name: str
    facts: Mapping[str, Any] = field(default_factory=dict)


R = TypeVar("R", bound=Record)

KINDS: dict[str, type[Record]] = {}
"""The word in the file → the class."""


def known(kind: type[R]) -> type[R]:
    """Enter a class into the table of kinds; a decorator."""
    KINDS[kind.kind] = kind
    return kind
