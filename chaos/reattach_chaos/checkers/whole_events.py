"""I6, whole events: nothing is applied from an event whose blank line did not come, and no id is taken from it.

Half an event that is shown is a changed one; a cursor from half an event skips the other half for ever.
"""

from collections.abc import Iterator

from reattach_chaos.checkers.losses import losses
from reattach_chaos.checkers.reading import Reading, Showing, read
from reattach_chaos.checkers.ruling import Invalid, Ruling, ruled
from reattach_chaos.history import History, Received, Resume, Snapshot


def check(history: History) -> Ruling:
    """Look at every event of which a part came."""
    reading = read(history)
    found = [
        Invalid(anomaly="lost", sentence=loss.sentence, witness=loss.witness)
        for loss in losses(history)
        if loss.cause == "half taken"
    ]
    for showing in reading.showings():
        found += _shown(reading, showing)
        found += [] if found else _asked(reading, showing)
    return ruled(found, sum(not record.whole for record in history.of(Received)))


def _shown(reading: Reading, showing: Showing) -> Iterator[Invalid]:
    for place, record in showing.first.items():
        came = [each for each in reading.came(showing, place) if each.n < record.n]
        if came and not any(each.whole for each in came):
            sentence = f"{showing.log.name(place)} was shown, and only a part of it had come"
            yield Invalid(anomaly="changed", sentence=sentence, witness=(came[0], record))


def _asked(reading: Reading, showing: Showing) -> Iterator[Invalid]:
    for attach in reading.of(Resume, showing):
        after = showing.log.place(attach.after)
        stated = (each.boundary for each in reading.of(Snapshot, showing) if each.n < attach.n)
        if after is not None and after in map(showing.log.place, stated):
            continue  # the server's state holds that event, whole
        came = [] if after is None else [each for each in reading.came(showing, after) if each.n < attach.n]
        if after is not None and came and not any(each.whole for each in came):
            sentence = f"the client asked after {showing.log.name(after)}, and only a part of it had come"
            yield Invalid(anomaly="lost", sentence=sentence, witness=(came[-1], attach))
