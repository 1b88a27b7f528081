"""`Recorder`: takes records from any thread and task, puts them on one clock and in one order, and writes them as they come.

Bounded: above `limit` records it takes no more and says so with one record (`Other`, named "truncated"); with that record
in it, a history is judged as not known. Each record is in the file before `record` returns, so a crash loses none.
"""

import dataclasses
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self, TextIO

from reattach_chaos.history.files import line
from reattach_chaos.history.history import History
from reattach_chaos.history.record import Other, Record

LIMIT = 200_000  # records of one case; about 30 MB as a file


class Recorder:
    """The history of one case while it is made.

    Args:
        path: The file that it is written to; None keeps it in memory only.
        clock: Seconds; the case begins with the recorder. A simulation gives its virtual one.
        limit: The most records.
    """

    def __init__(
        self, path: Path | None = None, *, clock: Callable[[], float] = time.monotonic, limit: int = LIMIT
    ) -> None:
        self._lock = threading.Lock()
        self._file: TextIO | None = None
        if path is not None:
            self._file = path.open(
                "w", encoding="utf-8", errors="backslashreplace", newline="\n"
            )  # see `write_history`
        self._clock = clock
        self._start = clock()
        self._limit = limit
        self._records: list[Record] = []
        self._listeners: list[Callable[[Record], None]] = []

    def record(self, record: Record) -> Record:
        """Add a record; its number and, where it has none, its time are given here. Return it as it is kept.

        Never waits for anything but the file. Where the history is full, the record is dropped.
        """
        with self._lock:
            n = len(self._records) + 1
            if n > self._limit + 1:
                return record
            if n > self._limit:
                record = Other(name=TRUNCATED)
            at_ms = record.at_ms or round((self._clock() - self._start) * 1000, 3)
            kept = dataclasses.replace(record, n=n, at_ms=at_ms)
            self._records.append(kept)
            if self._file is not None:
                self._file.write(line(kept) + "\n")
                self._file.flush()
        for listener in self._listeners:
            listener(kept)
        return kept

    def listen(self, listener: Callable[[Record], None]) -> None:
        """Call this with each record from now on, in the thread that recorded it."""
        self._listeners.append(listener)

    def history(self) -> History:
        """Return what was recorded so far."""
        with self._lock:
            return History(self._records)

    def close(self) -> None:
        """Close the file; what comes later is kept in memory only."""
        with self._lock:
            file, self._file = self._file, None
        if file is not None:
            file.close()

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the file."""
        self.close()


TRUNCATED = "truncated"
"""The name of the record that says: what came later was not kept."""
