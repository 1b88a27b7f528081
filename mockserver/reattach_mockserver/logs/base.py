"""The event log: who gives out sequences and epochs, and what every implementation promises.

The law (tests/contracts/test_event_logs.py runs it on each implementation):

1. *Durable before visible.* A read, by anyone, sees an event only after the append that brought it is as
   durable as the log ever makes it. A write's future is done after that, never before.
2. *One order without holes.* The log gives sequences, from 1, in the order of its transactions, however many
   producers append at once. An event's JSON text is made there and never again.
3. *Idempotent by id.* An entry whose id the run holds already is not appended a second time; its stored form
   is returned. So an append whose answer was lost may be sent again, also the settling one.
4. *Conditional.* An append is refused as a whole, with nothing written, if its writer token is not the run's
   (`WriterLost`: somebody took over) or if the run has settled and an entry is new (`RunSettled`).
5. *Together.* A run, its key, its session, its first events and what its creation lets lapse or resolves are one
   transaction; so are a settling event and the run's status, a call and its operation, an effect and its result.
6. *Never behind.* A run's record read after an event was visible is at least as new as that event.
7. *By claim.* Who claims an operation voids every claim before it, in one transaction with finding out that no effect
   stands. An effect under a void claim is refused (`ClaimLost`) with nothing written, however late it comes.
8. *After an indefinite error* (a failed fsync) the log is reopened and read again; who was waiting gets
   `LogUnavailable` and may repeat the same call.
9. *Shared or not, one plays.* A run has one owner: who created it or took it over last. Where processes share a log, a run whose
   owner is gone becomes an orphan in bounded time, and of several that take it over one does.

**To add a log:** one file, one class with these methods; the arithmetic of records is `advance.py`, not yours.
Reads must be quick (an indexed range); each sees one moment, and no moment before one that anybody has seen. Two of
them are two moments: whoever needs both of a page and a record reads the record last. Then a line in the contract
suite's list. Nothing here knows a script, a subscriber or HTTP.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

from reattach_mockserver.event import Entry, Stored

Durability: TypeAlias = Literal["memory", "process", "power"]


class LogError(Exception):
    """A write was refused, or its outcome is not known."""


class WriterLost(LogError):
    """Another writer has taken the run over; nothing was written."""


class RunSettled(LogError):
    """The run has settled; nothing was written."""


class SessionBusy(LogError):
    """The session has a run that is not settled; nothing was written."""

    def __init__(self, run_id: str) -> None:
        super().__init__(run_id)
        self.run_id = run_id


class TooManyRuns(LogError):
    """The principal has as many runs as it may have that are not settled; nothing was written."""


class NotAnswered(LogError):
    """The run cannot be continued with these answers, and `code` is the protocol's word for why; nothing was written."""

    def __init__(self, code: Literal["not_paused", "action_resolved", "action_expired"]) -> None:
        super().__init__(code)
        self.code = code


class ClaimLost(LogError):
    """Another attempt has claimed the operation; nothing was done."""


class LogUnavailable(LogError):
    """The storage failed: the write may or may not have happened. Repeating the same call is safe."""


@dataclass(frozen=True, slots=True)
class RunRecord:
    """A run as the log knows it. Fields are columns, in order; JSON members are texts.

    `outcome`: the data of the settling event. `resolution`: what all actions of a paused run came to,
    at `resolved_at` ms. `trim_to`: the first sequence that retention wants kept; `first_sequence` follows
    it as far as `pins`, JSON `[[sequence, until_ms], …]` of snapshots handed out, allow. `cancel_reason`: a
    cancel was recorded. `token`: digest of the token that created it, "" without one. `pause` and `answers`:
    see `pause.py`. `input`: what it was created with, for a run that a plug-in plays.
    """

    id: str
    number: int
    principal: str
    key: str
    digest: str
    session_id: str
    script: str
    created_at: str
    metadata: str | None
    token: str
    incarnation: int = 1
    status: str = "queued"
    first_sequence: int = 1
    last_sequence: int = 0
    last_id: str | None = None
    last_time: str = ""
    last_at: int = 0
    ended_at: str | None = None
    outcome: str | None = None
    release: str | None = None
    continues: str | None = None
    continued_by: str | None = None
    cancel_reason: str | None = None
    writer: int = 1
    resolution: str | None = None
    resolved_at: int | None = None
    trim_to: int = 1
    pins: str | None = None
    pause: str | None = None
    answers: str | None = None
    input: str | None = None

    @property
    def epoch(self) -> str:
        """The identity of this incarnation of the run's log."""
        return f"{self.id.removeprefix('run_')}-{self.incarnation}"


@dataclass(frozen=True, slots=True)
class SessionRecord:
    """A session of a principal; two principals may use the same id without knowing of each other."""

    principal: str
    id: str
    created_at: str
    last_run_id: str


@dataclass(frozen=True, slots=True)
class Effect:
    """One side effect of a tool, done at most once for its run and operation id.

    `attempts` counts how often the engine came to do it; what was done counts as one. `result` is the JSON text of what
    it gave, the first time.
    """

    run_id: str
    operation_id: str
    tool: str
    reversible: bool
    attempts: int = 1
    result: str = "null"


@dataclass(frozen=True, slots=True)
class Claim:
    """Who may perform an operation: the attempt that came `number`-th to claim it, from 1.

    `done` is its effect, if that stands: then nothing is left to do and nothing was claimed.
    """

    operation_id: str
    number: int
    done: Effect | None = None


@dataclass(frozen=True, slots=True)
class OperationRecord:
    """What the log knows of an operation of a run; `result` is a JSON text where it was committed. See `event.Operation`."""

    run_id: str
    id: str
    tool: str
    status: Literal["pending", "committed", "failed", "unknown"]
    reversible: bool | None
    external: bool
    waits: bool
    result: str | None = None


@dataclass(frozen=True, slots=True)
class Answers:
    """What a paused run is to be continued with, at `at` ms; equal answers have equal digests.

    `responses` is the JSON text of the list of them, as they were sent.
    """

    responses: str
    digest: str
    at: int


@dataclass(frozen=True, slots=True)
class Base:
    """What a run's events up to `sequence` amount to; `fold` is JSON of the engine's (`engine/fold.py`)."""

    sequence: int
    fold: str


@dataclass(frozen=True, slots=True)
class Counts:
    """How much work the log knows of, for whoever compares it with what was asked."""

    runs: int
    events: int
    effects: int
    effect_attempts: int


class Listener(Protocol):
    """Whom a log that several processes share tells what the others do. Called in the log's event loop; returns at once."""

    def changed(self, run_id: str) -> None:
        """Hear that another process has changed the run."""

    def orphaned(self) -> None:
        """Hear that there are runs that nobody plays."""

    def revoked(self, token: str) -> None:
        """Hear that the token of this digest is good no more."""

    def missed(self) -> None:
        """Hear that something may have been missed, whatever it was."""


class EventLog(Protocol):
    """Where runs and their events are. See this module's docstring for the law."""

    @property
    def name(self) -> str:
        """What to call it to a person: `memory`, or a path."""

    @property
    def durability(self) -> Durability:
        """What a write that has been answered survives."""

    def listen(self, listener: Listener) -> None:
        """Say whom to tell, from the next `open` on, what other processes do with the same log. That of one tells nothing."""

    async def open(self) -> None:
        """Make ready for use; called in the event loop that will use it, again after `close`."""

    async def close(self) -> None:
        """Finish what was asked for and let go of the storage."""

    async def create(
        self,
        run: RunRecord,
        entries: Sequence[Entry],
        *,
        runs_limit: int | None = None,
        answers: Answers | None = None,
    ) -> tuple[RunRecord, bool]:
        """Create the run with its first events, or return the one that has its principal's key already.

        Actions of paused runs in its session lapse. `number` is given by the log. With `answers` it continues the run
        `run.continues`; if that was answered so before, its continuation is returned and has this key as well.

        Returns:
            The run as it is now, under the key that was asked with, and whether this call made it.

        Raises:
            NotAnswered: The run to be continued does not take these answers.
            SessionBusy: A run of the session is not settled.
            TooManyRuns: `runs_limit` runs of the principal are not settled.
        """

    async def append(
        self, run_id: str, writer: int, entries: Sequence[Entry], *, keep: int | None = None
    ) -> tuple[RunRecord, tuple[Stored, ...]]:
        """Append all entries or none; return the run and the stored form of each, in the order given.

        `keep` is how many events the run's retention wants kept, None for all.

        Raises:
            WriterLost: See rule 4.
            RunSettled: See rule 4.
        """

    async def take_over(self, run_id: str, writer: int | None = None) -> RunRecord:
        """Give the run a new writer token and this process as its owner: whoever wrote before appends nothing more.

        Raises:
            WriterLost: The token is not `writer` any more; somebody else was first.
        """

    async def orphans(self, limit: int | None = None) -> tuple[RunRecord, ...]:
        """Return runs that have not settled and that no living process owns, oldest first or at random; not more than `limit`.

        Just opened, a log of one process returns all that have not settled: whoever owned them is gone.
        """

    async def owned(self) -> tuple[RunRecord, ...]:
        """Return the runs that have not settled and that this process owns: those it has created or taken over."""

    async def ask_cancel(self, run_id: str, reason: str) -> RunRecord:
        """Record that the run is to be cancelled, unless it has settled. The first reason stays."""

    async def resolve(self, run_id: str, resolution: str, at: int) -> RunRecord:
        """Record what a paused run's actions came to, unless they came to something already."""

    async def trim(self, run_id: str, first: int, at: int) -> RunRecord:
        """Let go of the events before `first`, as far as pins allow. Never takes back a trim."""

    async def pin(self, run_id: str, sequence: int, at: int, until: int) -> RunRecord:
        """Keep the events after `sequence` until `until`, in ms."""

    async def compact(self, run_id: str, writer: int, done: int, base: Base) -> None:
        """Let go of the events up to that of `base`, and keep it in their place, if the log has no room for all.

        They stay counted, known by id and as steps. Nothing happens if the run has another writer or was not compacted
        up to `done` (0: never): somebody else was first.
        """

    async def base(self, run_id: str) -> Base | None:
        """Return what is kept in place of the run's first events, None if all events are there."""

    async def renew(self, run_id: str, keep: int | None = None) -> RunRecord:
        """Begin a new epoch with a new writer token; `keep` drops the events after that sequence.

        A run that was answered keeps them all: its continuation is in the log, and came after them.
        """

    async def mark(self, run_id: str, step: str) -> None:
        """Remember that a step which leaves no event was played."""

    async def claim(self, run_id: str, writer: int, operation_id: str) -> Claim:
        """Become the only attempt that may perform the operation, unless its effect stands.

        Whoever claimed it before may no more, asleep or not: that is how a call without a result is reconciled.

        Raises:
            WriterLost: See rule 4.
            RunSettled: The run is over, so nothing new is begun for it.
        """

    async def perform(self, effect: Effect, *, claim: int = 0) -> Effect:
        """Do a side effect unless it was done, count the attempt, and return what the ledger holds.

        `claim` is the number of the claim that it is done under; 0 for an operation that nobody ever claimed.

        Raises:
            ClaimLost: See rule 7.
        """

    async def revoke(self, token: str) -> None:
        """Remember that the token of this digest is good no more."""

    async def run(self, run_id: str) -> RunRecord | None:
        """Return the run."""

    async def by_key(self, principal: str, key: str) -> RunRecord | None:
        """Return the run that was created under this key; `key` and `digest` are those of this create."""

    async def read(self, run_id: str, after: int, limit: int, max_bytes: int) -> tuple[Stored, ...]:
        """Return the events after `after`, at most `limit`, and no more than `max_bytes` but for the first."""

    async def event_id(self, run_id: str, sequence: int) -> str | None:
        """Return the id of the event there, also of a trimmed one; None if there never was one."""

    async def first_since(self, run_id: str, at: int) -> int:
        """Return the sequence of the first event appended at or after `at` ms; the last one + 1 if none."""

    async def session(self, principal: str, session_id: str) -> SessionRecord | None:
        """Return the session."""

    async def session_runs(self, principal: str, session_id: str, after: int, limit: int) -> tuple[RunRecord, ...]:
        """Return the session's runs whose number is above `after`, oldest first."""

    async def runs(self, after: int, limit: int) -> tuple[RunRecord, ...]:
        """Return the runs of all principals whose number is above `after`, oldest first: for whoever tests, not for a face."""

    async def unfinished(self, principal: str | None = None) -> tuple[RunRecord, ...]:
        """Return the runs that have not settled, oldest first; of all principals if None."""

    async def busy(self, principal: str) -> int:
        """Return how many runs of the principal have not settled."""

    async def steps(self, run_id: str) -> frozenset[str]:
        """Return the steps whose event the run holds, and those that were marked."""

    async def effects(self, run_id: str) -> tuple[Effect, ...]:
        """Return the run's side effects, in the order in which they were done."""

    async def operation(self, principal: str, operation_id: str) -> OperationRecord | None:
        """Return what is known of an operation; of several runs that used the id, what the newest knows."""

    async def revoked(self) -> frozenset[str]:
        """Return the digests of the tokens that are good no more."""

    async def counts(self) -> Counts:
        """Count."""
