"""A schedule's file as a JSON value: what could not be written again, sent or counted with is refused, with its place.

Never here: which members a schedule has (`files.py`). Pure: bytes or text in, a value out.

Checked by tests/chaos/schedules/test_damaged.py.
"""

import json
import math
import sys
from collections.abc import Iterator
from typing import Any

DEEPEST = 50
"""So many levels of lists and objects. A scenario's script needs ten."""

_LONGEST_SHOWN = 120


class ScheduleError(ValueError):
    """The text is no schedule; says where in it."""


def document(text: str | bytes) -> Any:
    """Return the JSON value of a file's text.

    Raises:
        ScheduleError: Not UTF-8, not JSON, nested too deep, or with a number or a text that is none elsewhere.
    """
    try:
        value = json.loads(text.decode("utf-8") if isinstance(text, bytes) else text, parse_constant=_no_number)
    except UnicodeDecodeError as error:
        raise ScheduleError(f"not UTF-8: byte {error.start} cannot be read") from error
    except RecursionError:
        raise ScheduleError(f"not a schedule: nested deeper than {DEEPEST} levels") from None
    except ScheduleError:
        raise
    except ValueError as error:
        raise ScheduleError(f"not JSON: {error}") from error
    for where, each in _values(value):
        if why := _objection(each):
            raise ScheduleError(f"{where}: {why}")
    return value


def shown(value: Any) -> str:
    """Return a value for a sentence: as Python writes it, and never long."""
    text = repr(value)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"


def _no_number(word: str) -> Any:
    raise ScheduleError(f"not JSON: {word} is no number")


def _values(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield everything in a value with its place, names too; without recursion, since the depth is what is not known.

    Raises:
        ScheduleError: Too deep.
    """
    waiting: list[tuple[str, Any, int]] = [("schedule", value, 1)]
    while waiting:
        where, each, depth = waiting.pop()
        if depth > DEEPEST + 1:
            raise ScheduleError(f"{where[:_LONGEST_SHOWN]}: nested deeper than {DEEPEST} levels")
        yield where, each
        prefix = "" if where == "schedule" else where
        match each:
            case dict():
                yield from ((f"{where}: a member's name", name) for name in each)
                waiting += [(_joined(prefix, name), inner, depth + 1) for name, inner in each.items()]
            case list():
                waiting += [(f"{where}[{place}]", inner, depth + 1) for place, inner in enumerate(each)]
            case _:
                pass


def _joined(prefix: str, name: str) -> str:
    word = name if name.isidentifier() and len(name) <= 60 else shown(name)
    return f"{prefix}.{word}" if prefix else word


def _objection(value: Any) -> str:
    """Return what is wrong with one value; "" where nothing is."""
    match value:
        case str() if any("\ud800" <= character <= "\udfff" for character in value):
            return f"half of a surrogate pair cannot be written: {shown(value)}"
        case float() if not math.isfinite(value):
            return "the number is too large"
        case int() if abs(value) > sys.float_info.max:
            return "the number is too large"
        case _:
            return ""
