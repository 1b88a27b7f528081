"""Why an event was shown again: by right, because the client went back, or because something else was wrong before.

By right is only after a kill, or after another process took the store over. Then a line that is marked `redelivered` may repeat
any event above the applied mark (any at all where no mark is told). After a kill a line without the mark may repeat the one that
was shown last, once, if the client marks nothing.

A gap that says that the stream goes on before an event (at the oldest one kept, say) gives that event the right to come again.

What came again on a connection that had asked to be past it is I5's, what was shown before it was durable is I4's.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from reattach_chaos.checkers.reading import Reading, Showing
from reattach_chaos.history import Applied, Committed, Delivered, Record, Resume, Surfaced

Cause: TypeAlias = Literal["went back", "asked", "undurable"]


@dataclass(frozen=True, slots=True)
class Repeat:
    """An event that was shown again without right, and the one reason that a law tells."""

    place: int
    why: str
    cause: Cause
    witness: tuple[Record, ...]


def repeats(reading: Reading, showing: Showing) -> Iterator[Repeat]:
    """Yield what one client showed again without right."""
    last_place: int | None = None
    again: set[int] = set()  # kills after which an unmarked line came again
    seen: dict[int, Delivered] = {}
    for record, place in showing.shown:
        if place is None:
            continue
        earlier = seen.get(place)
        if earlier is not None and not _behind_a_gap(reading, showing, earlier, record, place):
            why = _wrong(reading, showing, earlier, record, in_hand=place == last_place, again=again)
            if why is not None:
                yield _caused(reading, showing, Repeat(place, why, "went back", (earlier, record)))
        seen[place] = record
        last_place = place


def _behind_a_gap(reading: Reading, showing: Showing, earlier: Delivered, record: Delivered, place: int) -> bool:
    return any(
        gap.what == "gap" and earlier.n < gap.n < record.n and showing.goes_on(gap, place)
        for gap in reading.of(Surfaced, showing)
    )


def _wrong(
    reading: Reading, showing: Showing, earlier: Delivered, record: Delivered, *, in_hand: bool, again: set[int]
) -> str | None:
    """Return what is wrong with a repeat, None where it is by right."""
    death = showing.death_between(earlier, record)
    if record.redelivered:
        begun = death or showing.takeover_between(earlier, record)
        if begun is None:
            return "was shown twice"
        mark = reading.mark(Applied, showing, begun.n)
        place = showing.log.place(record.id)
        confirmed = mark is not None and place is not None and place <= mark
        return "was shown again, though it was confirmed before" if confirmed else None
    if death is None:
        return "was shown twice"
    if reading.history.case.marks:
        return "was shown again after a kill, not marked redelivered"
    if not in_hand or death.n in again:
        return "was shown again after a kill, and was not the last one shown"
    again.add(death.n)
    return None


def _caused(reading: Reading, showing: Showing, repeat: Repeat) -> Repeat:
    """Return a repeat with its cause."""
    earlier, record = repeat.witness
    durable = reading.mark(Committed, showing, earlier.n)
    if reading.of(Committed, showing) and (durable is None or durable < repeat.place):
        return replace(repeat, cause="undurable")
    asked = _asked(reading, showing, record, repeat.place)
    return repeat if asked is None else replace(repeat, cause="asked", witness=(earlier, asked, record))


def _asked(reading: Reading, showing: Showing, record: Record, place: int) -> Resume | None:
    """Return the attach after this event, or a later one, on whose connection it came again."""
    came = [each for each in reading.came(showing, place) if each.n < record.n]
    if not came or came[-1].conn is None:
        return None
    for attach in reading.of(Resume, showing):
        after = showing.log.place(attach.after)
        if attach.conn == came[-1].conn and attach.n < came[-1].n and after is not None and after >= place:
            return attach
    return None
