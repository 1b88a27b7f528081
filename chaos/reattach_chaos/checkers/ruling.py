"""What a law says of a history: `Valid`, `Invalid` with a witness, or `Unknown`.

Three-valued: unknown is never shown as valid. `Valid` says how much was compared: 0 means that this history has nothing that the
law speaks of (a foreign client tells no commits), which is neither praise nor blame.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from reattach_chaos.history import History, Record

Anomaly: TypeAlias = Literal[
    "lost",
    "duplicated",
    "reordered",
    "foreign",
    "changed",
    "undurable",
    "second run",
    "double effect",
    "missing effect",
    "false end",
    "gave up",
    "hang",
    "storm",
    "silent gap",
    "false gap",
    "false error",
    "stale write",
    "leak",
]
"""The glossary's names for what is wrong, and a few for laws that it has none for."""


@dataclass(frozen=True, slots=True)
class Valid:
    """The law holds wherever it could be looked at; `compared` counts how often that was."""

    compared: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Invalid:
    """The law is broken.

    Attributes:
        anomaly: Its name.
        sentence: One line for a person, without a full stop.
        witness: The two or three records that cannot both be right, in their order.
        count: How many times it is broken in this history; the witness is of the first.
    """

    anomaly: Anomaly
    sentence: str
    witness: tuple[Record, ...]
    count: int = 1


@dataclass(frozen=True, slots=True)
class Unknown:
    """Nothing can be said, and why."""

    reason: str


Ruling: TypeAlias = Valid | Invalid | Unknown


@dataclass(frozen=True, slots=True)
class Law:
    """One invariant: its number on the chaos page, its name, and the pure function that judges a history by it."""

    id: str
    name: str
    check: Callable[[History], Ruling]


def ruled(found: list[Invalid], compared: int) -> Ruling:
    """Return the first of what is broken with the number of all, or that nothing is."""
    if not found:
        return Valid(compared)
    first = found[0]
    return Invalid(anomaly=first.anomaly, sentence=first.sentence, witness=first.witness, count=len(found))
