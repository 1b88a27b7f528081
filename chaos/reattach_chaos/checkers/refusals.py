"""The rows of permanent refusals that a client met: what is gone, forbidden or unknown stays so. Not judged here."""

from reattach_chaos.checkers.reading import Reading, Showing
from reattach_chaos.history import ResumeOk, ResumeRejected

PERMANENT = frozenset({400, 401, 403, 404, 409, 410})


def rows(reading: Reading, showing: Showing) -> list[list[ResumeRejected]]:
    """Return the rows of permanent refusals, parted by other answers; the last is empty where another answer came last."""
    found: list[list[ResumeRejected]] = [[]]
    answers: list[ResumeOk | ResumeRejected] = [
        *reading.of(ResumeOk, showing),
        *reading.of(ResumeRejected, showing),
    ]
    for answer in sorted(answers, key=lambda record: record.n):
        if isinstance(answer, ResumeOk) or answer.status not in PERMANENT:
            found.append([])
        else:
            found[-1].append(answer)
    return found
