"""One open journal of this process: its file, its state and its locks, shared by every store object on the same path.

A second `Client` of the process on the same file gets the same one; another process gets none, see `lock`. Two locks: `turn` is
held by who writes, from the look at the state to the disk's answer; `state` for moments, by everybody.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from reattach.stores import forks
from reattach.stores.base import Entry, StoreDamaged, StoreFailed
from reattach.stores.entry import pruned_element
from reattach.stores.jsonl import lines
from reattach.stores.jsonl.lines import Line
from reattach.stores.jsonl.lock import Lock
from reattach.stores.jsonl.logfile import LogFile
from reattach.stores.jsonl.tables import JOURNAL_SLOT, Tables
from reattach.stores.marks import MarksFile, Slots
from reattach.stores.noted import LeaseRow, Noted

if TYPE_CHECKING:
    from reattach.stores.jsonl.compaction import Compaction

FULL_READ = 1 << 22
"""Bytes of lines that end a read, however few events they are: bounds the memory of whoever reads far behind."""


class Saying(NamedTuple):
    """A line that is about to be written: its kind, its members and, of a commit, its events as the text of a JSON array."""

    kind: str
    told: Mapping[str, Any]
    events: str | None = None


class Journal:
    """See the module. Made by `opening`, closed by the last `leave`."""

    def __init__(self, path: Path, lock: Lock, file: LogFile, tables: Tables, marks: MarksFile, seq: int) -> None:
        self.path = path
        self.turn = threading.RLock()
        self.state = threading.RLock()
        self.tables = tables
        self.noted = Noted(marks)
        self.seq = seq
        self._marks = marks
        self._file: LogFile | None = file
        self._lock = lock
        self._users = 0
        self._durable = _own_slots(marks, self.generation, seq)
        self.compaction: Compaction | None = None
        """A writing anew that is under way, see `compaction`."""
        forks.watch(self)

    # its life -----------------------------------------------------------------------------------------------------

    @property
    def generation(self) -> int:
        """How often the file was written anew."""
        return int(self.tables.title["generation"])

    @property
    def is_open(self) -> bool:
        """Whether it may be used: not after its end, nor in a forked child."""
        return self._file is not None

    def join(self) -> None:
        """Count one more store object that uses it."""
        self._users += 1

    def leave(self) -> bool:
        """Count one less; True: that was the last one, and it is closed."""
        self._users -= 1
        if self._users > 0:
            return False
        self._end(self._lock.release)
        return True

    def pause(self) -> None:
        """See `forks.Forked`."""
        self.turn.acquire()
        self.state.acquire()

    def resume(self) -> None:
        """See `forks.Forked`."""
        self.state.release()
        self.turn.release()

    def abandon(self) -> None:
        """See `forks.Forked`."""
        self._end(self._lock.drop)

    def _end(self, unlock: Callable[[], None]) -> None:
        if self._file is not None:
            self._file.close()
            unlock()
        self._file = None
        forks.forget(self)

    # writing ------------------------------------------------------------------------------------------------------

    def say(self, sayings: Sequence[Saying]) -> None:
        """Append lines durably and apply them. With the turn.

        Raises:
            StoreFailed: Nothing of them was kept.
        """
        written = [lines.line(seq, *each) for seq, each in enumerate(sayings, self.seq + 1)]
        with failing():
            at = self.file.append(b"".join(written))
        with self.state:
            for each, data in zip(sayings, written, strict=True):
                self.seq += 1
                self.tables.apply(Line(self.seq, each.kind, each.told), at, len(data) - 1)
                at += len(data)
            self._durable.note(self.seq + 1)

    def replace(self, file: LogFile, tables: Tables, seq: int) -> None:
        """Go on in a file written anew, which adds up to the same state. With the turn."""
        with self.state:
            for whose, held in self.tables.leases.items():
                # What is known in memory alone.
                tables.leases[whose].holder, tables.leases[whose].expires = held.holder, held.expires
            self.file.close()
            self._file, self.tables, self.seq = file, tables, seq
            self._durable = _own_slots(self._marks, self.generation, seq)

    # reading ------------------------------------------------------------------------------------------------------

    def read(self, run: int, after: int, limit: int) -> list[Entry]:
        """Return entries from position `after` + 1 on, of whole commits.

        Raises:
            StoreDamaged: A line is not as it was written.
        """
        with self.state, failing():
            log = self.tables.logs[run]
            places = log.wanted(after, limit, FULL_READ)
            texts = [self.file.read(place.offset, place.length) for place in places]
            pruned = log.pruned
        found = []
        if pruned is not None and after < pruned.at:
            found.append(Entry(pruned.at, json.loads(pruned_element(pruned.until, pruned.missing))))
        for place, text in zip(places, texts, strict=True):
            if not lines.is_good(text):
                raise StoreDamaged(f"unreadable from byte {place.offset} (not as it was written)")
            elements = lines.events_of(text)[: place.last - place.first + 1]
            found += [Entry(at, element) for at, element in enumerate(elements, place.first) if at > after]
        return found

    def lease_row(self, run: int, consumer: str) -> LeaseRow | None:
        """Return a lease with the marks that depend on it. With the state."""
        held = self.tables.leases.get((run, consumer))
        if held is None:
            return None
        row = self.tables.rows[run]
        return LeaseRow(
            number=held.number,
            token=held.token,
            holder=None,
            since=held.since,
            expires_at=None,
            incarnation=row.incarnation,
            committed=row.committed.position,
            applied=self.tables.marks.get((run, consumer), 0),
        )

    @property
    def file(self) -> LogFile:
        """The open file.

        Raises:
            StoreFailed: It is open no more.
        """
        if self._file is None:
            raise StoreFailed("it is not open")
        return self._file


def _own_slots(marks: MarksFile, generation: int, seq: int) -> Slots:
    slots = marks.slots(JOURNAL_SLOT, "journal", generation, 1, seq + 1)
    slots.claim()
    return slots


def noted_seq(marks: MarksFile, generation: int) -> int | None:
    """Return the number of the last line of a file that FILE-marks knows to have been durable, None if it knows of none."""
    noted = marks.newest(JOURNAL_SLOT, "journal", generation, 1)
    return noted - 1 if noted else None


@contextmanager
def failing() -> Iterator[None]:
    """Raise the system's errors in the seam's words."""
    try:
        yield
    except OSError as error:
        words = error.strerror or str(error)
        raise StoreFailed(words[:1].lower() + words[1:]) from error
