"""How a client's watch of a run ended: it told an end, with or without proof, or an error; it left, or was stopped.

Not judged here. Proof of an end is the settling event, whole on the wire or shown, or a settled status that this client read,
also in a snapshot.
"""

from enum import Enum, auto

from reattach_chaos.checkers.reading import Reading, Showing, read
from reattach_chaos.history import Delivered, Exited, Finished, History, Received, Record, Snapshot, Status, Surfaced

SETTLED = frozenset({"completed", "failed", "cancelled", "requires_action", "paused"})


class Ending(Enum):
    """How it ended."""

    FINISHED = auto()
    UNPROVEN = auto()
    ERROR = auto()
    SILENT_EXIT = auto()
    STOPPED = auto()
    KILLED = auto()
    OPEN = auto()


def ending(history: History, showing: Showing) -> Ending:
    """Return how a client's watch of a run ended."""
    reading = read(history)
    finished = finish(reading, showing)
    if finished is not None:
        return Ending.FINISHED if proof(reading, showing, finished) is not None else Ending.UNPROVEN
    left = last_exit(history, showing)
    if any(each.what == "error" for each in reading.of(Surfaced, showing)):
        return Ending.ERROR
    if left is None:
        return Ending.KILLED if showing.deaths else Ending.OPEN
    return Ending.STOPPED if left.code is None else Ending.SILENT_EXIT


def finish(reading: Reading, showing: Showing) -> Finished | None:
    """Return the client's word on the end of the run."""
    return next(iter(reading.of(Finished, showing)), None)


def proof(reading: Reading, showing: Showing, finished: Finished) -> Record | None:
    """Return what the client could know the end from when it told it; None where there was nothing."""
    settling = {place for place, event in enumerate(showing.log.events) if event.settles}
    came = (record for record in reading.of(Received, showing) if record.whole)
    events: list[Received | Delivered] = [*came, *reading.of(Delivered, showing)]
    for told in events:
        if told.n < finished.n and showing.log.place(told.id) in settling:
            return told
    statuses: list[Status | Snapshot] = [*reading.of(Status, showing), *reading.of(Snapshot, showing)]
    return next((read for read in statuses if read.n < finished.n and read.status in SETTLED), None)


def last_exit(history: History, showing: Showing) -> Exited | None:
    """Return how the client's last process ended; None where it did not, or was killed by plan."""
    exits = [record for record in history.of(Exited) if record.who == showing.who]
    if not exits or showing.deaths[-1] is not exits[-1]:
        return None
    return exits[-1]
