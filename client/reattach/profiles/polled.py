"""`Polled`: the base of a profile for a server without a log of events, which tells a run's status and its state as it is now.

    class Jobs(Polled):
        name = "jobs"
        def create(self, request, key): return Call("POST", "/jobs", {}, request)
        def created(self, status, headers, body): ...
        def status(self, run_id): return Call("GET", f"/jobs/{run_id}")
        def reading(self, run_id, body): ...
        def boundary(self, run_id, body): ...
        def cancel(self, run_id): return Call("DELETE", f"/jobs/{run_id}")

What comes between two looks at the state cannot be had, and nothing here pretends otherwise: each state that differs from the
last one reaches the application as a gap (`no_log`) with that state as its snapshot, which its views show.

A vendor with a stream or with pages of events has a profile of its own; see `base.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from reattach.core.fold import Change
from reattach.core.messages import By, Mark, Refusal
from reattach.core.pause import Pair
from reattach.model import Event, Operation, Outcome
from reattach.profiles.base import Call, Created, Listed, Page, Reading, Told, Unreadable
from reattach.profiles.hints import retry_after
from reattach.profiles.native_values import by_status, quoted, replaced
from reattach.wire.frame import Frame


class Nothing:
    """The reader of a server that sends no events."""

    def recall(self, events: Iterable[Event]) -> None:
        """Do nothing."""

    def read(self, frames: Sequence[Frame]) -> tuple[Told, ...]:
        """Return nothing."""
        return ()


class Polled:
    """A server that can be asked how a run stands, and nothing else. Derive from it; six methods are the vendor's own.

    `boundary` names the state that it read by `Mark(cursor=…)`: the same text for the same state (a revision, an ETag, a count),
    another for another. With `Mark.sequence` and `Reading.head` from one count, the state is read only when the count has grown.
    """

    name = "polled"
    contiguous = False
    keyed = False
    key_hours = 0.0
    ways: tuple[By, ...] = ("poll",)
    replays = False

    # the vendor's own ------------------------------------------------------------------------------------------------

    def create(self, request: Mapping[str, Any], key: str) -> Call:
        """Return the create; `key` only where `keyed` says that the vendor honours it."""
        raise NotImplementedError

    def created(self, status: int, headers: Mapping[str, str], body: bytes) -> Created:
        """Read a create's good answer; raises Unreadable."""
        raise NotImplementedError

    def status(self, run_id: str) -> Call:
        """Return the status read."""
        raise NotImplementedError

    def reading(self, run_id: str, body: bytes) -> Reading:
        """Read a good status answer; raises Unreadable. `outcome` is there when the run has settled."""
        raise NotImplementedError

    def boundary(self, run_id: str, body: bytes) -> tuple[Mark, Any]:
        """Read a state, and what names it; raises Unreadable."""
        raise NotImplementedError

    def cancel(self, run_id: str) -> Call:
        """Return the request to cancel."""
        raise NotImplementedError

    # what most vendors share -----------------------------------------------------------------------------------------

    def snapshot(self, run_id: str) -> Call:
        """Return the read of the state; by default the status read holds it."""
        return self.status(run_id)

    def changes(self, event: Event) -> tuple[Change, ...]:
        """Return what a state makes of the view; by default it has the native snapshot's members (`messages`, `status`, …)."""
        state = None if event.gap is None else event.gap.snapshot
        return (replaced(state),) if isinstance(state, dict) else ()

    def refusal(self, status: int, headers: Mapping[str, str], body: bytes) -> Refusal:
        """Sort by the HTTP status alone."""
        return Refusal(by_status(status), f"HTTP {status} ({quoted(body)})", status, retry_after=retry_after(headers))

    # what such a server does not have --------------------------------------------------------------------------------

    def lookup(self, key: str) -> Call | None:
        """Return None: no search by key."""
        return None

    def found(self, body: bytes) -> Created | None:
        """Return None."""
        return None

    def place(self, cursor: str) -> tuple[str, int] | None:
        """Return None: nothing can be asked after a cursor."""
        return None

    def attach(self, run_id: str, after: str | None) -> Call:
        """Never called: there is no stream."""
        raise Unreadable(f"{self.name} has no stream")

    def page(self, run_id: str, after: str | None, wait: float) -> Call | None:
        """Return None: no pages."""
        return None

    def paged(self, run_id: str, after: str | None, body: bytes, *, first: bool) -> Page:
        """Never called."""
        raise Unreadable(f"{self.name} has no pages")

    def continuation(self, run_id: str, answers: Sequence[Pair]) -> Mapping[str, Any] | None:
        """Return None: a pause cannot be answered."""
        return None

    def operation(self, operation_id: str) -> Call | None:
        """Return None: nobody can be asked."""
        return None

    def operation_told(self, operation_id: str, body: bytes) -> Operation:
        """Never called."""
        raise Unreadable(f"{self.name} knows no operations")

    def session_runs(self, session_id: str, after: str | None) -> Call | None:
        """Return None: no sessions."""
        return None

    def session_told(self, body: bytes) -> tuple[tuple[Listed, ...], str | None]:
        """Never called."""
        raise Unreadable(f"{self.name} knows no sessions")

    def reader(self, run_id: str) -> Nothing:
        """Return a reader of nothing."""
        return Nothing()

    def settled(self, run_id: str, event: Event) -> Outcome | None:
        """Return None: the status tells the end."""
        return None
