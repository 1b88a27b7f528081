"""The native protocol's JSON pages: a page becomes the frames that a stream would have brought, each event's text untouched.

An event is the same bytes on every delivery (PROTOCOL.md, 1), and its digest is of those bytes; so the text of each is cut out
of the page, never written anew. The first page of a connection begins with what a stream says in `stream.attached`.

Checked by tests/client/profiles/test_native_pages.py.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from json.decoder import scanstring  # type: ignore[attr-defined]  # the C scanner, not in typeshed
from typing import Any

from reattach.profiles.base import Page, Unreadable
from reattach.profiles.native_values import CURSOR, json_object, maybe, maybe_int, quoted, status_word
from reattach.wire.frame import Frame

_SPACE = re.compile(r"[ \t\n\r]*")
_scan = json.JSONDecoder().scan_once  # type: ignore[attr-defined]  # the C scanner, not in typeshed


def page_of(after: str | None, body: bytes, *, first: bool) -> Page:
    """Return the page that an answer holds.

    Args:
        after: The cursor that was asked after.
        body: The answer's body.
        first: Whether it begins a connection.

    Raises:
        Unreadable: It is no page.
    """
    try:
        text = body.decode("utf-8", "replace")
        told = json_object(text)
        following = told.get("next")
        if not isinstance(told.get("events"), list) or type(following) is not str or CURSOR.match(following) is None:
            raise ValueError("no page")
        epoch = maybe(told, "epoch") or following.rpartition(".")[0]
        frames = [Frame(_type(value), raw, "") for value, raw in _events(text)]
    except ValueError as error:
        raise Unreadable(f"an answer that is no page of events ({quoted(body)})") from error
    head = maybe_int(told, "last_sequence")
    if first:
        frames.insert(0, _attached(told, after, epoch))
    # Where a server does not say how far its log goes, only a page without events is the last.
    reached = int(following.rpartition(".")[2])
    done = len(told["events"]) == 0 if head is None else reached >= head
    return Page(tuple(frames), following, done or not told["events"], status_word(told.get("status")).settled)


def _attached(told: dict[str, Any], after: str | None, epoch: str) -> Frame:
    """Return what a stream would have begun with. `earliest` is the cursor before the oldest event kept."""
    first = maybe_int(told, "first_sequence")
    cursor = f"{epoch}.0" if after is None else after
    if after == "earliest":
        cursor = f"{epoch}.{0 if first is None else max(0, first - 1)}"
    said = {name: told[name] for name in ("cursor_id", "last_sequence", "protocol") if name in told}
    # A page has no place for the version (PROTOCOL, section 3), so its absence leaves nothing unproven.
    return Frame("stream.attached", json.dumps({"protocol": 1, "epoch": epoch, "cursor": cursor, **said}), "")


def _type(value: object) -> str:
    """Return what a stream would name the block; an event is known by its data, never taken for a control frame."""
    kind = value.get("type") if isinstance(value, dict) else None
    return kind if isinstance(kind, str) and not kind.startswith("stream.") else "message"


def _events(text: str) -> Iterator[tuple[object, str]]:
    """Yield each event of a page that was found to be JSON, with its own text."""
    at = _past(text, text.index("{") + 1)
    while text[at] == '"':
        name, at = scanstring(text, at + 1)
        at = _past(text, _past(text, at) + 1)  # the colon
        if name != "events":
            _, at = _scan(text, at)
        elif text[at] == "[":
            at = _past(text, at + 1)
            while text[at] != "]":
                value, end = _scan(text, at)
                yield value, text[at:end]
                at = _past(text, end)
                at = _past(text, at + 1) if text[at] == "," else at
            return
        at = _past(text, at)
        if text[at] != ",":
            return
        at = _past(text, at + 1)


def _past(text: str, at: int) -> int:
    """Return where the white space from here on ends."""
    found = _SPACE.match(text, at)
    return at if found is None else found.end()
