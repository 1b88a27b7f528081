"""I12, agreement: the end is the same on the stream, in the status, for the control reader, and in the client's word.

Words from before the log was replaced or lost its tail are of another log, and not compared. A status that says that there is no
such run, or that it goes on when its end had been told, disagrees, too; not where a log lost something on purpose. A server that is
ended and comes again has its log.
"""

from collections.abc import Iterator

from reattach_chaos.checkers.ending import SETTLED, finish, proof
from reattach_chaos.checkers.reading import CLIENT, Reading, read
from reattach_chaos.checkers.ruling import Invalid, Ruling, ruled
from reattach_chaos.history import Head, History, Record, Request, Server, Status, Terminal

_NONE = (404, 410)
_SAME = {"paused": "requires_action"}


def check(history: History) -> Ruling:
    """Compare all witnesses of each run's end."""
    reading = read(history)
    found: list[Invalid] = []
    compared = 0
    for run in reading.logs:
        ends = _ends(reading, run)
        compared += len(ends)
        for word, record in ends[1:]:
            if word != ends[0][0]:
                sentence = f"the end is {ends[0][0]!r} for one witness and {word!r} for another"
                found.append(Invalid(anomaly="false end", sentence=sentence, witness=(ends[0][1], record)))
        found += _denied(reading, run)
        found += _taken_back(reading, run)
    return ruled(found, compared)


def _denied(reading: Reading, run: str | None) -> Iterator[Invalid]:
    """Yield the first status that says of a run that there is none."""
    end = reading.logs[run].end
    if end is None or any(record.did == "lost" for record in reading.history.of(Server)):
        return
    for head in reading.history.of(Head):
        if head.route == "status" and head.status in _NONE and reading.run(head) == run:
            sentence = (
                f"a status was answered {head.status}, as if there were no run, and its log has the end {end.settles!r}"
            )
            yield Invalid(anomaly="lost", sentence=sentence, witness=(head, end))
            return


def _taken_back(reading: Reading, run: str | None) -> Iterator[Invalid]:
    """Yield the first status that says that a run goes on, and was asked for when the client had been told of its end."""
    if any(record.did in ("epoch", "lost") for record in reading.history.of(Server)):
        return
    told: Record | None = None
    asked: dict[int | None, Request] = {}
    for record in reading.history:
        if record.who != CLIENT or reading.run(record) != run:
            continue
        if isinstance(record, Request):
            asked.pop(record.conn, None)
            if told is not None and record.route == "status":
                asked[record.conn] = record
        elif isinstance(record, Terminal) or (isinstance(record, Status) and record.status in SETTLED):
            told = told or record
        elif isinstance(record, Status) and told is not None and record.conn in asked:
            sentence = f"a status says {record.status!r} of a run whose end had been told"
            yield Invalid(anomaly="false end", sentence=sentence, witness=(told, record))
            return


def _ends(reading: Reading, run: str | None) -> list[tuple[str, Record]]:
    """Return each witness's word on the end, the log's first."""
    end = reading.logs[run].end
    other_log = max((each.n for each in reading.history.of(Server) if each.did in ("epoch", "lost")), default=0)
    ends: list[tuple[str, Record]] = [] if end is None or end.settles is None else [(end.settles, end)]
    ends += [(record.status, record) for record in reading.history.of(Terminal) if reading.run(record) == run]
    ends += [
        (record.status, record)
        for record in reading.history.of(Status)
        if reading.run(record) == run and record.status in SETTLED
    ]
    showing = reading.showing(CLIENT, run)
    finished = finish(reading, showing)
    if finished is not None and proof(reading, showing, finished) is not None:  # without proof it is I11's
        ends.append((finished.status, finished))
    return [(_SAME.get(word, word), record) for word, record in ends if record is end or record.n > other_log]
