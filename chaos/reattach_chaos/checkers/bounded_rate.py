"""I14, bounded rate: attempts stay within a budget; the waits grow, with jitter, and only progress makes them short again.

Progress is a new event, never a 200. `Retry-After` is a floor. Growth is judged only where the case knows the client's backoff:
over many attempts the waits' sum must not be one that full jitter would give less than once in a million cases.
"""

import math
from collections.abc import Iterator, Sequence

from reattach_chaos.checkers.attempts import Streak, streaks
from reattach_chaos.checkers.reading import CLIENT
from reattach_chaos.checkers.ruling import Invalid, Ruling, ruled
from reattach_chaos.history import Case, Head, History, Request, Resume, Surfaced

OF_PERSONS = frozenset({"cancel", "list"})
"""The requests that a client makes because somebody called it, and that only they repeat."""
ENOUGH = 9
"""Attempts in a row from which growth can be told from chance."""
RARE = 1e-6
"""Waits that full jitter gives as seldom as this were not drawn by it."""
SLACK = 20
"""So many times shorter than the average may waits be where it is not known of which request each is."""
EARLY_MS = 20.0
"""A clock's and a loaded machine's inexactness."""


def check(history: History) -> Ruling:
    """Look at each row of attempts without progress, and at each wish of the server."""
    found: list[Invalid] = []
    rows = streaks(history)
    for row in rows:
        found += _storm(row, history.case)
        found += _not_growing(row, history.case)
    found += _too_early(history)
    return ruled(found, sum(len(row.attempts) for row in rows))


def _storm(row: Streak, case: Case) -> Iterator[Invalid]:
    for place in range(len(row.attempts) - case.storm_connects):
        first, last = row.attempts[place], row.attempts[place + case.storm_connects]
        if last.at_ms - first.at_ms <= case.storm_window_ms:
            sentence = (
                f"{case.storm_connects + 1} attempts in {last.at_ms - first.at_ms:g} ms without a new event, "
                f"at most {case.storm_connects} in {case.storm_window_ms:g} ms"
            )
            yield Invalid(anomaly="storm", sentence=sentence, witness=(first, last))
            return


def _not_growing(row: Streak, case: Case) -> Iterator[Invalid]:
    waits = row.attempts[
        1:
    ]  # the first wait may be none: at once, after a loss of a connection that had brought something
    if case.floor_ms is None or len(waits) < ENOUGH:
        return
    floor = case.floor_ms
    highest = [min(case.ceiling_ms, case.base_ms * 2 ** min(number, 30)) for number in range(len(waits) - 1)]
    elapsed = waits[-1].at_ms - waits[0].at_ms
    if all(isinstance(each, Resume) for each in waits):
        wrong = _chance(elapsed + EARLY_MS - floor * len(highest), [max(each - floor, 1.0) for each in highest]) < RARE
    else:  # what was refused may have been for a status: two rows of waits in one
        wrong = elapsed < sum((floor + each) / 2 for each in highest) / SLACK
    if wrong:
        sentence = f"{len(waits)} attempts without a new event in {elapsed:g} ms: the waits do not grow"
        yield Invalid(anomaly="storm", sentence=sentence, witness=(waits[0], waits[-1]))


def _chance(total: float, widths: Sequence[float]) -> float:
    """Return a bound on the chance that draws from 0 to each of these widths have a sum of at most `total`.

    It is the volume of the corner of their box that the sum cuts off: total to the power of n, by n! and by the widths' product.
    """
    if total <= 0.0:
        return 0.0
    logarithm = len(widths) * math.log(total) - math.lgamma(len(widths) + 1) - sum(map(math.log, widths))
    return math.exp(min(0.0, logarithm))


def _too_early(history: History) -> Iterator[Invalid]:
    """Yield each request that came before the server's `Retry-After` for its kind and run was over.

    A new process knows of no wish. Who asks for a cancel or a list is a person: once they were told an error, they may ask again.
    """
    wishes: dict[tuple[str, str | None, int], Head] = {}
    for record in history:
        if record.who != CLIENT:
            continue
        match record:
            case Head(retry_after_ms=float() | int()):
                wishes[record.route, record.run, record.life] = record
            case Surfaced(what="error"):
                wishes = {key: head for key, head in wishes.items() if key[0] not in OF_PERSONS}
            case Request() if (record.route, record.run, record.life) in wishes:
                head = wishes.pop((record.route, record.run, record.life))
                wait = head.retry_after_ms or 0.0
                if record.at_ms < head.at_ms + wait - EARLY_MS:
                    sentence = f"asked again {record.at_ms - head.at_ms:g} ms after the server wished for {wait:g} ms"
                    yield Invalid(anomaly="storm", sentence=sentence, witness=(head, record))
            case _:
                pass
