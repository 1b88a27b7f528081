"""Looking at a journal from outside, read only, also while others write it: what was found, by whichever kind of file it is.

Nothing here repairs, migrates or makes a file; how each kind is read is its own `inspection`.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What was counted, and every violation found, each a sentence."""

    schema: int
    runs: int = 0
    events: int = 0
    gaps: int = 0
    marks: int = 0
    violations: tuple[str, ...] = ()


def identity(path: str) -> str:
    """Return the journal's own random name, which no other journal has.

    Raises:
        StoreDamaged, StoreFailed: It cannot be read.
    """
    if path.endswith(".jsonl"):
        from reattach.stores.jsonl import inspection as jsonl

        return jsonl.identity(path)
    from reattach.stores.sqlite import inspection as sqlite

    return sqlite.identity(path)


def inspect(path: str) -> Report:
    """Read the whole journal and return what was found.

    Raises:
        StoreNewer: Its schema is newer than this version knows.
        StoreDamaged: It cannot be read as a journal at all.
        StoreFailed: It cannot be opened.
    """
    if path.endswith(".jsonl"):
        from reattach.stores.jsonl import inspection as jsonl

        return jsonl.inspect(path)
    from reattach.stores.sqlite import inspection as sqlite

    return sqlite.inspect(path)
