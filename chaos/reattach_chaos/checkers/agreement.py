"""I12, agreement: the end is the same on the stream, in the status, for the control reader, and in the client's word.

Words from before the log was replaced or lost its tail are of another log, and not compared.
"""

from reattach_chaos.checkers.ending import SETTLED, finish, proof
from reattach_chaos.checkers.reading import CLIENT, Reading, read
from reattach_chaos.checkers.ruling import Invalid, Ruling, ruled
from reattach_chaos.history import History, Record, Server, Status, Terminal

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
    return ruled(found, compared)


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
