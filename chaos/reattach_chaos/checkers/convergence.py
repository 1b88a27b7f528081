"""I13, convergence: within the case's time after the last fault the client has told the end, or is live and has caught up.

A client that does nothing at all any more is I27's. One that is still at it when its history ends too early is not judged.
"""

from reattach_chaos.checkers.ending import finish
from reattach_chaos.checkers.reading import read
from reattach_chaos.checkers.ruling import Invalid, Ruling, Unknown, Valid, ruled
from reattach_chaos.checkers.stillness import behind, last_fault, quiet_ms
from reattach_chaos.history import History


def check(history: History) -> Ruling:
    """Look at how the watch of each run stood when the time was over."""
    limit, fault = history.case.converge_ms, last_fault(history)
    since = 0.0 if fault is None else fault.at_ms
    last = max((record.at_ms for record in history), default=0.0)
    found: list[Invalid] = []
    early = ""
    for late in behind(history):
        if last - since < limit:
            early = f"the history ends {last - since:g} ms after the last fault, and the client had not come to its end"
        elif quiet_ms(history, late) < limit:
            sentence = f"the client did not catch up within {limit:g} ms of the last fault"
            witness = (*(() if fault is None else (fault,)), *late.tries[-2:])
            found.append(Invalid(anomaly="hang", sentence=sentence, witness=witness))
    reading = read(history)
    for showing in reading.showings():
        finished = finish(reading, showing)
        came = [each.at_ms for each in (fault, *showing.log.events[-1:]) if each is not None]
        if finished is not None and came and finished.at_ms - max(came) > limit:
            sentence = f"the end was told {finished.at_ms - max(came):g} ms after the last fault and the last event"
            witness = (*(() if fault is None else (fault,)), finished)
            found.append(Invalid(anomaly="hang", sentence=sentence, witness=witness))
    if not found and early:
        return Unknown(early)
    return ruled(found, len(reading.logs)) if reading.logs else Valid()
