"""Why an event was not shown: each loss has one cause, and one law that names it.

An event that the log has and a client never showed may be lost because the client asked past it, took half of it for whole,
believed an end of stream, went over a refusal in silence, or simply dropped it. If each law that is touched cried "lost", a
report would hold five sentences about one bug. So the cause is found here, once, and each law tells its own. What the application
was told of (a gap, an error) is not lost at all.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, TypeAlias

from reattach_chaos.checkers.ending import Ending, ending
from reattach_chaos.checkers.reading import CLIENT, Log, Reading, Showing, code, read
from reattach_chaos.history import Committed, Created, History, Record, Resume, ResumeRejected, Server, Surfaced

GAP_ERRORS = frozenset({"cursor_expired", "epoch_changed", "cursor_refused", "gap_unfillable", "resume_rejected"})
"""Codes of errors that tell a gap: who attaches again after one of them goes on behind it."""

Cause: TypeAlias = Literal["dropped", "asked past", "half taken", "false end", "refused"]


@dataclass(frozen=True, slots=True)
class Loss:
    """One event that was not shown."""

    place: int
    cause: Cause
    sentence: str
    witness: tuple[Record, ...]


@lru_cache(maxsize=4)
def losses(history: History) -> tuple[Loss, ...]:
    """Return what the client under test lost, in the order of the logs."""
    return tuple(loss for showing in read(history).showings() for loss in lost_by(read(history), showing))


def tells_commits(history: History, who: str = CLIENT) -> bool:
    """Whether a client says what it made durable; then what it may ask after is known exactly."""
    return any(record.who == who for record in history.of(Committed))


def lost_by(reading: Reading, showing: Showing) -> Iterator[Loss]:
    """Yield what one client lost of one run."""
    if _second_run(reading, showing):
        return
    end = ending(reading.history, showing)
    told = _told(reading, showing)
    last = max(showing.first, default=-1)
    for place, alive in enumerate(_known(reading, showing)):
        if not alive or place in showing.first or place in told or _hidden(reading, showing, place):
            continue
        if place > last and end is not Ending.SILENT_EXIT and end is not Ending.FINISHED and end is not Ending.UNPROVEN:
            continue  # told by an error, stopped by us, or killed: what would have come is not lost
        yield _caused(reading, showing, place, last, end)


def _caused(reading: Reading, showing: Showing, place: int, last: int, end: Ending) -> Loss:
    log = showing.log
    event, name = log.events[place], log.name(place)
    came = reading.came(showing, place)
    whole = next((record for record in came if record.whole), None)
    if place > last and end is Ending.UNPROVEN:
        return Loss(
            place, "false end", f"{name} was never shown: the client took an end of stream for the end", (event,)
        )
    refusal = _refusal(reading, showing)
    if whole is None and refusal is not None:
        words = f"{name} was never shown: the server had refused to go on ({refusal.status} {refusal.code})"
        return Loss(place, "refused", words, (event, refusal))
    past = _asked_past(reading, showing, place)
    if past is not None:
        if came and whole is None:
            words = f"{name} was never shown: {past.after} was asked after, and of the event only a part had come"
            return Loss(place, "half taken", words, (came[0], past))
        return Loss(place, "asked past", f"{name} was never shown: the client asked after {past.after}", (event, past))
    witness: tuple[Record, ...] = (event,) if whole is None else (event, whole)
    later = next((record for at, record in sorted(showing.first.items()) if at > place), None)
    if later is not None:
        witness = (*witness, later)
    return Loss(place, "dropped", f"{name} was never shown", witness)


def _second_run(reading: Reading, showing: Showing) -> bool:
    """Whether nobody could know of a run: a create made it that had made another one, and that is told as a second run."""
    created = {record.run for record in reading.history.of(Created)}
    unread = not showing.first and not reading.of(Resume, showing)
    return unread and len(created) > reading.history.case.runs


def _hidden(reading: Reading, showing: Showing, place: int) -> bool:
    """Whether a client could not know of an event: the log had lost its tail on purpose, and had shown another of this number."""
    if not any(record.did == "lost" for record in reading.history.of(Server)):
        return False
    return any(each in showing.first for each in showing.log.same_number(place))


def _known(reading: Reading, showing: Showing) -> list[bool]:
    """Return which places of the log a client has to show: those of the log as it was when the client had read its end."""
    log = showing.log
    for place, event in enumerate(log.events):
        began = reading.begun.get(event.epoch)
        if began is not None and _ended_before(reading, showing, place, began):
            return Log(log.events[:place]).alive
    return log.alive


def _ended_before(reading: Reading, showing: Showing, first: int, began: int) -> bool:
    """Whether a client showed the end of a log, and asked for no stream once another log had begun at this place.

    What a stream that it had before still brings is the old log's, to its end.
    """
    if any(record.n > began for record in reading.of(Resume, showing)):
        return False
    return any(showing.log.events[place].settles and place in showing.first for place in range(first))


def _asked_past(reading: Reading, showing: Showing, place: int) -> Resume | None:
    """Return the first attach after this event or a later one, before anything behind it had been shown."""
    for record in reading.of(Resume, showing):
        after = showing.log.place(record.after)
        if after is not None and after >= place:
            behind = any(at > place and shown.n < record.n for at, shown in showing.first.items())
            return None if behind else record
    return None


def _refusal(reading: Reading, showing: Showing) -> ResumeRejected | None:
    """Return the first answer that said: from there it does not go on."""
    return next((record for record in reading.of(ResumeRejected, showing) if is_gap(record)), None)


def is_gap(record: ResumeRejected) -> bool:
    """Whether a refusal means that events cannot be had after this cursor."""
    return record.status == 410 or record.code in ("cursor_ahead", "cursor_expired", "epoch_changed")


def _told(reading: Reading, showing: Showing) -> set[int]:
    """Return the places that the application was told of as missing: between what was shown before the gap and after it."""
    told: set[int] = set()
    for gap in reading.of(Surfaced, showing):
        if gap.what == "error" and code(gap) not in GAP_ERRORS:
            continue
        before = [place for place, record in showing.first.items() if record.n < gap.n]
        behind = [place for place, record in showing.first.items() if record.n > gap.n]
        told.update(range(max(before, default=-1) + 1, min(behind, default=len(showing.log.events))))
    return told
