"""The seam of a vendor's dialect: pure functions and capability flags, one file each.

A profile says what requests to make and what answers mean. It never waits, opens, stores or retries, and holds no state but a
`Reader`'s, which lives as long as one subscription.

To add a profile: one file here, pure functions only, capability flags first. Record real frames of the vendor (secrets removed)
next to the test, and note the date and the page of the documentation for every field name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple, Protocol

from reattach.core.fold import Change
from reattach.core.messages import Arrival, By, Closing, Mark, Opened, Received, Refusal
from reattach.core.messages import Refused as RefusedInput
from reattach.core.pause import Pair
from reattach.model import Event, Operation, Outcome, Status
from reattach.wire.frame import Frame


class Noted(NamedTuple):
    """Something for the observer alone: a fact's name and detail."""

    name: str
    detail: str


Told = Opened | Received | Closing | RefusedInput | Noted


class Call(NamedTuple):
    """One HTTP request relative to the server's address; `body` is a JSON value or None."""

    method: str
    path: str
    headers: Mapping[str, str] = {}
    body: Any = None


class Created(NamedTuple):
    """What a create answered."""

    run_id: str
    session_id: str | None
    status: Status
    replayed: bool


class Reading(NamedTuple):
    """A run as its status answer tells it. `epoch` and `head` are None where the vendor has none.

    `continued_by` is the id of the run that answered this one's pause.
    """

    status: Status
    epoch: str | None
    head: int | None
    outcome: Outcome | None
    session_id: str | None = None
    created_at: datetime | None = None
    continued_by: str | None = None


class Listed(NamedTuple):
    """A run as a list of its session tells it."""

    run_id: str
    session_id: str | None
    status: Status
    continues: str | None


class Page(NamedTuple):
    """Events that a finite answer brought, as the frames that a stream would have brought.

    `following` is the cursor to ask after next. `last`: the server has no more for now. `settled`: it never will have.
    """

    frames: tuple[Frame, ...]
    following: str
    last: bool
    settled: bool


class Unreadable(Exception):
    """An answer is not what the profile knows; `detail` quotes it, shortened."""

    def __init__(self, detail: str) -> None:
        super().__init__(detail)
        self.detail = detail


class Reader(Protocol):
    """Reads the frames of one subscription. Its only state is what makes `Event.text` right over several events."""

    def recall(self, events: Iterable[Arrival | Event]) -> None:
        """Take in the newest committed events, oldest first, before the first frame (the stream goes on after them)."""
        ...

    def read(self, frames: Sequence[Frame]) -> tuple[Told, ...]:
        """Return what the frames say, in order; neighbouring events in one `Received`. Never raises for what the server sent."""
        ...


class Way(Protocol):
    """One way to a run's events: how to ask, how to read what comes. A profile is itself its usual way."""

    def attach(self, run_id: str, after: str | None) -> Call:
        """Return the request for what comes after a cursor (None: from the beginning)."""
        ...

    def refusal(self, status: int, headers: Mapping[str, str], body: bytes) -> Refusal:
        """Sort an answer that is not a good one into the classes that the core knows."""
        ...

    def reader(self, run_id: str) -> Reader:
        """Return a reader for one subscription."""
        ...


class Profile(Way, Protocol):
    """A vendor's dialect. One that speaks WebSocket too has an attribute `sockets`, a `Way`; see `socket_way`."""

    name: str
    contiguous: bool
    """Whether sequences have no holes."""
    keyed: bool
    """Whether the create takes a key, so that it may be repeated."""
    key_hours: float
    """For how many hours the server remembers a key, at least."""
    ways: tuple[By, ...]
    """How events can be had, the best first."""
    replays: bool
    """Whether the server sends again what comes after a cursor. One that does not tells its state only, by `snapshot`."""

    def create(self, request: Mapping[str, Any], key: str) -> Call:
        """Return the create; `request` is what the application asked for, as the journal keeps it."""
        ...

    def created(self, status: int, headers: Mapping[str, str], body: bytes) -> Created:
        """Read a create's good answer. The id is taken from the earliest place in which it appears.

        Raises:
            Unreadable: It holds no run id.
        """
        ...

    def lookup(self, key: str) -> Call | None:
        """Return the search for a run by the key of its create, None if the vendor has none."""
        ...

    def found(self, body: bytes) -> Created | None:
        """Read a good answer of `lookup`.

        Raises:
            Unreadable: It is none.
        """
        ...

    def retention(self) -> Call | None:
        """Return the question how long this server remembers keys, None if it does not tell."""
        ...

    def retention_told(self, body: bytes) -> float | None:
        """Read a good answer of `retention`: hours, None if it states none.

        Raises:
            Unreadable: It is none.
        """
        ...

    def place(self, cursor: str) -> tuple[str, int] | None:
        """Return a cursor's epoch and sequence, None if it is no cursor of this profile."""
        ...

    def page(self, run_id: str, after: str | None, wait: float) -> Call | None:
        """Return the request for the next page of events after a cursor; None if the vendor has no pages.

        Args:
            run_id: The run.
            after: A cursor, None for the beginning, `messages.EARLIEST` for the oldest event kept.
            wait: Seconds that the server may wait for a first event; 0 for an answer at once.
        """
        ...

    def paged(self, run_id: str, after: str | None, body: bytes, *, first: bool) -> Page:
        """Read a good answer of `page`; the `first` of a connection also holds what a stream begins with.

        Raises:
            Unreadable: It is none.
        """
        ...

    def status(self, run_id: str) -> Call:
        """Return the status read."""
        ...

    def reading(self, run_id: str, body: bytes) -> Reading:
        """Read a good status answer.

        Raises:
            Unreadable: It is none.
        """
        ...

    def snapshot(self, run_id: str) -> Call | None:
        """Return the read of the server's state at a boundary, None if the vendor has none."""
        ...

    def boundary(self, run_id: str, body: bytes) -> tuple[Mark, Any]:
        """Read a good snapshot answer: the place it is valid at, and the state.

        Raises:
            Unreadable: It is none.
        """
        ...

    def cancel(self, run_id: str) -> Call:
        """Return the request to cancel."""
        ...

    def continuation(self, run_id: str, answers: Sequence[Pair]) -> Mapping[str, Any] | None:
        """Return the body of the create that answers a paused run, all of it; None if this vendor's runs take no answers."""
        ...

    def operation(self, operation_id: str) -> Call | None:
        """Return the question what the authority knows of an effect, None if there is none to ask."""
        ...

    def operation_told(self, operation_id: str, body: bytes) -> Operation:
        """Read a good answer of `operation`.

        Raises:
            Unreadable: It is none.
        """
        ...

    def session_runs(self, session_id: str, after: str | None) -> Call | None:
        """Return the read of one page of a session's runs (`after`: what the page before said), None if the vendor has none."""
        ...

    def session_told(self, body: bytes) -> tuple[tuple[Listed, ...], str | None]:
        """Read a page: runs, oldest first, and what to ask after next, None at the end.

        Raises:
            Unreadable: It is none.
        """
        ...

    def changes(self, event: Event) -> tuple[Change, ...]:
        """Return what an event does to the view."""
        ...

    def settled(self, run_id: str, event: Event) -> Outcome | None:
        """Return the outcome that a settling event tells, None for every other event."""
        ...


def socket_way(profile: Profile) -> Way | None:
    """Return the profile's WebSocket, None if it has none.

    The way's `attach` names the subprotocol in a header, and its body is the first message. Its reader gets text messages as frames
    of the event `message`, one that is not text as `binary`, and the server's close as `close` with `code` and `reason` in JSON.
    """
    way: Way | None = getattr(profile, "sockets", None)
    return way
