"""What a write must be to make sense at all, and the journal texts that it brings: the same for every store.

Pure functions. A write that fails here is a bug of ours, found before anything is touched; what the journal may refuse (a stale
predecessor, another owner) is each store's to say.
"""

from __future__ import annotations

import json
import re
from typing import Any

from reattach.model import Gap
from reattach.stores.base import GapNote, Refusal, RunRow, Write
from reattach.stores.entry import bare_element, element, gap_element

_LONE = re.compile("[\ud800-\udfff]")


def length_of(write: Write) -> int:
    """Return how many positions a write takes.

    Raises:
        ValueError: Its mark is not where its events end, or it brings both events and a gap: there would be a hole.
    """
    if write.gap is not None and write.batch:
        raise ValueError("a write brings events or one gap, never both")
    length = 1 if write.gap is not None else len(write.batch)
    if write.mark.position != write.prev.position + length:
        raise ValueError(
            f"a write of {length} positions after {write.prev.position} cannot end at {write.mark.position}: "
            "the journal would have a hole"
        )
    return length


def batch_json(write: Write) -> str:
    """Return the events of a write as the text of one JSON array."""
    text = f"[{','.join(map(bare_element if write.bare else element, write.batch))}]"
    # A vendor may escape half of a surrogate pair. Python holds it, UTF-8 does not: it is escaped again. `isascii` and the
    # encoder are C loops; the expression runs only on text that really has one.
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            text = plain(text)
    return text


def plain(text: str) -> str:
    """Return JSON text with every lone surrogate escaped, so that it can be stored as UTF-8."""
    return _LONE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def gap_entry(note: GapNote) -> dict[str, Any]:
    """Return the parsed journal element of a gap."""
    gap = Gap(
        run_id="", reason=note.reason, after=note.after, until=note.until, missing=note.missing, snapshot=note.state
    )
    found: dict[str, Any] = json.loads(gap_element(gap))
    return found


def refusal(write: Write, position: int, token: int | None) -> Refusal | None:
    """Return why a write may not be kept by a journal that stands at `position` under `token`, or None.

    Both rules are needed: without the predecessor a late commit of one owner leaves a hole, without the token an owner that was
    taken over goes on writing (explored by the model of two processes and one journal).
    """
    if token != write.token:
        return Refusal("fenced", f"the lease token is {token}, this write has {write.token}")
    if position != write.prev.position:
        return Refusal("stale", f"the journal stands at {position}, this write follows {write.prev.position}")
    return None


def only_a_name(row: RunRow) -> bool:
    """Return whether a row with a run id says nothing but that somebody once asked for that id."""
    return (
        row.key is None
        and row.continues is None
        and row.status == "unknown"
        and row.committed.position == 0
        and row.outcome is None
        and not row.needs
    )
