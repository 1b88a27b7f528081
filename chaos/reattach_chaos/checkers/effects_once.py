"""I9, effects once: the ledger has each operation of a run exactly once, and none without the event that called for it.

Runs of one scenario call their operations by the same ids; what one of them did twice is told by its own ledger.
An operation that was called and has no effect is missing one, where the ledger was read at all and the run has settled.
"""

from reattach_chaos.checkers.reading import read
from reattach_chaos.checkers.ruling import Invalid, Ruling, ruled
from reattach_chaos.history import Counts, Effect, History, Logged

_SERVER = "server"


def check(history: History) -> Ruling:
    """Compare the ledger with the calls in the logs."""
    reading = read(history)
    calls = {
        (event.run or "", event.operation_id): event
        for log in reading.logs.values()
        for event in log.events
        if event.operation_id is not None
    }
    of = {operation: run for run, operation in calls}
    done: dict[tuple[str, str], list[Effect]] = {}
    for effect in history.of(Effect):
        if effect.who == _SERVER:
            run = effect.run or of.get(effect.operation_id, "")
            done.setdefault((run, effect.operation_id), []).append(effect)
    found: list[Invalid] = []
    for place, effects in done.items():
        operation = place[1]
        call: tuple[Logged, ...] = (calls[place],) if place in calls else ()
        if len(effects) > 1:
            sentence = f"operation {operation} has {len(effects)} effects"
            found.append(Invalid(anomaly="double effect", sentence=sentence, witness=(*call, *effects[:2])))
        elif not call:
            sentence = f"operation {operation} has an effect, and no event calls for it"
            found.append(Invalid(anomaly="double effect", sentence=sentence, witness=(effects[0],)))
    if done or history.of(Counts):
        for place, event in calls.items():
            settled = reading.log(event).end is not None
            if settled and place not in done:
                sentence = (
                    f"operation {place[1]} of event {event.sequence} ({event.cursor}) was called and has no effect"
                )
                found.append(Invalid(anomaly="missing effect", sentence=sentence, witness=(event,)))
    return ruled(found, len(done))
