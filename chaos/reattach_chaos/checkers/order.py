"""I3, order: events are shown, and applied, in the log's order. What is shown again is I2's."""

from collections.abc import Iterator

from reattach_chaos.checkers.reading import Reading, Showing, read
from reattach_chaos.checkers.ruling import Invalid, Ruling, ruled
from reattach_chaos.history import Applied, Delivered, History, Surfaced


def check(history: History) -> Ruling:
    """Look at the first showing of each event, and at each mark."""
    reading = read(history)
    found = [
        wrong
        for showing in reading.showings()
        for wrong in (*out_of_order(showing), *_marks_that_fell(reading, showing))
    ]
    return ruled(found, sum(len(showing.first) for showing in reading.showings()))


def out_of_order(showing: Showing) -> Iterator[Invalid]:
    """Yield each event that was first shown after a later one."""
    highest: tuple[int, Delivered] | None = None
    for record, place in showing.shown:
        if place is None or showing.first[place] is not record:
            continue
        if highest is not None and place < highest[0]:
            sentence = f"{showing.log.name(place)} was shown after {showing.log.name(highest[0])}"
            yield Invalid(anomaly="reordered", sentence=sentence, witness=(highest[1], record))
        else:
            highest = (place, record)


def _marks_that_fell(reading: Reading, showing: Showing) -> Iterator[Invalid]:
    """Yield each applied mark below an earlier one of the same life: what was confirmed stays confirmed."""
    highest: Applied | None = None
    for mark in reading.of(Applied, showing):
        place = showing.log.place(mark.id)
        before = None if highest is None else showing.log.place(highest.id)
        if highest is None or highest.life != mark.life or place is None or before is None or place >= before:
            highest = mark
            continue
        told = (gap for gap in reading.of(Surfaced, showing) if gap.what == "gap" and highest.n < gap.n < mark.n)
        if any(showing.goes_on(gap, place) for gap in told):
            highest = mark
            continue
        sentence = f"the applied mark fell from {showing.log.name(before)} to {showing.log.name(place)}"
        yield Invalid(anomaly="reordered", sentence=sentence, witness=(highest, mark))
