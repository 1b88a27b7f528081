"""Cuts a text into the pieces of its deltas.

One law: the pieces put together are the text, exactly, for every text and every way to split. No
piece begins inside what a reader takes for one character: after a base letter its combining marks
stay with it, as do the parts of a joined emoji, the two letters of a flag, and CR LF.

That last rule is a short form of Unicode's extended grapheme clusters (UAX #29): enough for the
scripts that we write, with no table of our own. Where it errs it joins too much or too little, and
still never cuts a code point, because it works on code points.

Checked by tests/mockserver/scenarios/test_pieces.py.
"""

import re
import unicodedata

from reattach_mockserver.scenarios.script import Split

_WORD = re.compile(r"\S+\s*|\s+")
# Only these three end a line in an event stream; U+2028 and its like are characters of the text here.
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
_JOINER = "\u200d"


def split_text(text: str, split: Split) -> tuple[str, ...]:
    """Return the pieces of `text`, none of them empty; an empty text has none."""
    match split:
        case "whole":
            return (text,) if text else ()
        case "words":
            return _joined(text, [found.end() for found in _WORD.finditer(text)])
        case "lines":
            return _joined(text, [found.end() for found in _LINE.finditer(text)])
        case int():
            starts = _starts(text)
            cuts = [*starts[split::split], len(text)] if text else []
            return tuple(text[start:end] for start, end in zip([0, *cuts], cuts, strict=False))


def _joined(text: str, cuts: list[int]) -> tuple[str, ...]:
    """Cut at `cuts`, but for those inside a character."""
    pieces, start = [], 0
    for cut in cuts:
        if cut < len(text) and _belongs_to_the_one_before(text, cut):
            continue
        pieces.append(text[start:cut])
        start = cut
    return tuple(pieces)


def _starts(text: str) -> list[int]:
    """Return the indices at which a character, as a reader sees it, begins."""
    starts: list[int] = []
    flag_open = False
    for index, char in enumerate(text):
        second_of_flag = flag_open and _is_flag_letter(char)
        flag_open = _is_flag_letter(char) and not second_of_flag
        if index == 0 or not (second_of_flag or _belongs_to_the_one_before(text, index)):
            starts.append(index)
    return starts


def _belongs_to_the_one_before(text: str, index: int) -> bool:
    before, char = text[index - 1], text[index]
    if char.isascii():
        return before == "\r" and char == "\n"
    return (
        char == _JOINER
        or before == _JOINER
        or unicodedata.category(char).startswith("M")  # combining marks and variation selectors
        or "\U0001f3fb" <= char <= "\U0001f3ff"  # skin tones
        or "\U000e0020" <= char <= "\U000e007f"  # tags of regional flags
    )


def _is_flag_letter(char: str) -> bool:
    return "\U0001f1e6" <= char <= "\U0001f1ff"
