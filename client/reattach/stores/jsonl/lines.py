"""One line of a JSONL journal: what a person reads, what a machine checks. Pure functions; no file, no clock.

    {"seq":3,"kind":"events","run":1,"at":"…","first":1,"mark":[2,"e1",2,"e2","e1.2"],"events":[{…},{…}],"crc":"8f12ab34"}

`seq` grows by one a line. `crc` is the CRC-32 (eight hex digits) of every byte of the line before
`,"crc"`. The first line of a file says what it is: `"reattach":"journal/1"`. The members of each kind are in `tables`.

    jq -c 'select(.events) | {run} + .events[]' runs.jsonl       every event, one a line
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple
from zlib import crc32

from reattach.stores.check import plain

VERSION = 1
"""The schema version that this code writes and reads."""

_EVENTS = b',"events":['
_END_BYTES = len(b',"crc":"01234567"}')
_TITLE = re.compile(rb'\{"reattach":"journal/(\d{1,9})"')
_TITLE_START = b'{"reattach":"journal/'


class Line(NamedTuple):
    """A line that was read: its members without `events`, which are parsed only when they are asked for."""

    seq: int
    kind: str
    told: Mapping[str, Any]


def line(seq: int, kind: str, told: Mapping[str, Any], events: str | None = None) -> bytes:
    """Return a line with its end. `events` is the text of a JSON array, kept as it is but for the ends of lines in it."""
    # Parts of a vendor's JSON are kept verbatim. A raw end of line in JSON is white space, never part of a text.
    array = f',"events":{events.translate(_ENDS)}' if events is not None else ""
    head = json.dumps({"seq": seq, "kind": kind, **told}, ensure_ascii=False, separators=(",", ":"))
    body = encoded(f"{head[:-1]}{array}")
    return b"%s%s\n" % (body, _end(body))


_ENDS = {ord("\n"): " ", ord("\r"): " "}


def title(seq: int, told: Mapping[str, Any]) -> bytes:
    """Return the first line of a file."""
    head = json.dumps({"reattach": f"journal/{VERSION}", "seq": seq, "kind": "journal", **told}, separators=(",", ":"))
    body = head[:-1].encode()
    return b"%s%s\n" % (body, _end(body))


def version_of(first: bytes) -> int | None:
    """Return the schema version that a first line names, None if it is no first line of a journal."""
    found = _TITLE.match(first)
    return int(found[1]) if found is not None else None


def is_begun(first: bytes) -> bool:
    """Return whether bytes are a journal's first line or the beginning of one, or were so before zeros came."""
    head = first[: len(_TITLE_START)].rstrip(b"\0")
    return _TITLE_START.startswith(head)


def is_good(line: bytes) -> bool:
    """Return whether a line, without its end, is as it was written."""
    return line[-_END_BYTES:] == _end(line[:-_END_BYTES])


def parsed(line: bytes) -> Line:
    """Return what a good line says, without its events.

    Raises:
        ValueError: It was not written by us.
    """
    head, found, _ = line[:-_END_BYTES].partition(_EVENTS)
    told = json.loads(head + b"}")
    try:
        seq, kind = told.pop("seq"), told.pop("kind")
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError("a line without seq and kind") from error
    if not isinstance(seq, int) or not isinstance(kind, str) or (found and "run" not in told):
        raise ValueError("a line without seq, kind or run")
    return Line(seq, kind, told)


def events_of(line: bytes) -> list[Any]:
    """Return the parsed events of a good line."""
    _, _, events = line[:-_END_BYTES].partition(_EVENTS)
    found: list[Any] = json.loads(b"[" + events)
    return found


def renumbered(line: bytes, seq: int) -> bytes:
    """Return a good line, with its end, under another number."""
    head, found, events = line[:-_END_BYTES].partition(_EVENTS)
    told = json.loads(head + b"}")
    fresh = json.dumps({**told, "seq": seq}, ensure_ascii=False, separators=(",", ":"))
    body = encoded(fresh[:-1]) + found + events
    return b"%s%s\n" % (body, _end(body))


def encoded(text: str) -> bytes:
    """Return JSON text as UTF-8, with half a surrogate pair escaped."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return plain(text).encode()


def _end(body: bytes) -> bytes:
    return b',"crc":"%08x"}' % crc32(body)
