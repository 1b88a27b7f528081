"""`Schedule`: the plan of one case as a value: what is played, which faults come where, and all that repeats it.

The unit of reproduction and of shrinking. Two equal schedules against the same versions are the same case. Nothing here plays
anything; JSON is `files.py`, what makes sense where is `fits.py`.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias, get_args

from reattach_chaos.schedules.fault import Fault
from reattach_chaos.schedules.place import UPSTREAM_PLACES, Place, Position

Route: TypeAlias = Literal["create", "stream", "status", "list", "cancel", "answer"]
Direction: TypeAlias = Literal["upstream", "downstream", "both"]
Phase: TypeAlias = Literal["create", "stream", "resume", "status", "list", "cancel", "answer", "client", "server"]
Every: TypeAlias = Literal["every"]

ROUTES: tuple[Route, ...] = get_args(Route)
DIRECTIONS: tuple[Direction, ...] = get_args(Direction)
PHASES: tuple[Phase, ...] = ("create", "stream", "resume", "status", "list", "cancel", "answer")
"""The phases of a request; faults at the client's or the server's own places have none of these."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """One fault of a schedule.

    Attributes:
        fault: What is done.
        at: Where.
        route: On which kind of request; None with places of the client or the server.
        nth: On the how manyth request of the route, from 1; "every": on each.
        times: On so many requests of the route in a row, beginning with `nth`.
        direction: Which way it concerns.
        settings: Of the fault; see its traits.
    """

    fault: Fault
    at: Position
    route: Route | None = "stream"
    nth: int | Every = 1
    times: int = 1
    direction: Direction = "downstream"
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def phase(self) -> Phase:
        """The phase that it falls in: the second stream request is a resume."""
        if self.route is None:
            return "server" if self.at.place.of_server else "client"
        if self.route == "stream" and (self.nth == "every" or self.nth > 1):
            return "resume"
        return self.route

    def __str__(self) -> str:
        """Return it as a readable id has it: rst-after-event-7, fin-after-request-of-create, kill-committed-of-event-3."""
        words = f"{self.fault}-{self.at}"
        if self.nth == "every":
            words += f"-on-every-{self.route}"
        elif self.route == "stream" and self.nth > 1:
            words += "-on-resume" if self.nth == 2 else f"-on-stream-{self.nth}"
        elif self.route not in ("stream", None):
            words += f"-of-{self.route}" + (f"-{self.nth}" if self.nth > 1 else "")
        if self.times > 1:
            words += f"-{self.times}-times"
        if self.direction != "downstream" and self.at.place not in UPSTREAM_PLACES:
            words += f"-{self.direction}"
        return words + "".join(f"-{name.replace('_', '-')}-{value}" for name, value in sorted(self.settings.items()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """A case's plan.

    Attributes:
        id: Readable, and the name of its files; see `name_of`.
        seed: Of everything that is drawn while it is played.
        scenario: The name of the server's script, or the script itself.
        faults: In the order in which they are expected.
        client: Settings of the client under test, as its runner knows them ("mode", "keep", "transport" …).
        server: Settings of the server ("retention_events", "line_end", "instances" …).
        versions: Of what it was found with; not compared, only told.
        requirements: The name of the requirement set that it was made for.
    """

    id: str
    seed: int = 0
    scenario: str | Mapping[str, Any] = "session"
    faults: tuple[Planned, ...] = ()
    client: Mapping[str, Any] = field(default_factory=dict)
    server: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    requirements: str = ""

    def with_faults(self, faults: tuple[Planned, ...]) -> "Schedule":
        """Return the schedule with other faults, and the id that goes with them."""
        return replace(self, faults=faults, id=name_of(faults))


LONGEST_ID = 100


def name_of(faults: tuple[Planned, ...]) -> str:
    """Return a readable id: the faults' words; where there are too many, the first, how many more, and a digest of them all."""
    if not faults:
        return "no-fault"
    words = "-and-".join(map(str, faults))
    if len(words) <= LONGEST_ID:
        return words
    rest = f"-and-{len(faults) - 1}-more" if len(faults) > 1 else ""
    return f"{str(faults[0])[:LONGEST_ID]}{rest}-{hashlib.sha256(words.encode()).hexdigest()[:6]}"


def at(place: Place | str, event: int | None = None, **rest: Any) -> Position:
    """Return a position; short, for generators and tests."""
    return Position(place=Place(place), event=event, **rest)
