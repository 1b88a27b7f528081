"""I25, caused gap: a Gap is told only when a server lost, trimmed, replaced, skipped or refused something before."""

from reattach_chaos.checkers.reading import Reading, Showing, read
from reattach_chaos.checkers.ruling import Invalid, Ruling, ruled
from reattach_chaos.history import History, Received, ResumeRejected, Server, Surfaced

_CAUSES = frozenset({"trimmed", "expired", "epoch", "lost", "skipped", "refused"})


def check(history: History) -> Ruling:
    """Look for the cause of each gap that the application was told of."""
    reading = read(history)
    found: list[Invalid] = []
    compared = 0
    for showing in reading.showings():
        for gap in reading.of(Surfaced, showing):
            if gap.what != "gap":
                continue
            compared += 1
            if not _cause(reading, showing, gap):
                sentence = f"a gap was told ({gap.reason or 'no reason'}), and the server had refused and lost nothing"
                found.append(Invalid(anomaly="false gap", sentence=sentence, witness=(gap,)))
    return ruled(found, compared)


def _cause(reading: Reading, showing: Showing, gap: Surfaced) -> bool:
    done = (each.did in _CAUSES and each.n < gap.n for each in reading.history.of(Server))
    refused = (each.n < gap.n for each in reading.of(ResumeRejected, showing))
    return any(done) or any(refused) or _hole(reading, showing, gap)


def _hole(reading: Reading, showing: Showing, gap: Surfaced) -> bool:
    """Whether the events that came to the client before the gap have a hole on some connection."""
    last: dict[int | None, int] = {}
    for came in reading.of(Received, showing):
        place = showing.log.place(came.id)
        if came.n > gap.n:
            return False
        if place is None or place > last.get(came.conn, place) + 1:
            return True
        last[came.conn] = place
    return False
