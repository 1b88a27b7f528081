"""Facts that we report, and the hook that receives them. The library writes no log by itself.

An observer is called in the thread that found the fact; it must be quick and must not raise (what it raises is dropped, so that
a faulty hook cannot lose an event).
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One thing that happened to a run's subscription, or to one of its events. `name` is stable.

    Of an event, three instants (`at`), each told of the `count` events up to and including the one at `cursor`:
        "received": one read of the network brought them; what comes twice is told twice.
        "committed": they are on disk, and may be shown from now on.
        "applied": the application confirmed them; `detail` is the consumer. Automatic marks are told one by one.

    Of the subscription:
        "attach": an attempt begins, after `cursor`; `attempt` since the last progress.
        "first_message": over WebSocket, the first after the socket opened: only that a transport exists; `detail`: its type.
        "attached": the server streams; `count` is the newest sequence that it has.
        "closed": over WebSocket; `detail`: the close code, whether it was clean, why; or "by us".
        "waiting": the connection was lost; why is in `detail`.
        "gap": events cannot be had, why is in `detail`; going on after `cursor`, `count` are missing, 0 where nobody knows.
        "release": another version of the agent executes the run: `detail`.
        "finished": it has ended; `detail` is the run's status.
        "failed": it ends with an error, whose text is in `detail`.
        "lease": another process follows, or took over.

    What a person may want to look at:
        "stall": no event for long.
        "fast_loop": attaches that bring nothing.
        "declined": the server streams no more, but the run goes on.
        "buffered": the path holds events back; whether long polls take over is in `detail`.
        "unproven": what this server's version leaves unproven; said once.
        "woke": the machine slept, or its clock was put forward.

    `at` is the wall clock, in UTC; facts of one run and one thread come in the order of what happened.
    """

    name: str
    run_id: str
    at: datetime
    detail: str = ""
    cursor: str | None = None
    attempt: int = 0
    count: int = 0


Observer = Callable[[Fact], None]


def to_logging(logger: logging.Logger | None = None) -> Observer:
    """Return an observer that writes facts to a logger: what a person may have to act on as warnings, the rest for debugging."""
    log = logger or logging.getLogger("reattach")
    warn = {"failed", "gap", "stall", "fast_loop", "declined", "buffered", "unproven"}

    def observe(fact: Fact) -> None:
        log.log(
            logging.WARNING if fact.name in warn else logging.DEBUG,
            "%s run=%s cursor=%s attempt=%d count=%d %s",
            fact.name,
            fact.run_id,
            fact.cursor,
            fact.attempt,
            fact.count,
            fact.detail,
        )

    return observe
