"""Text of a server as it may go to a terminal: control characters become visible, so that nobody can send escape sequences.

Pure. To a pipe, text goes as it is.
"""

from __future__ import annotations

import unicodedata

_CONTROLS = {code: f"\\x{code:02x}" for code in (*range(0x20), 0x7F, *range(0x80, 0xA0)) if code not in (0x09, 0x0A)}
_LINE = {**_CONTROLS, 0x09: " ", 0x0A: " ", 0x2028: " ", 0x2029: " "}


def escaped(text: str) -> str:
    r"""Return the text with every C0 and C1 control but tab and newline written as \x1b. A CRLF is a newline."""
    return text if text.isprintable() else text.replace("\r\n", "\n").translate(_CONTROLS)


def line(text: str, most: int | None = None) -> str:
    """Return the text on one line, without controls, cut to at most so many columns."""
    text = text.translate(_LINE)
    if most is None or width(text) <= most:
        return text
    room, kept = most - 1, []
    for letter in text:
        room -= width(letter)
        if room < 0:
            break
        kept.append(letter)
    return "".join(kept) + "…"


def width(text: str) -> int:
    """Return how many columns a terminal uses for text without controls (emoji sequences are counted too wide)."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(letter) else 2 if unicodedata.east_asian_width(letter) in "WF" else 1
        for letter in text
    )


def column(before: int, text: str) -> int:
    """Return the column behind the text, counted from the last newline and from `before` where there is none."""
    _, newline, last = text.rpartition("\n")
    at = 0 if newline else before
    for index, part in enumerate(last.split("\t")):
        at = (at // 8 + 1) * 8 if index else at
        at += width(part)
    return at
