"""`Around`: the bytes around a cut, for a person: what had passed, what never did, as text and as hex."""

from dataclasses import dataclass

SHOWN = 24  # bytes of text on either side
HEX = 8  # bytes of hex on either side


@dataclass(frozen=True, slots=True, kw_only=True)
class Around:
    """Where in an answer a fault came.

    Attributes:
        before: The last bytes that passed.
        behind: The next bytes as far as the gate had them; they never passed, unless the fault ends nothing.
        number: The event's number, None where the place is none of an event's.
        offset: So many bytes of the answer had passed, head and framing included.
        prefix_sha256: Of those bytes.
    """

    before: bytes = b""
    behind: bytes = b""
    number: int | None = None
    offset: int | None = None
    prefix_sha256: str | None = None

    def caption(self) -> str:
        """Return `…data: {"t":"h⏐ello"}… [22 68 | 65 6c]`."""
        before, behind = self.before[-SHOWN:], self.behind[:SHOWN]
        lead = "…" if len(self.before) > SHOWN else ""
        tail = "…" if len(self.behind) > SHOWN else ""
        return f"{lead}{_text(before)}|{_text(behind)}{tail} [{before[-HEX:].hex(' ')} | {behind[:HEX].hex(' ')}]"


def _text(data: bytes) -> str:
    text = data.decode("utf-8", "replace")
    return "".join({"\r": "␍", "\n": "␊"}.get(each, each if each.isprintable() else "�") for each in text)
