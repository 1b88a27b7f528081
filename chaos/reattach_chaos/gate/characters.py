"""Where a character of two, three or four bytes is half: the first of each width in some text."""

import re
from collections.abc import Iterator

_LEADS = {2: re.compile(rb"[\xc2-\xdf]"), 3: re.compile(rb"[\xe0-\xef]"), 4: re.compile(rb"[\xf0-\xf4]")}


class Halves:
    """Looks for them in text that grows."""

    def __init__(self) -> None:
        self._told: set[int] = set()

    def clear(self) -> None:
        """Begin another text."""
        self._told.clear()

    def found(self, text: bytearray, start: int) -> Iterator[tuple[int, int]]:
        """Yield (place in the text, width) of halves behind `start`, which had come before or begins the text."""
        for width, leads in _LEADS.items():
            if width in self._told:
                continue
            # A 4-byte character's half lies one byte behind its lead, which may have come before.
            back = width // 2 - 1
            if (lead := leads.search(text, max(0, start - back))) and lead.start() + back < len(text):
                self._told.add(width)
                yield lead.start() + width // 2, width
