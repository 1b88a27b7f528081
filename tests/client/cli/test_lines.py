"""The JSON lines by themselves: any text survives, no line is too long, whatever happens to be in it."""

import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reattach import Connection, Event, Gap
from reattach.cli.lines import LINE_BYTES, Lines
from reattach.errors import CursorExpired


def written(*, encoding="utf-8"):
    out = io.TextIOWrapper(io.BytesIO(), encoding=encoding, newline="")
    err = io.StringIO()
    return Lines(out, err, quiet=False), out.buffer, err


def event(text, **more):
    facts = {"id": "e", "run_id": "r", "type": "message.delta", "data": {"text": text}, "kind": "text", "text": text}
    return Event(**{**facts, **more})


@given(st.text(st.characters(), max_size=30))
def test_any_text_is_one_line_and_comes_back(text):
    """Controls, U+2028 and half of a surrogate pair too, for a reader that splits lines as str.splitlines does."""
    lines, out, _ = written(encoding="ascii")
    lines.event(event(text), ())
    (line,) = out.getvalue().decode("ascii").splitlines()
    assert json.loads(line)["text"] == text


@pytest.mark.parametrize(
    ("text", "cut"),
    [("x" * (LINE_BYTES // 2 - 200), False), ("x" * LINE_BYTES, True), ("🙂" * 60_000, False), ("🙂" * 150_000, True)],
)
def test_a_line_of_a_mebibyte_goes_without_its_long_members(text, cut):
    """Counted in bytes; escapes alone cut nothing."""
    lines, out, _ = written()
    lines.event(event(text), ())
    assert len(out.getvalue()) <= LINE_BYTES
    told = json.loads(out.getvalue())
    assert told.get("truncated", False) is cut
    assert ("text" in told, "data" in told) == (not cut, not cut)
    assert told["id"] == "e"


def test_a_gap_has_its_own_kind():
    """With what is missing, and the cursors on both sides."""
    lines, out, _ = written()
    gap = Gap(run_id="r", reason="expired", after="e1.4", until="e1.9", missing=5, snapshot={"big": 1})
    lines.event(event("", kind="gap", type="gap", gap=gap), ())
    expected = {"kind": "gap", "reason": "expired", "after": "e1.4", "until": "e1.9", "missing": 5}
    assert json.loads(out.getvalue()) == expected


def test_a_replay_makes_one_connection_line():
    """How far it has come changes with every batch, and tells a program nothing."""
    lines, out, _ = written()
    for behind in (40, 30, 20):
        lines.connection(Connection(phase="replaying", behind=behind))
    lines.connection(Connection(phase="waiting", reason="reset", attempt=2, retry_in=1.5))
    told = [json.loads(line) for line in out.getvalue().splitlines()]
    assert [each["phase"] for each in told] == ["replaying", "waiting"]
    assert told[1]["retry_in_s"] == 1.5


def test_an_error_is_a_line_for_programs_and_a_sentence_for_people():
    """The same facts; the server's own code is in `problem`."""
    lines, out, err = written()
    gap = Gap(run_id="r", reason="expired")
    error = CursorExpired("cannot be had.", gap=gap, cursor="e1.4", hint="Attach.", problem="cursor_expired")
    lines.failed(error, "")
    assert json.loads(out.getvalue()) == {
        "kind": "error",
        "code": "cursor_expired",
        "message": "cannot be had. Attach.",
        "cursor": "e1.4",
        "hint": "Attach.",
        "problem": "cursor_expired",
    }
    assert err.getvalue() == "CursorExpired: cannot be had. Attach.\n"
