"""Cursors: `<epoch>.<sequence>`, exclusive, and how text becomes one or is refused.

Pure; knows no run and no log. Whether a cursor is good for a run is the reading faces' question.

Where the rules come from: PROTOCOL, section 1, Cursor. Checked by tests/mockserver/test_values.py.
"""

import re
from dataclasses import dataclass

_CURSOR = re.compile(r"([A-Za-z0-9_-]{1,64})\.(0|[1-9][0-9]{0,18})", re.ASCII)
_MAX_BYTES = 128


@dataclass(frozen=True, slots=True)
class Cursor:
    """Everything of `epoch` up to and including `sequence` is known to whoever holds it."""

    epoch: str
    sequence: int

    def __str__(self) -> str:
        return f"{self.epoch}.{self.sequence}"


def parse_cursor(text: str) -> Cursor | None:
    """Return the cursor that `text` is, None if it is none: never a guess."""
    if len(text) > _MAX_BYTES:
        return None
    found = _CURSOR.fullmatch(text)
    return Cursor(found[1], int(found[2])) if found else None


def run_tag(epoch: str) -> str | None:
    """Return the run's part of an epoch that this server could have made, else None."""
    tag, dash, incarnation = epoch.rpartition("-")
    return tag if dash and incarnation.isdecimal() else None
