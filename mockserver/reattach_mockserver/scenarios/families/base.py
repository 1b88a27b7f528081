"""The seam of a family: what is read from one recorded event, and how the family is recognised.

Families read recordings for the reference server; they are not the client's profiles, share no code
with them, and know nothing of requests, cursors or connections. A family never changes an event.

**To add a family:** one file here with one class; `recognises` looks at one event, `text` and `sign`
likewise, without memory. Then a line in `FAMILIES`, and a test on real events. Sources of the field
names: the vendor's own published streams, named in the file.
"""

from dataclasses import dataclass
from typing import Protocol, TypeAlias

from reattach_mockserver.scenarios.script import Action, EndStatus, Json, JsonObject, Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """The stream's own end. A problem is there exactly where it failed."""

    status: EndStatus = "completed"
    result: Json = None
    problem: Problem | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Erred:
    """An error in mid-stream, whether an end follows or not."""

    problem: Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """An approval that is pending from here on."""

    action: Action


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """An approval, by its id, that is pending no more."""

    action_id: str


Sign: TypeAlias = Ended | Erred | Asked | Answered


class Family(Protocol):
    """How one service's events are read."""

    @property
    def name(self) -> str:
        """The profile's name, as `--profile` takes it."""

    def recognises(self, event: JsonObject) -> bool:
        """Tell whether an event can only be this family's."""

    def text(self, event: JsonObject) -> str | None:
        """Return what the event adds to the visible text, None for nothing."""

    def sign(self, event: JsonObject) -> Sign | None:
        """Return what the event says of the run's way, None for nothing."""


def member(event: "Json | JsonObject", *path: str) -> Json:
    """Follow keys into a JSON value; None where the way ends."""
    value: object = event
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value  # type: ignore[return-value]  # what is inside JSON is JSON


def text_at(event: "Json | JsonObject", *path: str) -> str | None:
    """Follow keys to a text that is not empty; None for anything else."""
    value = member(event, *path)
    return value if isinstance(value, str) and value else None


def problem_at(event: "Json | JsonObject", *path: str, code: str) -> Problem:
    """Read `{code, message}` (or `{type, message}`); `code` stands in where it has none."""
    return Problem(
        code=text_at(event, *path, "code") or text_at(event, *path, "type") or code,
        message=text_at(event, *path, "message") or "the recorded stream gives no message",
    )
