"""Writing a JSONL journal anew without what nobody can read any more, in steps that hold nobody up for long.

The new file is the state at the moment it was begun, as lines, and then every line that was said since. So it adds up to the same
state by the same code, whatever is written meanwhile; that state is made on the way, to be used from the moment the new file has
the old one's name. Before that moment the old file is the journal, whatever happens to this process or the disk.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from reattach.core.messages import Mark
from reattach.stores.base import RunRow, StoreDamaged
from reattach.stores.jsonl import lines, logfile
from reattach.stores.jsonl.journal import Journal, failing
from reattach.stores.jsonl.places import Log
from reattach.stores.jsonl.tables import Tables, members
from reattach.stores.times import text_of

STEP_BYTES = 4 << 20
_ROW_BYTES = 1 << 10  # what a row, a lease or a mark is taken to need


def step(journal: Journal, *, wasted: int) -> bool:
    """Do a part of the work, beginning it if at least so many bytes are wasted; True: there is more. With the turn.

    Raises:
        StoreFailed: The disk does not let us; the journal is as it was.
    """
    under_way = journal.compaction
    if under_way is None:
        if _wasted(journal) < wasted:
            return False
        under_way = journal.compaction = Compaction(journal)
    try:
        with failing():
            more = under_way.step()
    except BaseException:
        under_way.give_up()
        journal.compaction = None
        raise
    if not more:
        journal.compaction = None
    return more


def _wasted(journal: Journal) -> int:
    tables = journal.tables
    used = sum(place.length for log in tables.logs.values() for place in log.places)
    return journal.file.size - used - _ROW_BYTES * (len(tables.rows) + len(tables.leases) + len(tables.marks))


class Compaction:
    """One writing anew, under way."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._path = journal.path.with_name(journal.path.name + ".new")
        self._handle: int | None = None
        self._tables = Tables()
        self._seq = -1
        self._size = 0
        self._said_up_to = journal.file.size
        tables = journal.tables
        self._title = {
            **tables.title,
            "generation": journal.generation + 1,
            "last_run": tables.last_run,
            "last_number": tables.last_number,
        }
        self._pieces = _state(journal)

    def step(self) -> bool:
        """Write some more; at the end, become the journal."""
        if self._handle is None:
            self._path.unlink(missing_ok=True)
            mode = stat.S_IMODE(os.stat(self._journal.path).st_mode)
            self._handle = os.open(self._path, os.O_CREAT | os.O_EXCL | os.O_RDWR, mode)
            os.chmod(self._path, mode)
        until = self._size + STEP_BYTES
        if not self._size:
            self._write(lines.title(0, self._title))
        for piece in self._pieces:
            self._write(lines.renumbered(piece, self._seq + 1))
            if self._size >= until:
                os.fsync(self._handle)
                return True
        while self._said_up_to < self._journal.file.size:
            for raw in self._said():
                self._write(lines.renumbered(raw, self._seq + 1))
            if self._size >= until:
                os.fsync(self._handle)
                return True
        os.fsync(self._handle)
        self._take_over()
        return False

    def give_up(self) -> None:
        """Leave nothing behind. Never raises."""
        with suppress(OSError):
            if self._handle is not None:
                os.close(self._handle)
            self._handle = None
            self._path.unlink(missing_ok=True)

    def _write(self, data: bytes) -> None:
        assert self._handle is not None
        logfile.write_all(self._handle, data, self._size)
        said = lines.parsed(data[:-1])
        self._tables.apply(said, self._size, len(data) - 1)
        self._seq = said.seq
        self._size += len(data)

    def _said(self) -> Iterator[bytes]:
        """Yield some of the lines that were said since we began."""
        file = self._journal.file
        length = min(STEP_BYTES, file.size - self._said_up_to)
        part = file.read(self._said_up_to, length)
        while b"\n" not in part:  # one line longer than a step
            length = min(2 * length, file.size - self._said_up_to)
            part = file.read(self._said_up_to, length)
        whole = part[: part.rindex(b"\n") + 1]
        self._said_up_to += len(whole)
        yield from whole[:-1].split(b"\n")

    def _take_over(self) -> None:
        assert self._handle is not None
        file = logfile.LogFile(self._path, self._size, self._journal.path.parent)
        try:
            os.replace(self._path, self._journal.path)
        except BaseException:
            file.close()
            raise
        os.close(self._handle)
        self._handle = None
        self._journal.replace(file, self._tables, self._seq)
        file.settle()


def _state(journal: Journal) -> Iterator[bytes]:
    """Yield the state of now as lines, in any numbering, however much later they are asked for."""
    tables = journal.tables
    logs = {run: (tables.rows[run], log.copy()) for run, log in tables.logs.items()}
    leases = {whose: (held.number, held.token, held.since) for whose, held in tables.leases.items()}
    marks = dict(tables.marks)

    def pieces() -> Iterator[bytes]:
        for row, log in logs.values():
            yield from _run(journal, row, log)
        for (run, consumer), (number, token, since) in leases.items():
            yield _line("lease", {"run": run, "consumer": consumer, "token": token, "number": number, "at": since})
        for (run, consumer), applied in marks.items():
            yield _line(
                "mark", {"run": run, "consumer": consumer, "applied": applied, "at": text_of(logs[run][0].updated_at)}
            )

    return pieces()


def _run(journal: Journal, row: RunRow, log: Log) -> Iterator[bytes]:
    """Yield one run: as it was before the first event that is kept, those events, and as it is."""
    at = text_of(row.updated_at)
    whole = {**members(row._asdict()), "at": at}
    if log.places:
        before = Mark(log.places[0].first - 1)
        gaps = sum(place.gap for place in log.places)
        begun = {**whole, "committed": before, "incarnation": row.incarnation - gaps, "behind": log.behind}
        yield _line("run", begun)
    for place in log.places:
        text = journal.file.read(place.offset, place.length)
        if not lines.is_good(text):
            raise StoreDamaged(f"unreadable from byte {place.offset} (not as it was written)")
        yield text
        if lines.parsed(text).told["mark"][0] != place.last:  # a part of it was taken back
            mark = list(Mark(place.last))
            yield _line("rewound", {"run": row.run, "at": at, "mark": mark, "again_to": row.again_to})
    yield _line("run", {**whole, "behind": log.behind})
    if log.pruned is not None:
        upto, until, missing = log.pruned
        yield _line("pruned", {"run": row.run, "at": at, "upto": upto, "until": until, "missing": missing})


def _line(kind: str, told: Mapping[str, Any]) -> bytes:
    return lines.line(0, kind, told)[:-1]
