"""`Block`: one block of an event stream as the right server made it, and as a wrong one may change it. Lines end in LF."""

import json
from dataclasses import dataclass
from typing import Any, Self


@dataclass(slots=True)
class Block:
    """The lines of one block, without the blank one that ends it."""

    lines: list[str]

    @classmethod
    def of(cls, text: bytes) -> Self:
        """Read one block's bytes."""
        return cls([line for line in text.decode("utf-8", "surrogatepass").split("\n") if line])

    def encoded(self) -> bytes:
        """Return its bytes."""
        return "".join(f"{line}\n" for line in (*self.lines, "")).encode("utf-8", "surrogatepass")

    def field(self, name: str) -> str | None:
        """Return the value of a field, None where there is none."""
        return next((line.removeprefix(f"{name}: ") for line in self.lines if line.startswith(f"{name}: ")), None)

    def saying(self, **fields: str | None) -> Self:
        """Return it with other fields; None takes one out."""
        kept = [line for line in self.lines if line.partition(": ")[0] not in fields]
        added = [f"{name}: {value}" for name, value in fields.items() if value is not None]
        return type(self)([*added, *kept])

    @property
    def is_event(self) -> bool:
        """Whether it is an event of the run, not a control frame."""
        return self.field("id") is not None

    @property
    def number(self) -> int:
        """The sequence in its cursor; 0 without one."""
        return int((self.field("id") or ".0").rpartition(".")[2])

    @property
    def kind(self) -> str:
        """The event's type."""
        return self.field("event") or str(self.json.get("type", ""))

    @property
    def json(self) -> dict[str, Any]:
        """The event."""
        value: dict[str, Any] = json.loads(self.field("data") or "{}")
        return value

    def with_json(self, value: Any) -> Self:
        """Return it with another event in it."""
        return self.saying(data=json.dumps(value, ensure_ascii=False, separators=(",", ":")))
