"""The witness with what a person needs to follow it: the faults that fired and the attaches between its records."""

from typing import NamedTuple

from reattach_chaos.history import CutFired, History, Record, Resume, ResumeRejected
from reattach_chaos.report.rows import Row, row

_BETWEEN = 4


class Told(NamedTuple):
    """A row, and a remark to it ("" for none)."""

    row: Row
    remark: str


def story(witness: tuple[Record, ...], history: History) -> list[Told]:
    """Return the witness's records in their order, and between them what explains it; only the newest where there is much."""
    if not witness:
        return []
    numbers = {record.n for record in witness}
    between = [
        record
        for record in history
        if witness[0].n < record.n < witness[-1].n
        and record.n not in numbers
        and isinstance(record, CutFired | Resume | ResumeRejected)
    ]
    told: list[Told] = []
    seen: set[tuple[str, str, str]] = set()
    for record in sorted([*witness, *between[-_BETWEEN:]], key=lambda each: each.n):
        words = row(record)
        said = (words.who.split()[0], words.what, words.of)
        told.append(Told(words, "<- again" if record.n in numbers and said in seen else ""))
        seen.add(said)
    return told
