"""What one subscription knows: an immutable value, so that a test can hold a million of them.

Two watermarks: `admitted` (compared with) and `committed` (asked after). `admitted` survives a loss while commits are in flight.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from reattach.core.backoff import Backoff
from reattach.core.messages import By, Known, Mark, Refusal, TimerName
from reattach.model import GapReason, OnGap, Outcome
from reattach.policy import Policy

Mode = Literal["detached", "attaching", "live", "waiting", "polling", "resyncing", "parked", "ending", "done"]


class Rules(NamedTuple):
    """What does not change while a subscription lives: the policy, the profile's capabilities, the application's choice.

    `by`: how events come. `falls_back`: from a stream that a path holds back, to long polls. `replays`: whether the server can
    send again what comes after a cursor; one that cannot tells its state only, and every attach is a gap.
    """

    policy: Policy = Policy()
    on_gap: OnGap = "raise"
    contiguous: bool = True
    by: By = "stream"
    falls_back: bool = False
    replays: bool = True


class State(NamedTuple):
    """One subscription.

    `flying` counts commits that were asked for and not answered; `known` holds the newest events for admission; `timers` the
    names that run. `fresh`: this connection brought something new. `attempt` counts `Open`s; `asked` is what the last one asked
    after. `reading`: 0 no status read is out, 1 one is, 2 another was asked for meanwhile. `era` grows with each adopted boundary.
    `hole` is the position at which a hole was met once (-1 none). `denied` and `missing` are the attempts at which a 401 or a 404
    was met first (0 none). `loops` counts attaches at one cursor that brought nothing. `settled` is an outcome that a status told
    without a position, met at attempt `settled_at`.

    `by` is how the present connection, or the next one, is made. `held` counts how often in a row a stream held back what the
    status knew, `falls` how often that led to long polls; `answered`: the status was, since the last loss. `barred`: it
    was the stream that refused the token. `owed` is the attempt at which the status told an end above what we have (0 none), and
    `withheld` counts clean ends after it without any of it. `beats` are the newest observed heartbeats.
    `stated`: the server itself said how often its heart beats. `doubted`: the sentences that were said about what it leaves
    unproven. `floor` is the least that the server, or the policy, wants to be waited before the next attempt, in seconds.
    """

    rules: Rules = Rules()
    mode: Mode = "detached"
    admitted: Mark = Mark()
    committed: Mark = Mark()
    flying: int = 0
    known: Known = ()
    timers: frozenset[TimerName] = frozenset()
    backoff: Backoff = Backoff()
    fresh: bool = False
    attempt: int = 0
    asked: Mark = Mark()
    head: int | None = None
    heartbeat: float | None = None
    reading: int = 0
    era: int = 0
    before: bool = False
    over: bool = False
    hole: int = -1
    cause: GapReason | None = None
    refusal: Refusal | None = None
    gapping: bool = False
    resyncs: int = 0
    foreign: int = 0
    garbled: int = 0
    denied: int = 0
    missing: int = 0
    loops: int = 0
    declined: bool = False
    settled: Outcome | None = None
    settled_at: int = 0
    reason: str = ""
    by: By = "stream"
    held: int = 0
    falls: int = 0
    answered: bool = False
    barred: bool = False
    owed: int = 0
    withheld: int = 0
    stated: bool = False
    beats: tuple[float, ...] = ()
    doubted: frozenset[str] = frozenset()
    floor: float = 0.0
