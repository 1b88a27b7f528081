"""I14, bounded rate: attempts stay within a budget; the waits grow, with jitter, and only progress makes them short again.

Progress is a new event, never a 200. `Retry-After` is a floor. Growth is judged only where the case knows the client's backoff:
over many attempts the waits' sum must not fall below a twentieth of what full jitter gives on average, which chance alone does
less than once in a hundred thousand cases.
"""

from collections.abc import Iterator

from reattach_chaos.checkers.attempts import Streak, streaks
from reattach_chaos.checkers.reading import CLIENT
from reattach_chaos.checkers.ruling import Invalid, Ruling, ruled
from reattach_chaos.history import Case, Head, History, Request

ENOUGH = 9
"""Attempts in a row from which growth can be told from chance."""
SLACK = 20
"""So many times shorter than the average may the waits be."""
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
    expected = sum(
        (case.floor_ms + min(case.ceiling_ms, case.base_ms * 2 ** min(number, 30))) / 2
        for number in range(len(waits) - 1)
    )
    elapsed = waits[-1].at_ms - waits[0].at_ms
    if elapsed < expected / SLACK:
        sentence = f"{len(waits)} attempts without a new event in {elapsed:g} ms: the waits do not grow"
        yield Invalid(anomaly="storm", sentence=sentence, witness=(waits[0], waits[-1]))


def _too_early(history: History) -> Iterator[Invalid]:
    """Yield each request that came before the server's `Retry-After` for its kind and run was over.

    A new process knows of no wish.
    """
    wishes: dict[tuple[str, str | None, int], Head] = {}
    for record in history:
        if record.who != CLIENT:
            continue
        match record:
            case Head(retry_after_ms=float() | int()):
                wishes[record.route, record.run, record.life] = record
            case Request() if (record.route, record.run, record.life) in wishes:
                head = wishes.pop((record.route, record.run, record.life))
                wait = head.retry_after_ms or 0.0
                if record.at_ms < head.at_ms + wait - EARLY_MS:
                    sentence = f"asked again {record.at_ms - head.at_ms:g} ms after the server wished for {wait:g} ms"
                    yield Invalid(anomaly="storm", sentence=sentence, witness=(head, record))
            case _:
                pass
