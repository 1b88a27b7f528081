"""I2, no double: an event is shown again only after a kill, above the applied mark, and marked; a handler's effects stand once.

For a client that marks nothing: once in each life of the process, and after a kill only the event shown last may come again. See
`repeats.py` for what is by right. A repeat that came because the server sent what the client had asked to be past is I5's.
"""

from reattach_chaos.checkers.reading import CLIENT, read
from reattach_chaos.checkers.repeats import repeats
from reattach_chaos.checkers.ruling import Invalid, Ruling, ruled
from reattach_chaos.history import Delivered, Effect, History


def check(history: History) -> Ruling:
    """Look at every event that was shown again, and at every effect of the client's handler."""
    reading = read(history)
    found = [
        Invalid(anomaly="duplicated", sentence=f"{showing.log.name(repeat.place)} {repeat.why}", witness=repeat.witness)
        for showing in reading.showings()
        for repeat in repeats(reading, showing)
        if repeat.cause == "went back"
    ]
    stands: dict[tuple[str | None, str], Effect] = {}
    for effect in history.of(Effect):
        if effect.who != CLIENT:
            continue
        earlier = stands.setdefault((effect.run, effect.operation_id), effect)
        if earlier is not effect:
            sentence = f"the handler's effect {effect.operation_id} stands twice"
            found.append(Invalid(anomaly="double effect", sentence=sentence, witness=(earlier, effect)))
    return ruled(found, len(history.of(Delivered)) + len(stands))
