"""I15, no give-up: what passes never ends the watch before its budget; what is permanent is not tried for ever.

Passing are lost connections, stalls, refused connections, 408, 425, 429, 5xx, and other content twice. Permanent are 400, 403, 404,
409, 410, a 401 that comes again with a new token, and other content (a login page) for the third time without an attach, where a
fault put it there: a server that answers so of itself has ended the watch. A client that says nothing and leaves is I1's, if it
lost something by it. A `Retry-After` beyond the budget is the budget's end.
"""

from collections.abc import Iterator

from reattach_chaos.checkers.ending import Ending, ending
from reattach_chaos.checkers.reading import CLIENT, Reading, Showing, read
from reattach_chaos.checkers.refusals import PERMANENT, rows
from reattach_chaos.checkers.ruling import Invalid, Ruling, ruled
from reattach_chaos.history import (
    CutFired,
    Head,
    History,
    Received,
    Record,
    Resume,
    ResumeOk,
    ResumeRejected,
    Server,
    Status,
    Store,
    Surfaced,
)

STREAM = "text/event-stream"
PAGES = ("wrong-type",)
FOREIGN = 3
"""So many streams in a row that are something else are for a person (the surface's RemoteProtocolError)."""


def check(history: History) -> Ruling:
    """Look at each end of a watch without the run's end, and at each row of refusals."""
    reading = read(history)
    found = [wrong for showing in reading.showings() for wrong in _gave_up(reading, showing)]
    rejected = [record for record in history.of(ResumeRejected) if record.who == CLIENT]
    found += [wrong for showing in reading.showings() for wrong in _for_ever(reading, showing)]
    return ruled(found, len(rejected) + len(history.of(CutFired)))


def _gave_up(reading: Reading, showing: Showing) -> Iterator[Invalid]:
    history = reading.history
    how = ending(history, showing)
    errors = [each for each in reading.of(Surfaced, showing) if each.what == "error"]
    begun = next(iter(reading.of(Resume, showing)), None)
    if begun is not None:
        errors = [each for each in errors if each.n > begun.n]  # a create that was tried again ended no watch
    if how is not Ending.ERROR or not errors or _permanent(reading, showing, errors[0]):
        return
    error, budget = errors[0], history.case.give_up_ms
    good = _last_good(reading, showing, error)
    since = 0.0 if good is None else good.at_ms
    if budget is not None and max(error.at_ms, _wished_until(reading, showing, error)) - since >= budget:
        return
    fired = [each for each in history.of(CutFired) if each.n < error.n]
    words = "never" if budget is None else f"not before {budget:g} ms"
    sentence = f"the client gave up ({error.reason or 'error'}) {error.at_ms - since:g} ms after a good sign; {words}"
    yield Invalid(anomaly="gave up", sentence=sentence, witness=(*fired[-1:], error))


def _wished_until(reading: Reading, showing: Showing, error: Surfaced) -> float:
    """Return until when the last answer of the stream wished to be left alone: who has no time for that ends at once."""
    heads = [each for each in reading.of(Head, showing) if each.route == "stream" and each.n < error.n]
    return heads[-1].at_ms + (heads[-1].retry_after_ms or 0.0) if heads else 0.0


def _last_good(reading: Reading, showing: Showing, before: Record) -> Record | None:
    good = [
        record for kind in (Received, ResumeOk, Status) for record in reading.of(kind, showing) if record.n < before.n
    ]
    return max(good, key=lambda record: record.n, default=None)


def _permanent(reading: Reading, showing: Showing, error: Surfaced) -> bool:
    """Whether something had happened that a client may end for."""
    history = reading.history
    refused = (record.status in PERMANENT for record in reading.of(ResumeRejected, showing) if record.n < error.n)
    heads = (
        record.status in PERMANENT for record in history.of(Head) if record.who == showing.who and record.n < error.n
    )
    broke = (record.did == "failed" for record in history.of(Store) if record.n < error.n)
    gone = (record.did not in ("started", "stopped", "killed") for record in history.of(Server) if record.n < error.n)
    return any(refused) or any(heads) or any(broke) or any(gone) or _another_protocol(reading, showing, error)


def _another_protocol(reading: Reading, showing: Showing, error: Surfaced) -> bool:
    """Whether what answered the last attaches was not the protocol's, by a fault."""
    if not any(cut.fault in PAGES and cut.n < error.n for cut in reading.history.of(CutFired)):
        return False
    row = 0
    told: list[Head | ResumeOk] = [*reading.of(Head, showing), *reading.of(ResumeOk, showing)]
    for record in sorted(told, key=lambda each: each.n):
        if record.n > error.n:
            break
        if isinstance(record, ResumeOk):
            row = 0
        elif record.route == "stream" and record.status == 200 and record.media.partition(";")[0] != STREAM:
            row += 1
    return row >= FOREIGN


def _for_ever(reading: Reading, showing: Showing) -> Iterator[Invalid]:
    """Yield a row of permanent refusals that is longer than the case allows."""
    tries = reading.history.case.permanent_tries
    for row in rows(reading, showing):
        if len(row) > tries:
            answer = row[tries]
            sentence = f"{answer.status} {answer.code} was answered {tries + 1} times in a row, and asked for again"
            yield Invalid(anomaly="storm", sentence=sentence, witness=(row[0], answer))
            return
