"""I1, no loss: what the client showed of a run is what the server's log holds, each event with the log's content.

An event that was never shown is lost, unless the application was told: of a gap, or by an error that the watch ended. What has a
law of its own is told there (see `losses.py`). The log read again after the end must be the log that the control reader saw live,
too: a server that answers differently has lost, doubled or changed something itself.
"""

from collections.abc import Iterator

from reattach_chaos.checkers.losses import losses
from reattach_chaos.checkers.reading import Log, Reading, read
from reattach_chaos.checkers.ruling import Invalid, Ruling, Unknown, ruled
from reattach_chaos.checkers.sent import wrong_bytes
from reattach_chaos.history import History, Logged

NOTHING_PLAYED = "the server's log is empty: nothing was played"


def check(history: History) -> Ruling:
    """Compare what was shown with the log."""
    reading = read(history)
    if not any(log.events for log in reading.logs.values()):
        return Unknown(NOTHING_PLAYED)
    found = [
        Invalid(anomaly="lost", sentence=loss.sentence, witness=loss.witness)
        for loss in losses(history)
        if loss.cause == "dropped"
    ]
    found += _changed(reading)
    found += [wrong for showing in reading.showings() for wrong in wrong_bytes(reading, showing)]
    found += _replayed(reading)
    return ruled(found, sum(len(log.events) for log in reading.logs.values()))


def _changed(reading: Reading) -> Iterator[Invalid]:
    for showing in reading.showings():
        for record, place in showing.shown:
            if place is None or record.sha256 is None:
                continue
            event = showing.log.events[place]
            if event.sha256 is not None and event.sha256 != record.sha256:
                sentence = f"{showing.log.name(place)} was shown with another content than the log's"
                yield Invalid(anomaly="changed", sentence=sentence, witness=(event, record))


def _replayed(reading: Reading) -> Iterator[Invalid]:
    """Compare the log as it was read again after the end with the log as it was read live."""
    again: dict[str | None, list[Logged]] = {}
    for event in reading.history.of(Logged):
        if event.by == "replay":
            again.setdefault(reading.run(event), []).append(event)
    for run, events in again.items():
        yield from _compared(reading.logs.get(run) or Log(()), events)


def _compared(log: Log, events: list[Logged]) -> Iterator[Invalid]:
    last = -1
    for event in events:
        place = log.place(event.id)
        if place is None:
            sentence = f"event {event.sequence} ({event.cursor}) is in the replay and was never in the log"
            yield Invalid(anomaly="foreign", sentence=sentence, witness=(event,))
            continue
        live = log.events[place]
        if (live.cursor, live.sha256) != (event.cursor, event.sha256):
            sentence = f"{log.name(place)} is another event in the replay than it was live"
            yield Invalid(anomaly="changed", sentence=sentence, witness=(live, event))
        if place <= last:
            sentence = f"{log.name(place)} comes after {log.name(last)} in the replay"
            yield Invalid(anomaly="reordered", sentence=sentence, witness=(live, event))
        elif last >= 0:
            for lost in range(last + 1, place):
                if log.alive[lost]:
                    sentence = f"{log.name(lost)} was in the log and is not in its replay"
                    yield Invalid(anomaly="lost", sentence=sentence, witness=(log.events[lost], event))
        last = max(last, place)
