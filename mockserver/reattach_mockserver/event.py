"""An event as the engine offers it and as the log keeps it, and the one place that makes its JSON text.

The text is made once, when the log gives the event its sequence and its predecessor, and is the same
bytes on every delivery ever after. Nothing here knows a transport, waits, or decides an order.

Where the rules come from: PROTOCOL, section 1, Event. Checked by tests/mockserver/test_values.py.
"""

import json
from dataclasses import dataclass
from typing import Any, Literal

SETTLING = {
    "run.paused": "requires_action",
    "run.completed": "completed",
    "run.failed": "failed",
    "run.cancelled": "cancelled",
}
"""The types of settling events, with what a run is after each."""
SETTLED = frozenset(SETTLING.values())
"""The statuses of a run whose log grows no more."""

_encoder = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)
_ascii_encoder = json.JSONEncoder(ensure_ascii=True, separators=(",", ":"), allow_nan=False)


def json_text(value: Any) -> str:
    """Return compact JSON without line breaks that can be written as UTF-8.

    Raises:
        ValueError: A number is not finite.
    """
    text = _encoder.encode(value)
    try:
        text.encode()
    except UnicodeEncodeError:
        # A lone surrogate is a legal JSON escape and an illegal UTF-8 character.
        return _ascii_encoder.encode(value)
    return text


class EventTooLarge(Exception):
    """An event that was to be appended is above the limit; nothing was."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """What an event tells of an effect.

    It may happen from here on (`pending`), it will not (`failed`), or nobody can tell whether it did (`unknown`).
    `waits`: it is for an answer; `reversible` None: not known before it is called.
    """

    id: str
    tool: str
    status: Literal["pending", "failed", "unknown"] = "pending"
    reversible: bool | None = None
    external: bool = False
    waits: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What the engine asks a log to append. Its id was chosen before the first attempt.

    `step` is the place in the script that it comes from, unique in its run: a restarted engine goes on
    after the steps that the log holds. `data` and `text` are JSON texts already. `status`, `outcome`, `release`
    and `pause` (of `logs/pause.py`) are what the run becomes with it, `operation` what is registered, in the same
    transaction; a status of SETTLED makes it the last event. `at` is the server's own clock in ms (retention);
    `time` may be a virtual one.
    """

    id: str
    step: str
    type: str
    time: str
    at: int
    data: str
    text: str | None = None
    status: str | None = None
    outcome: str | None = None
    release: str | None = None
    pause: str | None = None
    operation: Operation | None = None

    @property
    def size(self) -> int:
        """Bytes of what it carries: what the limit on events is compared with."""
        return len(self.data.encode()) + (len(self.text.encode()) if self.text else 0)


@dataclass(frozen=True, slots=True)
class Stored:
    """An event in a log: its place, and `body`, its JSON text for ever."""

    sequence: int
    id: str
    type: str
    settles: bool
    body: bytes


def body_of(entry: Entry, *, run_id: str, sequence: int, prev_id: str | None, time: str) -> bytes:
    """Make the event's JSON text. Called once in an event's life, by the log that appends it."""
    link = "null" if prev_id is None else f'"{prev_id}"'
    text = "" if entry.text is None else f',"text":{entry.text}'
    return (
        f'{{"id":"{entry.id}","prev_id":{link},"run_id":"{run_id}","sequence":{sequence},'
        f'"type":{json_text(entry.type)},"time":"{time}","data":{entry.data}{text}}}'
    ).encode()
