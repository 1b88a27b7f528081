"""Histories by hand: a few words that make records, so that a history is as long as a sentence.

ruling = says(no_loss, log(3), shown(1), shown(3), finished(), exited(0))
assert wrong(ruling) == ("lost", "event 2 (e1.2) was never shown", ["logged", "delivered"])
"""

from dataclasses import replace

from reattach_chaos.checkers import Invalid, Valid
from reattach_chaos.history import (
    Applied,
    Case,
    Close,
    Committed,
    CutFired,
    Delivered,
    Died,
    Exited,
    Finished,
    Heartbeat,
    History,
    Logged,
    Received,
    Record,
    Resume,
    ResumeOk,
    ResumeRejected,
    Surfaced,
)


def says(law, *parts, **terms):
    """Return what a law says of a history of these records and lists of records; `terms` are the case's."""
    return law.check(made(*parts, **terms))


def made(*parts, **terms):
    """Return a history of these records and lists of records."""
    return History([Case(id="hand", **terms), *flat(parts)])


def flat(parts):
    """Yield the records of lists in lists."""
    for part in parts:
        yield from [part] if isinstance(part, Record) else flat(part)


def wrong(ruling):
    """Return the anomaly, the sentence and the witness's kinds of a broken law."""
    assert isinstance(ruling, Invalid), ruling
    return ruling.anomaly, ruling.sentence, [record.kind for record in ruling.witness]


def holds(ruling):
    """Whether a law holds, and something was compared."""
    return isinstance(ruling, Valid) and ruling.compared > 0


def silent(ruling):
    """Whether a law has nothing to say."""
    return ruling == Valid(0)


def log(last, *, first=1, epoch="e1", settles="completed", by="control", run=None, **facts):
    """Return the log of a run: events first to last, the last one settling."""
    return [
        Logged(
            who="control",
            id=f"evt_{epoch}_{number}",
            cursor=f"{epoch}.{number}",
            sequence=number,
            epoch=epoch,
            settles=settles if number == last else None,
            by=by,
            run=run,
            **facts,
        )
        for number in range(first, last + 1)
    ]


def shown(*numbers: int, epoch="e1", **facts) -> list[Record]:
    """Return the showings of events."""
    return [Delivered(id=f"{epoch}.{number}", **facts) for number in numbers]


def again(*numbers: int, **facts) -> list[Record]:
    """Return showings that are marked."""
    return shown(*numbers, redelivered=True, **facts)


def asked(after, conn=1, **facts):
    """Return an attach after an event, None for none."""
    return Resume(after=None if after is None else f"e1.{after}", conn=conn, **facts)


def streams(conn=1, epoch="e1", **facts):
    """Return the server's word that it streams."""
    return ResumeOk(conn=conn, epoch=epoch, **facts)


def came(*numbers: int, conn=1, whole=True, epoch="e1", **facts) -> list[Record]:
    """Return events on the wire."""
    return [Received(id=f"{epoch}.{number}", conn=conn, whole=whole, **facts) for number in numbers]


def refused(status=410, code="cursor_expired", conn=1, **facts):
    """Return a refusal."""
    return ResumeRejected(status=status, code=code, conn=conn, **facts)


def committed(*numbers: int, **facts) -> list[Record]:
    """Return commits."""
    return [Committed(id=f"e1.{number}", **facts) for number in numbers]


def applied(*numbers: int, **facts) -> list[Record]:
    """Return marks."""
    return [Applied(id=f"e1.{number}", **facts) for number in numbers]


def finished(status="completed", **facts):
    """Return the client's word on the end."""
    return Finished(status=status, **facts)


def exited(code=0, **facts):
    """Return a process's end."""
    return Exited(code=code, **facts)


def killed(**facts):
    """Return a kill."""
    return Died(**facts)


def gap(**facts):
    """Return a gap that was told."""
    return Surfaced(what="gap", **facts)


def error(reason="reconnect_exhausted", **facts):
    """Return an error that was told."""
    return Surfaced(what="error", reason=reason, **facts)


def cut(fault="rst", at_ms=0.0, conn=1, number=1, position="after-event-1"):
    """Return a fault that fired."""
    return CutFired(who="gate", cut=number, fault=fault, position=position, at_ms=at_ms, conn=conn)


def closed(by="gate", conn=1, **facts):
    """Return a connection's end."""
    return Close(by=by, conn=conn, **facts)


def beat(at_ms, conn=1):
    """Return a heartbeat."""
    return Heartbeat(at_ms=at_ms, conn=conn)


def at(ms: float, *parts) -> list[Record]:
    """Return records at a time."""
    return [replace(record, at_ms=ms) for record in flat(parts)]
