"""I4, order of marks: applied ≤ delivered ≤ committed, always; nothing is shown or asked after that is not durable.

Only for clients that tell what they committed. What is lost because the client asked after what was not durable is told here.
"""

from collections.abc import Iterator

from reattach_chaos.checkers.losses import losses, tells_commits
from reattach_chaos.checkers.reading import Reading, Showing, read
from reattach_chaos.checkers.ruling import Invalid, Ruling, ruled
from reattach_chaos.history import Applied, Committed, Delivered, History, Resume


def check(history: History) -> Ruling:
    """Compare each showing, each confirmation and each attach with the marks of that instant."""
    reading = read(history)
    found = [wrong for showing in reading.showings() for wrong in _wrong(reading, showing)]
    if tells_commits(history):
        found += [
            Invalid(anomaly="lost", sentence=loss.sentence, witness=loss.witness)
            for loss in losses(history)
            if loss.cause == "asked past"
        ]
    return ruled(found, len(history.of(Committed)))


def _wrong(reading: Reading, showing: Showing) -> Iterator[Invalid]:
    log = showing.log
    commits = reading.of(Committed, showing)
    for record, place in showing.shown if commits else ():
        durable = reading.mark(Committed, showing, record.n)
        if place is not None and (durable is None or place > durable):
            later = next((each for each in commits if each.n > record.n and _at_least(showing, each, place)), None)
            sentence = f"{log.name(place)} was shown before it was durable"
            witness = (record,) if later is None else (record, later)
            yield Invalid(anomaly="undurable", sentence=sentence, witness=witness)
    for attach in reading.of(Resume, showing) if commits else ():
        after = log.place(attach.after)
        durable = reading.mark(Committed, showing, attach.n)
        if after is not None and (durable is None or after > durable):
            before = [each for each in commits if each.n < attach.n]
            until = "nothing" if durable is None else log.name(durable)
            sentence = f"the client asked after {log.name(after)} when {until} was durable"
            yield Invalid(anomaly="undurable", sentence=sentence, witness=(*before[-1:], attach))
    highest = -1
    shown = iter(showing.shown)
    ahead: tuple[Delivered, int | None] | None = next(shown, None)
    for mark in reading.of(Applied, showing):
        while ahead is not None and ahead[0].n < mark.n:
            highest = max(highest, -1 if ahead[1] is None else ahead[1])
            ahead = next(shown, None)
        place = log.place(mark.id)
        if place is not None and place > highest:
            sentence = f"{log.name(place)} was confirmed before it was shown"
            yield Invalid(anomaly="undurable", sentence=sentence, witness=(mark,))


def _at_least(showing: Showing, commit: Committed, place: int) -> bool:
    reached = showing.log.place(commit.id)
    return reached is not None and reached >= place
