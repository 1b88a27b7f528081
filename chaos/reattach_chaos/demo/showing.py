"""What the judge compares, as values: the server's log, and what a client showed of it.

No I/O. A client's line is made into a `Shown` here, a logged event's JSON text into a `Logged`, by the same short way: the member
`data` as JSON text again, members in their order, so that two texts are equal where every character of every value is.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


def content_of(data: Any) -> str:
    """Return the text by which an event's data is compared: compact JSON, members in the order in which they came."""
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Logged:
    """One event of the server's log. `text`: what it adds to the visible text, None where that is not this side's to say.

    `operation_id` is that of a tool call, else None. `sha256` is of the event's own bytes, as any face must deliver them.
    """

    sequence: int
    id: str
    type: str
    content: str
    text: str | None = None
    operation_id: str | None = None
    sha256: str = ""

    @classmethod
    def read(cls, raw: str) -> "Logged":
        """Make it from the event's JSON text as the server gave it.

        Raises:
            ValueError: Not an event.
        """
        event = json.loads(raw)
        try:
            delta = event["type"] == "message.delta"
            return cls(
                sequence=event["sequence"],
                id=event["id"],
                type=event["type"],
                content=content_of(event["data"]),
                text=event["data"]["text"] if delta else event.get("text"),
                operation_id=event["data"]["operation_id"] if event["type"] == "tool.call" else None,
                sha256=hashlib.sha256(raw.encode()).hexdigest(),
            )
        except (KeyError, TypeError) as error:
            raise ValueError(f"not an event: {raw[:80]}") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """One event as a client showed it. `life`: 0 before its first death, 1 after it, and so on."""

    id: str
    content: str
    sequence: int | None = None
    type: str = ""
    text: str | None = None
    redelivered: bool = False
    life: int = 0

    @classmethod
    def read(cls, line: Mapping[str, Any], life: int) -> "Shown":
        """Make it from a line of kind `rendered`."""
        return cls(
            id=str(line.get("id")),
            content=content_of(line.get("data")),
            sequence=line.get("sequence"),
            type=str(line.get("type", "")),
            text=line.get("text"),
            redelivered=bool(line.get("redelivered")),
            life=life,
        )


@dataclass(slots=True, kw_only=True)
class Showing:
    """All that one follower showed, over all its lives.

    `status`: the end that it told, None if it told none; `trouble`: why it stopped otherwise. `stopped`: we stopped it, because it
    took too long: what it has not shown is then not known to be lost.
    """

    who: str
    shown: list[Shown] = field(default_factory=list)
    kills: int = 0
    status: str | None = None
    trouble: str | None = None
    stopped: bool = False
