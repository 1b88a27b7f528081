"""I11, definite ends: an end is told only with proof, a settling event or a settled status; never from an end of stream.

What is never shown because of a false end is told here.
"""

from reattach_chaos.checkers.ending import finish, proof
from reattach_chaos.checkers.reading import CLIENT, read
from reattach_chaos.checkers.ruling import Invalid, Ruling, ruled
from reattach_chaos.history import Close, Finished, History


def check(history: History) -> Ruling:
    """Look for the proof of each end that the client told."""
    reading = read(history)
    found: list[Invalid] = []
    for showing in reading.showings():
        finished = finish(reading, showing)
        if finished is None or proof(reading, showing, finished) is not None:
            continue
        closed = [each for each in history.of(Close) if each.who == showing.who and each.n < finished.n]
        sentence = f"the client told the end {finished.status!r} without a settling event or a settled status"
        found.append(Invalid(anomaly="false end", sentence=sentence, witness=(*closed[-1:], finished)))
    return ruled(found, sum(record.who == CLIENT for record in history.of(Finished)))
