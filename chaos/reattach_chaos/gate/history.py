"""The gate's history: what passed and what was done, one JSON object a line, on one clock.

Kinds: `connect`, `request`, `head` (of an answer), `attached` (what the server announced), `event` (forwarded whole),
`cut.planned`, `cut.fired`, `cut.missed` (the client had gone), `close`, `trouble`. Every record has `at_ms` (since the gate began)
and `kind`; `lane` and `conn` where it concerns a connection. A planned cut without its `cut.fired` did not fire; what that means is
the reader's.

Each record is in the file before the bytes that it speaks of are sent. Never here: a verdict.
"""

import json
import time
from pathlib import Path
from typing import Any, TextIO


class History:
    """A history file that is being written. Bounded by the cases: an event costs about 150 bytes."""

    def __init__(self, path: Path) -> None:
        self._file: TextIO = path.open("w", encoding="utf-8", errors="backslashreplace", newline="\n")
        self._start = time.monotonic()

    def write(self, kind: str, **facts: Any) -> None:
        """Add a record and flush it."""
        record = {"at_ms": round((time.monotonic() - self._start) * 1000, 3), "kind": kind, **facts}
        self._file.write(json.dumps(record, ensure_ascii=False) + "\n")
        self._file.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class HistoryTail:
    """Reads a history while it is written: each call gives the records that are new, whole lines only."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._at = 0

    def read(self) -> list[dict[str, Any]]:
        """Return the new records, in order; none where there is no file yet."""
        try:
            with self._path.open("rb") as file:
                file.seek(self._at)
                data = file.read()
        except FileNotFoundError:
            return []
        whole = data[: data.rfind(b"\n") + 1]
        self._at += len(whole)
        return [json.loads(line) for line in whole.splitlines()]
