"""What others wrote (a client's line, a server's answer), read so that nothing in it can stop us.

JSON that one would stumble over is none here: nested without end, a number of thousands of digits, bytes that are no UTF-8. A text
is plain where it can be an id, a status or a run of the protocol; where it only explains, it is made printable. Numbers are kept
where a program can count with them. Pure. Never here: what any of it means.

Checked by tests/chaos/history/test_foreign.py.
"""

import json
import re
from collections.abc import Mapping
from typing import Any, TypeGuard

MOST_DEPTH = 200
"""Far below the interpreter's own limit, which depends on who calls: what is read here can also be written, and be digested."""
MOST_NAME = 4096
"""Characters of an id, a status, a run; a longer one is none."""
MOST_NUMBER = 1 << 63
_NO_NAME = re.compile("[\0\r\n\ud800-\udfff]")


def json_of(text: str | bytes) -> Any:
    """Return the value of a JSON text.

    Raises:
        ValueError: It is none, or is nested deeper than any event is.
    """
    try:
        value = json.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    opened = text.count(b"[") + text.count(b"{") if isinstance(text, bytes) else text.count("[") + text.count("{")
    if opened > MOST_DEPTH and _is_deep(value):
        raise ValueError("nested too deeply")
    return value


def is_plain(text: str) -> bool:
    """Whether a text can be a name of the protocol: an event id has no NUL and no line end, and all is text that UTF-8 can hold."""
    return len(text) <= MOST_NAME and _NO_NAME.search(text) is None


def is_number(value: Any) -> TypeGuard[int]:
    """Whether a value is a whole number that a program can count with; `true` is none."""
    return type(value) is int and abs(value) < MOST_NUMBER


def printable(value: Any, most: int = 1000) -> str:
    """Return a value as one line that any terminal and file takes: what cannot be printed as its escape, cut off after `most`."""
    text = str(value)[:most]
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode("ascii") for each in text)


def _is_deep(value: Any) -> bool:
    """Whether arrays and objects lie deeper in each other than they may; level by level, since recursion is what must not be."""
    level = [value]
    for _ in range(MOST_DEPTH):
        level = [inner for each in level for inner in _parts(each)]
        if not level:
            return False
    return True


def _parts(value: Any) -> list[Any]:
    """Return the arrays and objects in one."""
    if isinstance(value, Mapping):
        found = list(value.values())
    elif isinstance(value, list):
        found = value
    else:
        return []
    return [each for each in found if isinstance(each, dict | list)]
