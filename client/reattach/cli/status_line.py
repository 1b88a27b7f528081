"""One updating line on a terminal, below text that may stand in the middle of a line of its own.

Text goes to stdout and the line to stderr, and both are the same terminal. The line is drawn in the row below the text's last
one and erased before anything else is written; the text's place is kept by the terminal itself (save and restore cursor), after
a line feed that keeps the column (IND) has made sure that there is a row below. Nothing here knows what is said.
"""

from __future__ import annotations

from typing import TextIO

from reattach.cli import visible

_SAVE, _RESTORE = "\x1b7", "\x1b8"
_CLEAR = "\r\x1b[2K"
_ROW_BELOW = "\x1bD\x1b[1A"
_DOWN = "\x1b[1B"


class StatusLine:
    """The line, on a terminal that can move its cursor.

    Args:
        err: Where it is drawn.
        dim: Whether it may be dimmed.
    """

    def __init__(self, err: TextIO, *, dim: bool) -> None:
        self._err = err
        self._dim = dim
        self._drawn = ""
        self._below = False

    def draw(self, text: str, column: int, columns: int) -> None:
        """Draw the line, or draw it anew, where the text before it ends in this column of so many."""
        text = visible.line(text, columns - 1)
        if text == self._drawn:
            return
        if column and column % columns == 0:
            return  # the cursor stands behind the last column, a place that terminals do not keep
        self.erase()
        shown = f"\x1b[2m{text}\x1b[0m" if self._dim else text
        self._below = column > 0
        self._write(f"{_ROW_BELOW}{_SAVE}{_DOWN}{_CLEAR}{shown}{_RESTORE}" if self._below else f"{_CLEAR}{shown}\r")
        self._drawn = text

    def erase(self) -> None:
        """Remove the line; the cursor is where the text ends."""
        if self._drawn:
            self._write(f"{_SAVE}{_DOWN}{_CLEAR}{_RESTORE}" if self._below else _CLEAR)
            self._drawn = ""

    def _write(self, text: str) -> None:
        self._err.write(text)
        self._err.flush()
