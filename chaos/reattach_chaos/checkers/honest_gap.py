"""I18, honest gap: after an expiry or a new epoch the application is told, with what is missing; never a silent restart.

Three ways to break it: a refused cursor, and then events without a word, though others are missing between; events of another
epoch, without a word; a gap whose number of missing events is not the log's.
"""

from collections.abc import Iterator

from reattach_chaos.checkers.exclusive_resume import next_alive
from reattach_chaos.checkers.losses import is_gap, losses
from reattach_chaos.checkers.reading import Reading, Showing, read
from reattach_chaos.checkers.ruling import Invalid, Ruling, ruled
from reattach_chaos.history import Delivered, History, Record, Resume, ResumeOk, ResumeRejected, Surfaced


def check(history: History) -> Ruling:
    """Look at what followed each refusal and each new epoch, and at each gap that was told."""
    reading = read(history)
    found = [wrong for showing in reading.showings() for wrong in _silent(reading, showing)]
    if not found:
        found += [
            Invalid(anomaly="silent gap", sentence=loss.sentence, witness=loss.witness)
            for loss in losses(history)
            if loss.cause == "refused"
        ]
    found += [wrong for showing in reading.showings() for wrong in _miscounted(reading, showing)]
    gaps = [record for record in history.of(Surfaced) if record.what == "gap"]
    return ruled(found, len(gaps) + sum(is_gap(record) for record in history.of(ResumeRejected)))


def _silent(reading: Reading, showing: Showing) -> Iterator[Invalid]:
    """Yield each event that was shown behind a break in the log without a word between."""
    told = reading.of(Surfaced, showing)
    breaks = list(_breaks(reading, showing))
    last: Delivered | None = None
    before: int | None = None
    for record, place in showing.shown:
        if place is None:
            continue
        came = reading.came(showing, place)
        follows = place == next_alive(showing.log.alive, -1 if before is None else before)
        for refusal, again in breaks:
            fresh = not follows and (not came or came[0].n > again.n)
            if again.n < record.n and fresh and not any(refusal.n < each.n < record.n for each in told):
                sentence = (
                    f"after {refusal.status} {refusal.code} {showing.log.name(place)} was shown, and no gap was told"
                )
                yield Invalid(anomaly="silent gap", sentence=sentence, witness=(refusal, again, record))
                return
        other = last is not None and before is not None and _other_epoch(showing, before, place)
        if last is not None and before is not None and other and not any(last.n < each.n < record.n for each in told):
            names = f"{showing.log.name(place)} is of another epoch than {showing.log.name(before)}"
            yield Invalid(anomaly="silent gap", sentence=f"{names}; no gap was told", witness=(last, record))
            return
        last, before = record, place


def _breaks(reading: Reading, showing: Showing) -> Iterator[tuple[ResumeRejected, Record]]:
    """Yield each refusal after which the stream went on from another cursor, with the answer that let it."""
    asked: str | None = None
    refused: tuple[ResumeRejected, str | None] | None = None
    records: list[Record] = [
        *reading.of(Resume, showing),
        *reading.of(ResumeOk, showing),
        *reading.of(ResumeRejected, showing),
    ]
    for record in sorted(records, key=lambda each: each.n):
        match record:
            case Resume():
                asked = record.after
            case ResumeRejected() if is_gap(record) and refused is None:
                refused = (record, asked)
            case ResumeOk() if refused is not None:
                if asked != refused[1]:
                    yield refused[0], record
                refused = None
            case _:
                pass


def _other_epoch(showing: Showing, before: int, place: int) -> bool:
    return showing.log.events[before].epoch != showing.log.events[place].epoch


def _miscounted(reading: Reading, showing: Showing) -> Iterator[Invalid]:
    log = showing.log
    for gap in reading.of(Surfaced, showing):
        after, until = log.place(gap.after), log.place(gap.until)
        if gap.missing is None or after is None or until is None or _other_epoch(showing, after, until):
            continue
        there = sum(log.alive[after + 1 : until + 1])
        if gap.missing != there:
            names = f"from {log.name(after)} to {log.name(until)} are {there}"
            sentence = f"a gap of {gap.missing} events was told; {names}"
            yield Invalid(anomaly="silent gap", sentence=sentence, witness=(log.events[until], gap))
