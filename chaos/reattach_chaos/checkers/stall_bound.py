"""I17, stall bound: a silent connection is given up within k heartbeats, and one whose heartbeats come is not.

While a machine sleeps nobody can notice anything: its sleep does not count.

The second half needs two such closes, since one may have a reason that nobody recorded; and no reason that was: a failed store, a
server that did something, a gap, an error, the end. A stream that has come to its end is not live: who leaves its connection leaves
nothing.
"""

from collections.abc import Iterator

from reattach_chaos.checkers.reading import CLIENT, Reading, Showing, read
from reattach_chaos.checkers.ruling import Invalid, Ruling, ruled
from reattach_chaos.checkers.stillness import STALLS, slept_ms
from reattach_chaos.history import (
    Close,
    CutFired,
    Died,
    Exited,
    Finished,
    Heartbeat,
    History,
    Received,
    Record,
    Resume,
    ResumeEnd,
    ResumeOk,
    Server,
    Store,
    Surfaced,
    Terminal,
)

_BYTES: tuple[type[Record], ...] = (ResumeOk, Received, Heartbeat)
_REASONS: tuple[type[Record], ...] = (Store, Server, Surfaced, Terminal, Finished, Died, Exited)
_ANSWERS: tuple[type[Record], ...] = (Resume, Surfaced, Finished, Died, Exited)
HASTE = 0.5
"""A client that closes before this part of a heartbeat does not close because of silence."""


def check(history: History) -> Ruling:
    """Look at each silence: one that we made, and one that the client did not wait for."""
    reading = read(history)
    stalls = [record for record in history.of(CutFired) if record.fault in STALLS]
    found = list(_too_late(history, stalls))
    for showing in reading.showings():
        early = list(_too_early(reading, showing))
        found += early if len(early) > 1 else []
    return ruled(found, len(stalls) + len(history.of(Heartbeat)))


def _too_late(history: History, stalls: list[CutFired]) -> Iterator[Invalid]:
    limit = history.case.heartbeat_ms * history.case.stall_heartbeats
    last: Record = max(history, key=lambda record: record.at_ms, default=history.case)
    for stall in stalls:
        reacted = next((record for record in history if record.n > stall.n and _reacts(record, stall)), None)
        end = last if reacted is None else reacted
        silence = end.at_ms - stall.at_ms
        if silence > limit and (silence := silence - slept_ms(history, stall, end)) > limit:
            sentence = f"a silent connection was held for {silence:g} ms; at most {limit:g} ms"
            witness = (stall,) if reacted is None else (stall, reacted)
            yield Invalid(anomaly="hang", sentence=sentence, witness=witness)


def _reacts(record: Record, stall: CutFired) -> bool:
    if record.who != CLIENT:
        return isinstance(record, Close) and record.conn == stall.conn and record.by == "client"
    return isinstance(record, _ANSWERS) or (isinstance(record, Close) and record.conn == stall.conn)


def _too_early(reading: Reading, showing: Showing) -> Iterator[Invalid]:
    """Yield each live connection that the client closed before a heartbeat was due."""
    history = reading.history
    heartbeat = history.case.heartbeat_ms
    bytes_of: dict[int | None, Record] = {}
    reasons = sorted((each for kind in _REASONS for each in history.of(kind)), key=lambda each: each.n)
    for record in history:
        if record.who != showing.who or record.conn is None:
            continue
        if isinstance(record, _BYTES):
            bytes_of[record.conn] = record
        elif isinstance(record, ResumeEnd):
            bytes_of.pop(record.conn, None)
        elif isinstance(record, Close) and record.by == "client" and record.conn in bytes_of:
            byte = bytes_of[record.conn]
            silence = record.at_ms - byte.at_ms
            if any(byte.n < each.n < record.n for each in reasons) or not _goes_on(reading, showing, record):
                continue
            if heartbeat * HASTE <= silence < heartbeat:
                sentence = (
                    f"a live connection was closed after {silence:g} ms of silence; the heartbeat is {heartbeat:g} ms"
                )
                yield Invalid(anomaly="storm", sentence=sentence, witness=(byte, record))


def _goes_on(reading: Reading, showing: Showing, close: Close) -> bool:
    """Whether the client asked for the run's stream again afterwards: then the close was no farewell."""
    return any(attach.n > close.n for attach in reading.of(Resume, showing))
