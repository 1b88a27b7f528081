"""`Numbering`: which event of its run an event is, whatever its id looks like.

An id `<epoch>.<sequence>`, or a plain number, says it itself. Any other id gets the number after the last one when it is first
seen, and keeps it when it comes again on another connection.
"""

MOST = 1_000_000  # a longer number is a time or a vendor's own, not a sequence


def sequence_of(id: str | None) -> int | None:
    """Return the sequence that an id names: `e1.12` and `12` name 12; None where it names none."""
    tail = (id or "").rpartition(".")[2]
    if not (tail.isascii() and tail.isdigit()) or len(tail) > 7:
        return None
    return int(tail) if int(tail) <= MOST else None


class Numbering:
    """The numbers of one run's events, over all its connections."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self.highest = 0
        """The highest number that was given so far."""

    def of(self, id: str | None, expected: int) -> int:
        """Return the number of the event with this id, which comes where `expected` would."""
        number = sequence_of(id)
        if number is None:
            number = self._numbers.setdefault(id, expected) if id else expected
        self.highest = max(self.highest, number)
        return number

    def after(self, cursor: str | None) -> int:
        """Return the number of the event at a cursor: the next one is expected to have one more."""
        number = sequence_of(cursor)
        return self._numbers.get(cursor or "", 0) if number is None else number
