"""I16, no reconnect after the end: who has shown the settling event, or told the end, asks for no stream of this run any more.

Also where the connection was cut between the settling event and the end of the body. A process that was started again may look
once: its mark may have been lost with the kill. One that lived before the process that showed the end cannot know of it, and may
ask once, too.
"""

from reattach_chaos.checkers.ending import finish
from reattach_chaos.checkers.reading import read
from reattach_chaos.checkers.ruling import Invalid, Ruling, ruled
from reattach_chaos.history import History, Record, Resume


def check(history: History) -> Ruling:
    """Look for attaches behind the end."""
    reading = read(history)
    found: list[Invalid] = []
    compared = 0
    for showing in reading.showings():
        settling = [
            record
            for place, record in showing.first.items()
            if showing.log.events[place].settles and showing.log.alive[place]
        ]
        finished = finish(reading, showing)
        ends: list[Record] = sorted([*settling, *([] if finished is None else [finished])], key=lambda each: each.n)
        compared += len(ends[:1])
        elder = True
        for attach in reading.of(Resume, showing) if ends else ():
            if attach.n < ends[0].n:
                continue
            if attach.life < ends[0].life and elder:
                elder = False
                continue
            if showing.death_between(ends[0], attach) is None:
                sentence = "the client asked for the stream again after the end"
                found.append(Invalid(anomaly="storm", sentence=sentence, witness=(ends[0], attach)))
    return ruled(found, compared)
