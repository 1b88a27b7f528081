"""What was planned for a case and what was done to it.

Kinds: `case`, `cut.planned`, `cut.fired`, `cut.missed`, `server`, `store`, `resources`.

The first record of a history is its `Case`: it holds the terms by which the laws judge, so that a file can be judged again years
later without the program that made it.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

from reattach_chaos.history.record import Record, known

VERSION = 1


@known
@dataclass(frozen=True, slots=True, kw_only=True)
class Case(Record):
    """The case and its terms.

    Attributes:
        version: Of the history's format.
        id: The case's readable id; also the schedule's.
        seed: Of the whole run.
        mode: Whether the client follows a run that exists, or starts it.
        runs: How many runs the case is to make on the server; more is a second run.
        marks: The client marks what it may have shown before (`redelivered`): a repeat without the mark is then a duplicate.
            Without this, one unmarked repeat a kill is allowed.
        heartbeat_ms: What the server states and keeps.
        stall_heartbeats: After so many heartbeats of silence a connection must have been given up.
        converge_ms: Within this time of the last fault the client must have caught up or ended.
        give_up_ms: Before so much time without a good answer, a transient fault is no reason to end. None: never is.
        floor_ms: Least wait of the client's backoff; None: its backoff is not known, only the rate is judged.
        base_ms: Upper limit of the first wait; doubled for each further one.
        ceiling_ms: Highest upper limit of a wait.
        storm_connects: More connections than this within `storm_window_ms` without a new event are a storm.
        storm_window_ms: See there.
        permanent_tries: A permanent refusal may be met so often at one cursor.
        schedule: The path or text that repeats the case.
    """

    kind: ClassVar[str] = "case"

    version: int = VERSION
    id: str
    seed: int = 0
    mode: Literal["follow", "start"] = "follow"
    runs: int = 1
    marks: bool = False
    heartbeat_ms: float = 15_000.0
    stall_heartbeats: float = 4.0
    converge_ms: float = 30_000.0
    give_up_ms: float | None = None
    floor_ms: float | None = None
    base_ms: float = 1000.0
    ceiling_ms: float = 30_000.0
    storm_connects: int = 60
    storm_window_ms: float = 1000.0
    permanent_tries: int = 3
    schedule: str = ""


@known
@dataclass(frozen=True, slots=True, kw_only=True)
class CutPlanned(Record):
    """A fault that the case is about. `cut` numbers the schedule's faults from 1; the other words are the schedule's.

    `prefix_sha256` is that of the response's bytes before the position in a clean pass, where a byte offset was planned.
    """

    kind: ClassVar[str] = "cut.planned"

    cut: int
    fault: str
    position: str
    phase: str = ""
    direction: str = ""
    event_kind: str = ""
    sequence: int | None = None
    offset: int | None = None
    prefix_sha256: str | None = None


@known
@dataclass(frozen=True, slots=True, kw_only=True)
class CutFired(Record):
    """The fault was done, at this place. `around` is what a caption shows: some bytes before and behind."""

    kind: ClassVar[str] = "cut.fired"

    cut: int
    fault: str
    position: str
    sequence: int | None = None
    offset: int | None = None
    prefix_sha256: str | None = None
    around: str = ""


@known
@dataclass(frozen=True, slots=True, kw_only=True)
class CutMissed(Record):
    """The place was reached and the fault could not be done there; `reason` says why."""

    kind: ClassVar[str] = "cut.missed"

    cut: int
    reason: str = ""


@known
@dataclass(frozen=True, slots=True, kw_only=True)
class Server(Record):
    """Something happened to the server or its log: what may cause a gap, a refusal or a pause.

    Attributes:
        did: "trimmed" and "expired": events up to `until` are not kept; "epoch": the log was replaced; "lost": its tail is gone;
            "skipped": events were not sent though they are kept; "refused": it would not take a cursor.
        until: The newest sequence that is concerned.
        epoch: The log's epoch from now on.
    """

    kind: ClassVar[str] = "server"

    did: Literal[
        "started",
        "stopped",
        "killed",
        "trimmed",
        "expired",
        "epoch",
        "lost",
        "skipped",
        "refused",
        "token_expired",
        "clock",
    ]
    until: int | None = None
    epoch: str | None = None
    instance: str | None = None


@known
@dataclass(frozen=True, slots=True, kw_only=True)
class Store(Record):
    """The client's store failed or lagged, by plan or truly."""

    kind: ClassVar[str] = "store"

    did: Literal["failed", "lagged", "recovered"]
    operation: str = "commit"
    reason: str = ""


@known
@dataclass(frozen=True, slots=True, kw_only=True)
class Resources(Record):
    """What the client's process held, before and after. `task_errors`: those that nobody caught."""

    kind: ClassVar[str] = "resources"

    when: Literal["before", "after"]
    sockets: int = 0
    tasks: int = 0
    memory_bytes: int = 0
    task_errors: int = 0
