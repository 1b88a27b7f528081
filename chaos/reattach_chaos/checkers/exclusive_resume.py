"""I5, exclusive resume: after `resume(c)` comes first the successor of c, then its successor, and nothing up to c is shown.

Five ways to break it. The server sends something else, first or later on the same connection, though a client may mask it. It
takes a cursor of a log that was replaced for one of the new log. It says of the oldest event that it keeps that it is gone. The
client shows again what came although it had asked to be past it. The client asks after what it never showed, so it never comes.
"""

from collections.abc import Iterator

from reattach_chaos.checkers.losses import losses, tells_commits
from reattach_chaos.checkers.reading import Reading, Showing, read
from reattach_chaos.checkers.repeats import repeats
from reattach_chaos.checkers.ruling import Invalid, Ruling, ruled
from reattach_chaos.checkers.sent import wrong_steps
from reattach_chaos.history import CutFired, History, Received, Resume, ResumeRejected, Server

EARLIEST, GONE = "earliest", 410


def check(history: History) -> Ruling:
    """Compare what came, and what was shown, with what was asked after."""
    reading = read(history)
    found: list[Invalid] = []
    for showing in reading.showings():
        for repeat in repeats(reading, showing):
            if repeat.cause == "asked":
                name = showing.log.name(repeat.place)
                sentence = f"{name} was shown again, though the client had asked to go on after it"
                found.append(Invalid(anomaly="duplicated", sentence=sentence, witness=repeat.witness))
    if not tells_commits(history):
        found += [
            Invalid(anomaly="lost", sentence=loss.sentence, witness=loss.witness)
            for loss in losses(history)
            if loss.cause == "asked past"
        ]
    found += [wrong for showing in reading.showings() for wrong in _wrong_start(reading, showing)]
    found += [wrong for showing in reading.showings() for wrong in _of_another_log(reading, showing)]
    found += [wrong for showing in reading.showings() for wrong in wrong_steps(reading, showing)]
    found += [wrong for showing in reading.showings() for wrong in _oldest_refused(reading, showing)]
    return ruled(found, sum(attach.after is not None for attach in history.of(Resume)))


def _wrong_start(reading: Reading, showing: Showing) -> Iterator[Invalid]:
    """Yield each stream whose first whole event is not the successor of what was asked after."""
    log = showing.log
    ours = {record.conn for record in reading.history.of(CutFired) if record.fault in ("duplicate", "empty")}
    skipped = any(record.did == "skipped" for record in reading.history.of(Server))
    first: dict[int | None, Received] = {}
    for came in reading.of(Received, showing):
        if came.whole:
            first.setdefault(came.conn, came)
    for attach in reading.of(Resume, showing):
        after, came_first = log.place(attach.after), first.get(attach.conn)
        if after is None or came_first is None or attach.conn in ours or skipped:
            continue
        place, expected = log.place(came_first.id), next_alive(log.alive, after)
        if place is None or not log.alive[after] or place == expected:
            continue
        sentence = f"asked after {log.name(after)}, the server first sent {log.name(place)}"
        yield Invalid(
            anomaly="duplicated" if place <= after else "lost", sentence=sentence, witness=(attach, came_first)
        )


def _of_another_log(reading: Reading, showing: Showing) -> Iterator[Invalid]:
    """Yield each stream that was asked for after an event of a log that had been replaced, and brought events of the new one."""
    log = showing.log
    asked: dict[int | None, Resume] = {}
    records: list[Resume | Received] = [*reading.of(Resume, showing), *reading.of(Received, showing)]
    for record in sorted(records, key=lambda each: each.n):
        if isinstance(record, Resume):
            asked[record.conn] = record
            continue
        attach, place = asked.get(record.conn), log.place(record.id)
        after = None if attach is None else log.place(attach.after)
        if attach is None or after is None or place is None or not record.whole:
            continue
        old, new = log.events[after].epoch, log.events[place].epoch
        if old != new and reading.begun.get(new, attach.n) < attach.n:
            asked_after = f"asked after {log.name(after)}, whose log had been replaced"
            sentence = f"{asked_after}, the server sent {log.name(place)} of the new one"
            yield Invalid(anomaly="silent gap", sentence=sentence, witness=(attach, record))
            del asked[record.conn]


def _oldest_refused(reading: Reading, showing: Showing) -> Iterator[Invalid]:
    """Yield each attach at the oldest event kept that was answered as if it were an old cursor; whatever is kept, that is there."""
    refused = {answer.conn: answer for answer in reading.of(ResumeRejected, showing) if answer.status == GONE}
    for attach in reading.of(Resume, showing):
        answer = refused.get(attach.conn)
        if attach.after == EARLIEST and answer is not None and answer.n > attach.n:
            sentence = (
                f"asked for the oldest event that it keeps, the server answered {answer.status} {answer.code}".rstrip()
            )
            yield Invalid(anomaly="lost", sentence=sentence, witness=(attach, answer))


def next_alive(alive: list[bool], place: int) -> int | None:
    """Return the next place that is in the log at the end."""
    return next((each for each in range(place + 1, len(alive)) if alive[each]), None)
