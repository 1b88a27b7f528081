"""I23, contiguous journal: after any failure the journal holds the log without holes, in order; only a Gap may part it.

A journal begins with the log's first event, or with a Gap.
"""

from collections.abc import Iterator

from reattach_chaos.checkers.exclusive_resume import next_alive
from reattach_chaos.checkers.reading import Log, named, read
from reattach_chaos.checkers.ruling import Invalid, Ruling, ruled
from reattach_chaos.history import History, Journal


def check(history: History) -> Ruling:
    """Look at each dump of a journal."""
    reading = read(history)
    found = [wrong for journal in history.of(Journal) for wrong in _holes(reading.log(journal), journal)]
    return ruled(found, sum(len(journal.ids) for journal in history.of(Journal)))


def _holes(log: Log, journal: Journal) -> Iterator[Invalid]:
    before: int | None = -1  # None: just behind a Gap
    for name in journal.ids:
        place = log.place(name)
        if name is None:
            before = None
            continue
        if place is None:
            sentence = f"the journal holds {named(name)}, which is not in the log"
            yield Invalid(anomaly="foreign", sentence=sentence, witness=(journal,))
            continue
        if before is not None and place not in (before + 1, next_alive(log.alive, before)):
            words = "nothing" if before < 0 else log.name(before)
            sentence = f"in the journal {log.name(place)} comes behind {words}"
            anomaly = Invalid(
                anomaly="lost" if place > before else "duplicated",
                sentence=sentence,
                witness=(log.events[place], journal),
            )
            yield anomaly
        before = place
