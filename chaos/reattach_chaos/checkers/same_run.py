"""I7, same run: all that is shown, asked for and sent is of the runs that the case is about, and of their logs."""

from reattach_chaos.checkers.reading import CLIENT, named, read
from reattach_chaos.checkers.ruling import Invalid, Ruling, ruled
from reattach_chaos.checkers.sent import foreign
from reattach_chaos.history import Committed, Created, Delivered, Finished, History, Record, Resume

_KINDS: tuple[type[Record], ...] = (Resume, Committed, Delivered, Finished)


def check(history: History) -> Ruling:
    """Look for runs and events that the server's logs do not have."""
    reading = read(history)
    runs = {*reading.logs, *(record.run for record in history.of(Created)), None}
    found: list[Invalid] = []
    compared = 0
    for record in history if reading.logs else ():
        if record.who != CLIENT or not isinstance(record, _KINDS):
            continue
        compared += 1
        if record.run not in runs:
            first = next(event for log in reading.logs.values() for event in log.events)
            sentence = f"the client speaks of run {record.run}, the case is about {first.run}"
            found.append(Invalid(anomaly="foreign", sentence=sentence, witness=(first, record)))
        elif isinstance(record, Delivered) and reading.place(record, record.id) is None:
            sentence = f"{named(record.id)} was shown and is not in the log"
            found.append(Invalid(anomaly="foreign", sentence=sentence, witness=(record,)))
    found += [wrong for showing in reading.showings() for wrong in foreign(reading, showing)]
    return ruled(found, compared)
