"""The seam of the journal: the client's durable copy of committed events plus the cursor, and its law.

The law, checked on every implementation by `reattach.testing.stores`:

1. **Atomic.** A `Write`'s events, cursor, status and gap become durable together or not at all, also under kill -9 at any step.
2. **No holes.** A write names its predecessor's position and is refused ("stale") unless the journal stands exactly there.
3. **Fenced.** A write names the run's lease token and is refused ("fenced") unless that is the current one. Marks likewise.
4. **Durable means flushed.** When `commit`, `intend`, `created`, `adopt` or `mark` returns, a power cut cannot undo it.
5. **Applied <= committed.** A mark above the committed position is refused.
6. **Only what happened.** A failed call changes nothing; the store stays usable.
7. **Each consumer its own mark.** Marks and leases are by run and consumer; none moves another's.
8. **What is removed is named.** Where `prune` took events away, a gap is read in their place, ending at the last one removed; the
   committed position, the row and the marks stay as they were.

Methods block. Writes are made by one thread at a time (the runtime's writer); reads and `note` come from any thread. A store
never decides what to write. Errors: `StoreFailed` (disk full, I/O), `StoreDamaged`, `StoreLocked`; everything else is a bug.

To add a store: one file here, one class with these methods, one line in `open_store`, and the contract suite run on it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple, Protocol, TypeVar

from reattach.core.messages import Arrival, Mark
from reattach.model import GapReason

T = TypeVar("T")


class StoreFailed(Exception):
    """The disk or database refused; nothing of the call was kept."""


class StoreConflict(StoreFailed):
    """A key would have two runs, or a run two keys. Neither may be forgotten, so nothing was changed."""


class StoreLocked(StoreFailed):
    """Another process held the journal for longer than the store waits."""


class StoreUnreachable(StoreFailed):
    """The database's server is away, does not answer or lets nobody in."""


class StoreTaken(StoreLocked):
    """The journal is one process's at a time, and another has it; the text names it: "pid 4711 on HOST since T"."""


class StoreDamaged(Exception):
    """The file is not a journal we can read. `moved_to` is where it was put aside; None: it was left where it is.

    `detail` completes "the journal FILE is …". `lost` holds (server, profile, run_id) of the runs that could still be read from
    it and are not known to be done with.
    """

    def __init__(self, detail: str, moved_to: str | None = None, lost: tuple[tuple[str, str, str], ...] = ()) -> None:
        super().__init__(detail)
        self.detail = detail
        self.moved_to = moved_to
        self.lost = lost


class StoreForeign(StoreDamaged):
    """The file is of another kind and never was a journal. It was left as it is."""


class StoreNewer(StoreDamaged):
    """The journal's schema is newer than this version knows. It was left as it is."""


class Intent(NamedTuple):
    """A create that is about to be sent: on disk before the request leaves.

    A start has the application's key. A continuation has none: it is known by the run that it continues and by its digest.
    """

    server: str
    profile: str
    key: str | None
    request: str
    """The body's JSON text, erased once the run id is known."""
    request_sha256: str
    continues: str | None = None
    """The id of the paused run that the body answers."""


class RunRow(NamedTuple):
    """One run as the journal knows it. `run` is the journal's number of it; times are UTC.

    `run_id` is None while the create has not been answered. `committed` is the place up to which everything is durable, where
    to go on from. `status` is the last known word; `outcome` the JSON text of how it ended (see `entry.outcome_json`), None before.
    `continues` is the id of the paused run that this one goes on from. `needs` is "" unless a person must act ("reconcile",
    "repair"), or "resolved" where a pause needs no answer of ours any more.
    """

    run: int
    server: str
    profile: str
    created_at: datetime
    updated_at: datetime
    run_id: str | None = None
    key: str | None = None
    session_id: str | None = None
    continues: str | None = None
    status: str = "unknown"
    incarnation: int = 1
    committed: Mark = Mark()
    again_to: int = 0
    needs: str = ""
    request: str | None = None
    request_sha256: str | None = None
    sent_at: datetime | None = None
    outcome: str | None = None
    handed_out: bool = False
    settled_at: datetime | None = None

    @property
    def highest(self) -> int:
        """The position up to which events are to be applied: where the journal stands, or stood before it was rewound."""
        return max(self.committed.position, self.again_to)


class GapNote(NamedTuple):
    """A gap to be journaled: it takes one position and begins a new incarnation."""

    reason: GapReason
    after: str | None
    until: str | None
    missing: int | None
    state: Any


class Write(NamedTuple):
    """One commit of one run: events (or one gap), with the cursor, or only an outcome (no events, `mark` == `prev`).

    `outcome` is JSON text when the run is now known to have settled, with `status` its word. `bare` (keep="cursor") keeps of each
    event what its place is, see `entry.bare_element`, and nothing of what it says; a store may then drop whole commits that end
    below every consumer's applied mark, but for the last one.
    """

    run: int
    token: int
    prev: Mark
    mark: Mark
    batch: tuple[Arrival, ...] = ()
    gap: GapNote | None = None
    status: str | None = None
    outcome: str | None = None
    bare: bool = False


class Refusal(NamedTuple):
    """Why one write of a group was not kept: "stale" (the journal stands elsewhere) or "fenced" (another owner)."""

    why: str
    detail: str


class Entry(NamedTuple):
    """One committed event (or gap) as it is read back. `element` is the parsed journal element, see `entry`."""

    position: int
    element: Mapping[str, Any]


class Holder(NamedTuple):
    """Who holds a lease: a process that can be told from every other, and one client in it."""

    host: str
    boot: str
    pid: int
    started: str
    client: str


class Lease(NamedTuple):
    """The right to write a run's events (consumer "") or to move a consumer's mark, while `token` is the current one."""

    run: int
    consumer: str
    token: int


class Busy(NamedTuple):
    """The lease is held by a living holder."""

    holder: Holder
    since: datetime


class Transaction(Protocol):
    """A user's transaction on the journal's database, begun by `begin`; used on the writer's thread only."""

    def execute(self, sql: str, parameters: Sequence[Any] | Mapping[str, Any]) -> list[tuple[Any, ...]]:
        """Run one statement and return all its rows.

        Raises:
            ForbiddenSql: It would end the transaction or touch the journal's own tables.
        """
        ...

    def call(self, function: Callable[[Any], T]) -> T:
        """Return `function(connection)`, with the driver's own connection."""
        ...

    def commit(self, position: int) -> None:
        """Move the consumer's mark to `position` and commit, with the user's rows, durably.

        Raises:
            LeaseGone: The lease token is not the current one; everything was rolled back.
        """
        ...

    def rollback(self) -> None:
        """Undo everything. Never raises."""
        ...


class ForbiddenSql(Exception):
    """The user's SQL would end the transaction or touch `reattach_` tables."""


class LeaseGone(Exception):
    """The lease token is no longer the current one."""


class Store(Protocol):
    """A journal. See the module's law."""

    @property
    def name(self) -> str:
        """What a person calls it: the path, the address without password, or ":memory:"."""
        ...

    @property
    def shared(self) -> bool:
        """Whether other processes may follow in the same journal."""
        ...

    @property
    def transactions_apart(self) -> bool:
        """Whether a user's transaction has a session of its own, beside the writer's; `begin` then comes from any thread."""
        ...

    def open(self) -> None:
        """Open or create it; migrate an older schema in one transaction.

        Raises:
            StoreDamaged: It is unreadable (moved aside, so that the next open begins a new one) or of a newer schema (untouched).
            StoreFailed: It cannot be created, read or written.
        """
        ...

    def close(self) -> None:
        """Carry noted marks into the tables and close. Twice is fine. Never raises."""
        ...

    # runs ---------------------------------------------------------------------------------------------------------

    def intend(self, intent: Intent) -> tuple[RunRow, bool]:
        """Make the intent durable; or return the row that it already has. True: the row is new.

        The row is found by the key; of a continuation, which has none, by the run that it continues and the digest.
        """
        ...

    def created(self, run: int, *, run_id: str, session_id: str | None, status: str) -> RunRow:
        """Store the run id durably and erase the request's body. If a row of that run id exists, the two become one.

        Raises:
            KeyError: The row is gone: it was forgotten, or has become one with another.
            StoreConflict: The row has another run id, or the run another key. Nothing was changed.
        """
        ...

    def forget(self, run: int) -> None:
        """Remove a row that is only a name: an intent whose create was definitely refused, or a run id that no server knows.

        A row with a run id stays if it has anything else: a key, a run that it continues, a status, an event, an outcome or a
        need. Nothing that was ever known to be is forgotten.
        """
        ...

    def adopt(self, server: str, profile: str, run_id: str, *, continues: str | None = None) -> RunRow:
        """Return the row of a run that is attached by id, made durable if it is new.

        `continues` is noted where the row does not name it yet.
        """
        ...

    def row(self, run: int) -> RunRow:
        """Return the row as it stands now."""
        ...

    def find(self, server: str, profile: str, *, key: str | None = None, run_id: str | None = None) -> RunRow | None:
        """Return the row of a key or of a run id."""
        ...

    def continuing(self, server: str, profile: str, run_id: str) -> list[RunRow]:
        """Return the rows that continue a paused run, newest first; those whose create was not answered yet, too."""
        ...

    def rows(self, server: str | None = None, profile: str | None = None) -> list[RunRow]:
        """Return all rows, newest first; of one server if named."""
        ...

    def hand_out(self, run: int) -> None:
        """Note durably that the run's outcome was handed out (it then needs nothing more). Of a row that is gone: nothing."""
        ...

    def need(self, run: int, word: str) -> None:
        """Note durably that a person must act ("reconcile", "repair"), or that a pause is "resolved"; "" takes it back.

        Of a row that is gone nothing is noted: what it needed was settled.
        """
        ...

    # events -------------------------------------------------------------------------------------------------------

    def commit(self, writes: Sequence[Write]) -> list[Refusal | None]:
        """Make a group of writes durable in one transaction, each kept or refused on its own, in order. Carries noted marks.

        Raises:
            StoreFailed: None of them was kept.
        """
        ...

    def read(self, run: int, after: int, limit: int) -> list[Entry]:
        """Return up to about `limit` entries from position after + 1 on, in order (whole batches may exceed it)."""
        ...

    def newest(self, run: int, limit: int) -> list[Entry]:
        """Return the last `limit` entries of the current incarnation, in order."""
        ...

    def rewind(self, lease: Lease, mark: Mark) -> RunRow:
        """With keep="cursor": let the journal stand at `mark` again, durably, since what is behind it must come again.

        The entries behind it are dropped; the row's `again_to` becomes the highest position that was ever committed;
        a commit that brings the end lowers it to where the end is. Status and
        outcome stay.

        Args:
            lease: The writer's (consumer "").
            mark: Where to go on: at or below the committed position.

        Raises:
            LeaseGone: The token is not the current one.
        """
        ...

    # retention ----------------------------------------------------------------------------------------------------

    def prune(self, run: int, upto: int) -> bool:
        """Remove the oldest events of a run, at most up to the position `upto`, in one short transaction; True: there are more.

        Whether the run is done with is the caller's to know. A gap ("expired", `after` None, `until` the last removed cursor) is
        read at the last removed position; `missing` is their number, None if a gap was among them.
        """
        ...

    def compact(self) -> bool:
        """Give a part of the room that removed rows left back to the file system, holding nobody up for long; True: go on.

        Raises:
            StoreFailed, StoreLocked: Not now; nothing of the content is concerned.
        """
        ...

    # marks and leases ---------------------------------------------------------------------------------------------

    def applied(self, run: int, consumer: str) -> int:
        """Return the consumer's applied position, 0 at first; noted marks count."""
        ...

    def consumers(self, run: int) -> dict[str, int]:
        """Return the applied position of every consumer that ever had a lease or a mark of this run; noted marks count."""
        ...

    def note(self, lease: Lease, position: int) -> None:
        """Note the applied position, safe from kill -9 at once, from power loss with the next commit or `carry`. Does not block."""
        ...

    def carry(self) -> None:
        """Carry noted marks into the tables."""
        ...

    def mark(self, lease: Lease, position: int) -> None:
        """Move the applied mark durably; never back.

        Raises:
            LeaseGone: The token is not the current one.
        """
        ...

    def lease(self, run: int, consumer: str, holder: Holder, seconds: float) -> Lease | Busy:
        """Take the lease for `seconds`, with a token one higher, unless a living holder has it.

        A holder is dead if its process is (same host), or if its time is over.
        """
        ...

    def renew(self, leases: Sequence[Lease], seconds: float) -> list[Lease]:
        """Extend the leases; return those that were lost."""
        ...

    def release(self, lease: Lease) -> None:
        """Give it back; a lost one is left alone."""
        ...

    def holder(self, run: int, consumer: str) -> Busy | None:
        """Return who holds the lease now, None if nobody living does."""
        ...

    # the user's own transaction -----------------------------------------------------------------------------------

    def begin(self, lease: Lease, *, expected: int) -> Transaction:
        """Begin a user's transaction that will move the lease's mark from `expected`.

        Raises:
            LeaseGone: The token is not the current one.
            NotImplementedError: This store has no SQL (JSONL, memory).
        """
        ...

    def changed(self) -> int:
        """Return a number that differs after another process or connection wrote."""
        ...
