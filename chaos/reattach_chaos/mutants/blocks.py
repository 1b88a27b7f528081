"""The small client's own reader of event streams: lines, and a block at each blank one. LF and CRLF."""

import json
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class Block:
    """One block, whole once its blank line came."""

    id: str = ""
    type: str = "message"
    data: list[str] = field(default_factory=list)

    def value(self) -> Any:
        """Return the data's JSON value."""
        return json.loads("\n".join(self.data))


class Reader:
    """Bytes in, whole blocks out. `begun` is the block that is not whole yet."""

    def __init__(self) -> None:
        self._kept = b""
        self.begun = Block()

    def feed(self, data: bytes) -> list[Block]:
        """Take some bytes; return the blocks that they complete. Those without data (comments, `retry:`) are dropped."""
        *lines, self._kept = (self._kept + data).split(b"\n")
        whole = []
        for line in lines:
            text = line.removesuffix(b"\r").decode("utf-8", "replace")
            if text:
                self._field(text)
                continue
            if self.begun.data:
                whole.append(self.begun)
            self.begun = Block()
        return whole

    def _field(self, line: str) -> None:
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        match name:
            case "id":
                self.begun.id = value
            case "event":
                self.begun.type = value
            case "data":
                self.begun.data.append(value)
            case _:
                pass
