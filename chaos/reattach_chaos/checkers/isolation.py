"""I19, isolation: whatever the client suffers, other subscribers see each event of the log once, in order."""

from reattach_chaos.checkers.ending import Ending, ending
from reattach_chaos.checkers.order import out_of_order
from reattach_chaos.checkers.reading import Showing, read
from reattach_chaos.checkers.repeats import repeats
from reattach_chaos.checkers.ruling import Invalid, Ruling, ruled
from reattach_chaos.history import History


def check(history: History) -> Ruling:
    """Look at every showing but those of the client under test."""
    reading = read(history)
    found: list[Invalid] = []
    showings = [showing for who in reading.others() for showing in reading.showings(who) if showing.shown]
    for showing in showings:
        found += [
            Invalid(
                anomaly="duplicated",
                sentence=f"{showing.who}: {showing.log.name(repeat.place)} {repeat.why}",
                witness=repeat.witness,
            )
            for repeat in repeats(reading, showing)
        ]
        found += out_of_order(showing)
        found += _lost(history, showing)
    return ruled(found, sum(len(showing.shown) for showing in showings))


def _lost(history: History, showing: Showing) -> list[Invalid]:
    """Return what is missing before the last event that was shown; all, where the subscriber told the end."""
    whole = ending(history, showing) is Ending.FINISHED
    last = len(showing.log.events) if whole else max(showing.first, default=0)
    return [
        Invalid(
            anomaly="lost",
            sentence=f"{showing.who}: {showing.log.name(place)} was never shown",
            witness=(showing.log.events[place],),
        )
        for place in range(last)
        if showing.log.alive[place] and place not in showing.first
    ]
