"""Histories as files: JSON lines, one record a line, in the order of their numbers.

    {"kind": "case", "n": 1, "at_ms": 0.0, "version": 1, "id": "rst-after-event-7", "seed": 7}
    {"kind": "delivered", "n": 2, "at_ms": 12.5, "id": "e1.1"}

A member that has its default is left out. When reading, unknown members are ignored and unknown kinds kept as `Other`; a last
line without its end, as a kill leaves it, is dropped; any other bad line is an error with its number. A file of a newer version
is refused.

Checked by tests/chaos/history/test_files.py: what is written is what is read.
"""

import dataclasses
import json
import types
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal, Union, get_args, get_origin, get_type_hints

from reattach_chaos.history import case, client, truth, wire
from reattach_chaos.history.foreign import json_of
from reattach_chaos.history.history import History
from reattach_chaos.history.record import KINDS, Other, Record

LINE_BYTES = 4 * 1024 * 1024  # a journal's dump of 100,000 ids; a longer line is no record
_HINTS: dict[type[Record], dict[str, Any]] = {}  # a class's members and their types; asked for once a class
_HOMES = (case, client, truth, wire)  # importing them fills the table of kinds


class HistoryError(ValueError):
    """A file, or a line, that is no history; says which line and what of it."""


def to_json(record: Record) -> dict[str, Any]:
    """Return a record as the object of its line."""
    if isinstance(record, Other):
        return {"kind": record.name, **_members(record, skip=("name", "facts")), **record.facts}
    return {"kind": record.kind, **_members(record)}


def from_json(value: Any) -> Record:
    """Make a record from the object of its line.

    Raises:
        HistoryError: No object, no kind, a member that is missing or of another type.
    """
    if not isinstance(value, Mapping) or not isinstance(value.get("kind"), str):
        raise HistoryError("a record is an object with a 'kind'")
    kind = KINDS.get(value["kind"], Record)
    hints = _hints(kind)
    facts: dict[str, Any] = {
        name: _taken(value[name], hint, value["kind"], name) for name, hint in hints.items() if name in value
    }
    if kind is Record:
        rest = {name: each for name, each in value.items() if name != "kind" and name not in hints}
        return Other(name=value["kind"], facts=rest, **facts)
    for each in dataclasses.fields(kind):
        if each.name not in facts and each.default is dataclasses.MISSING:
            raise HistoryError(f"a record of kind {value['kind']!r} needs {each.name!r}")
    return kind(**facts)


def write_history(path: Path, records: Iterable[Record]) -> None:
    """Write a whole history; what was there is replaced."""
    # Half of a surrogate pair, which UTF-8 cannot hold, becomes its escape: that is JSON, and is read as what it was.
    with path.open("w", encoding="utf-8", errors="backslashreplace", newline="\n") as file:
        file.writelines(f"{line(record)}\n" for record in records)


def line(record: Record) -> str:
    """Return a record as its line, without the line end."""
    return json.dumps(to_json(record), ensure_ascii=False, separators=(",", ":"))


def read_history(path: Path) -> History:
    """Read a history.

    Raises:
        HistoryError: A line that is no record, or a version that is not known here.
        OSError: The file cannot be read.
    """
    return parse_history(path.read_bytes())


def parse_history(data: bytes) -> History:
    """Read a history from a file's bytes; see `read_history`."""
    whole, _, _ = data.rpartition(b"\n")
    records = [_read(number, raw) for number, raw in enumerate(whole.split(b"\n"), 1) if raw.strip()]
    for record in records:
        if isinstance(record, case.Case) and record.version > case.VERSION:
            raise HistoryError(f"a history of version {record.version}; this program knows {case.VERSION}")
    return History(records)


def _read(number: int, raw: bytes) -> Record:
    if len(raw) > LINE_BYTES:
        raise HistoryError(f"line {number}: longer than {LINE_BYTES} bytes")
    try:
        return from_json(json_of(raw))
    except ValueError as error:  # a HistoryError is one
        raise HistoryError(f"line {number}: {error}") from error


def _members(record: Record, skip: tuple[str, ...] = ()) -> dict[str, Any]:
    members = {
        each.name: getattr(record, each.name)
        for each in dataclasses.fields(record)
        if each.name not in skip and getattr(record, each.name) != each.default
    }
    return {"n": record.n, "at_ms": record.at_ms} | members


def _hints(kind: type[Record]) -> dict[str, Any]:
    if kind not in _HINTS:
        _HINTS[kind] = {name: hint for name, hint in get_type_hints(kind).items() if get_origin(hint) is not ClassVar}
    return _HINTS[kind]


def _taken(value: Any, hint: Any, kind: str, name: str) -> Any:
    """Return a member's value as its class has it."""
    if get_origin(hint) is tuple and isinstance(value, list):
        inner = get_args(hint)[0]
        return tuple(_taken(each, inner, kind, name) for each in value)
    if not _fits(value, hint):
        raise HistoryError(f"member {name!r} of kind {kind!r} cannot be {value!r}")
    return value


def _fits(value: Any, hint: Any) -> bool:
    match get_origin(hint):
        case origin if origin is types.UnionType or origin is Union:  # the second, where a Literal is a part
            return any(_fits(value, each) for each in get_args(hint))
        case origin if origin is Literal:
            return value in get_args(hint)
        case None if hint is float:
            return isinstance(value, int | float) and not isinstance(value, bool)
        case None if hint is int:
            return type(value) is int
        case None:
            return isinstance(value, hint)
        case _:
            return False  # a tuple's value is a list, which was taken before
