"""What a server sent on its connections, against its own log: for the laws that judge servers, whatever a right client makes of it.

A client drops what comes twice, and asks again for what is missing, so what it shows is no proof that the server was right. Streams
that the gate itself has put events into are left alone.
"""

from collections.abc import Iterator
from itertools import pairwise

from reattach_chaos.checkers.reading import Reading, Showing, named
from reattach_chaos.checkers.ruling import Anomaly, Invalid
from reattach_chaos.history import CutFired, Received, Resume, Server


def streams(reading: Reading, showing: Showing) -> Iterator[list[tuple[Received, int]]]:
    """Yield what came whole on each stream, with its places in the log; events that are there no more are left out."""
    ours = {record.conn for record in reading.history.of(CutFired) if record.fault in ("duplicate", "empty")}
    records: list[Resume | Received] = [*reading.of(Resume, showing), *reading.of(Received, showing)]
    open_: dict[int | None, list[tuple[Received, int]]] = {}
    for record in sorted(records, key=lambda each: each.n):
        if isinstance(record, Resume):
            if record.conn in open_:
                yield open_.pop(record.conn)
            continue
        place = showing.log.place(record.id)
        if record.whole and record.conn not in ours and place is not None and showing.log.alive[place]:
            open_.setdefault(record.conn, []).append((record, place))
    yield from open_.values()


def wrong_steps(reading: Reading, showing: Showing) -> Iterator[Invalid]:
    """Yield, once a stream, an event that is not the successor of the one before it on the same stream."""
    if any(record.did == "skipped" for record in reading.history.of(Server)):
        return
    log = showing.log
    for stream in streams(reading, showing):
        places = [place for _, place in stream]
        for index, (before, now) in enumerate(pairwise(stream), 1):
            if not any(log.alive[each] for each in range(before[1] + 1, now[1])) and now[1] > before[1]:
                continue
            sentence = f"behind {log.name(before[1])}, the server sent {log.name(now[1])} on the same connection"
            anomaly = _anomaly(places, index)
            yield Invalid(anomaly=anomaly, sentence=sentence, witness=(before[0], now[0]))
            break


def wrong_bytes(reading: Reading, showing: Showing) -> Iterator[Invalid]:
    """Yield each event that was sent with other bytes than the log has."""
    for stream in streams(reading, showing):
        for came, place in stream:
            event = showing.log.events[place]
            if None not in (came.sha256, event.wire_sha256) and came.sha256 != event.wire_sha256:
                sentence = f"the server sent {showing.log.name(place)} with another content than the log's"
                yield Invalid(anomaly="changed", sentence=sentence, witness=(event, came))


def foreign(reading: Reading, showing: Showing) -> Iterator[Invalid]:
    """Yield what was sent whole and is not in the run's log, which may be another where the server was touched on purpose."""
    if not showing.log.events or reading.history.of(Server):
        return
    for came in reading.of(Received, showing):
        if came.whole and showing.log.place(came.id) is None:
            name = named(came.id)
            sentence = f"the server sent {name} on a stream of run {showing.run}, and its log does not have it"
            yield Invalid(anomaly="foreign", sentence=sentence, witness=(showing.log.events[-1], came))


def _anomaly(places: list[int], index: int) -> Anomaly:
    """Name a wrong step by what else the stream has."""
    before, now = places[index - 1], places[index]
    if now in places[:index]:
        return "duplicated"
    return "reordered" if now < before or before + 1 in places[index:] else "lost"
