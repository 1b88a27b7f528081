"""What a failed case says: the anomaly, the records that cannot both be right, how to play it again, where its history is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from reattach_chaos.checkers import CaseVerdict
from reattach_chaos.checkers.ruling import Invalid
from reattach_chaos.history import Created, CutFired, Delivered, History, Record, Resume
from reattach_chaos.report.rows import fault_words, place_words, row
from reattach_chaos.report.story import story


def failure(verdict: CaseVerdict, history: History, nodeid: str, again: str, saved: Path, *, nameless: int = 0) -> str:
    """Return the text.

    Args:
        verdict: Of the case; not valid.
        history: Of the case.
        nodeid: The test's.
        again: What the command line needs beside it.
        saved: The history's file.
        nameless: So much was shown with an empty id, and passed over.
    """
    if verdict.broken:
        first = next(iter(verdict.broken.values()))
        lines = [f"{first.anomaly}: {first.sentence}", *_table(first, history)]
    else:
        lines = [f"inconclusive: {verdict.unknown[0].removeprefix('inconclusive: ')}"]
    if nameless:
        lines.append(
            f"  passed over: {nameless} shown without an id; a control event (stream.…) has none, each other event has"
        )
    return "\n".join([*lines, f'again: pytest "{nodeid}" {again}', f"history: {saved}"])


def _table(broken: Invalid, history: History) -> Iterator[str]:
    words = {row(record): record for record in history}
    records = [words[told.row] for told in story(broken.witness, history)]
    rows: list[tuple[str, str, str, str]] = []
    shown: Delivered | None = None  # the last row, where it is a showing that a cut on its connection may take in
    for record in records:
        if isinstance(record, CutFired) and shown is not None and shown.conn == record.conn:
            rows.pop()
            rows.append((*_cells(record)[:2], f"{_cells(record)[2]}, {shown.id} shown", ""))
        elif isinstance(record, Delivered) and any(cells[3].startswith(f"<- {record.id} was") for cells in rows):
            continue  # its attach has said it
        else:
            rows.append((*_cells(record), _remark(record, broken, history)))
        shown = record if isinstance(record, Delivered) else None
    widths = [max((len(cells[column]) for cells in rows), default=0) for column in range(3)]
    for cells in rows:
        padded = "   ".join((cells[0].ljust(widths[0]), cells[1].ljust(widths[1]), cells[2].ljust(widths[2])))
        yield f"  {padded}   {cells[3]}".rstrip()


def _cells(record: Record) -> tuple[str, str, str]:
    told = row(record)
    conn = f"conn {told.conn}" if told.conn else told.who
    match record:
        case CutFired(position="after-event", sequence=int(number)):
            return conn, fault_words(record.fault), f"after event {number}'s blank line (fired)"
        case CutFired():
            return conn, fault_words(record.fault), f"{place_words(record.position, record.sequence)} (fired)"
        case Delivered():
            return conn, "shown", told.of
        case Created():
            return conn, "created", record.run or ""
        case _:
            return conn, told.what, told.of


def _remark(record: Record, broken: Invalid, history: History) -> str:
    """Return what is wrong with a row: a second showing, or an attach before what was shown already."""
    if isinstance(record, Delivered):
        earlier = (each for each in broken.witness if isinstance(each, Delivered) and each.n < record.n)
        return "<- again" if any(each.id == record.id for each in earlier) else ""
    if broken.anomaly != "duplicated" or not isinstance(record, Resume):
        return ""
    doubled = next((each for each in broken.witness if isinstance(each, Delivered)), None)
    if doubled is None or doubled.n > record.n or record.after == doubled.id:
        return ""
    return f"<- {doubled.id} was already shown"
