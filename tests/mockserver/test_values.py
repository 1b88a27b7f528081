"""The server's small values: cursors, times, events, tokens, canonical JSON, frames, timelines, clocks."""

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from reattach_mockserver.bearer import parse_tokens
from reattach_mockserver.cursor import Cursor, parse_cursor, run_tag
from reattach_mockserver.engine.clock import RunClock
from reattach_mockserver.engine.timeline import timeline
from reattach_mockserver.event import Entry, Stored, body_of, json_text
from reattach_mockserver.faces.canonical import NotJson, digest_of, parse_json
from reattach_mockserver.faces.frames import Frames
from reattach_mockserver.moment import moment, ms_of
from reattach_mockserver.scenarios.expand import plan
from reattach_mockserver.scenarios.script import Parallel, Say, Script, Status, Wait

EPOCHS = st.from_regex(r"[A-Za-z0-9_-]{1,64}", fullmatch=True)
SURROGATES = st.text() | st.text(
    st.sampled_from("a\ud800🙂")
)  # lone ones: a pair of them would be one character in JSON
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | SURROGATES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(SURROGATES, inner, max_size=4),
    max_leaves=12,
)  # fmt: skip


@given(EPOCHS, st.integers(0, 10**19 - 1))
def test_a_cursor_is_read_as_it_was_written(epoch, sequence):
    assert parse_cursor(str(Cursor(epoch, sequence))) == Cursor(epoch, sequence)


@given(st.text(max_size=140))
def test_no_text_upsets_the_reading_of_cursors(text):
    cursor = parse_cursor(text)
    assert cursor is None or str(cursor) == text


@pytest.mark.parametrize(("epoch", "tag"), [("7f3a-1", "7f3a"), ("a-b-12", "a-b"), ("7f3a", None), ("x-y", None)])
def test_an_epoch_names_its_run(epoch, tag):
    assert run_tag(epoch) == tag


@given(st.integers(0, 4_102_444_800_000))
def test_a_moment_is_read_as_it_was_written_and_sorts_as_time(ms):
    assert ms_of(moment(ms)) == ms
    assert moment(ms) < moment(ms + 1)
    assert len(moment(ms)) == 24


@given(JSON, st.none() | SURROGATES, SURROGATES)
@example("\ud800", "\udfff", "\ud800")
def test_an_events_text_is_one_line_of_utf_8_and_says_what_was_given(data, text, kind):
    """RS-72: any characters, lone surrogates too, U+2028 as it is; no line break of any kind that ends a line."""
    offered = Entry(
        id="evt_1", step="0", type=kind, time=moment(0), at=0, data=json_text(data),
        text=None if text is None else json_text(text),
    )  # fmt: skip
    body = body_of(offered, run_id="run_1", sequence=3, prev_id="evt_0", time=moment(0))
    assert not set(body) & {0x0A, 0x0D, 0x00}
    read = json.loads(body.decode("utf-8"))
    assert (read["data"], read.get("text"), read["type"]) == (data, text, kind)
    assert list(read)[:7] == ["id", "prev_id", "run_id", "sequence", "type", "time", "data"]


def test_u2028_goes_out_as_itself():
    assert json_text("a\u2028b") == '"a\u2028b"'


def test_a_number_that_is_not_finite_has_no_text():
    with pytest.raises(ValueError, match="JSON"):
        json_text({"n": float("inf")})


@given(JSON)
def test_a_value_written_in_any_way_has_one_digest(value):
    """RFC 8785: spacing, escapes and the order of members do not count."""
    compact = json.dumps(value, ensure_ascii=True)
    spread = json.dumps(value, indent=3, sort_keys=True, ensure_ascii=True)
    assert digest_of(parse_json(compact.encode())) == digest_of(parse_json(spread.encode()))


@pytest.mark.parametrize(
    ("one", "other"), [("1", "1.0"), ("100", "1e2"), ("0", "-0"), ("0.1", "1E-1"), ('"\\u0041"', '"A"'), ("[1]", " [ 1 ] ")]
)  # fmt: skip
def test_equal_values_have_equal_digests(one, other):
    assert digest_of(parse_json(one.encode())) == digest_of(parse_json(other.encode()))


@pytest.mark.parametrize(
    ("one", "other"),
    [("1", '"1"'), ("1", "true"), ("null", "false"), ("[]", "{}"), ('{"a":1}', '{"a":null}'), ("{}", '{"a":null}'),
     ('["a","b"]', '["b","a"]'), ('["a,b"]', '["a","b"]'), ("1", "2"), ("0.1", "0.10000000000000002")],
)  # fmt: skip
def test_other_values_have_other_digests(one, other):
    assert digest_of(parse_json(one.encode())) != digest_of(parse_json(other.encode()))


@pytest.mark.parametrize(
    "text", ['{"a":1,"a":1}', '[{"a":1,"b":2,"a":1}]', "NaN", "-Infinity", "1e400", "", "{", "9" * 400]
)
def test_what_has_no_one_meaning_is_no_json(text):
    with pytest.raises(NotJson):
        parse_json(text.encode())


def test_tokens_are_read_by_line_and_never_shown():
    tokens = parse_tokens(["# people", "", "alice a1", "alice a2 ", "eve  e1 none"])
    assert tokens.caller("a1").principal == tokens.caller("a2").principal == "alice"
    assert (tokens.caller("e1").rights, tokens.caller("a1").rights, tokens.caller("x")) == (False, True, None)
    assert "a1" not in repr(tokens).replace(tokens.caller("a1").token, "").replace(tokens.caller("a2").token, "")


@pytest.mark.parametrize("lines", [["alice"], ["alice a1 all"], ["alice a1", "bob a1"], ["alice secret none more"]])
def test_a_wrong_line_of_tokens_is_named_by_number_only(lines):
    with pytest.raises(ValueError, match=f"line {len(lines)}") as wrong:
        parse_tokens(lines)
    assert "secret" not in str(wrong.value)
    assert "a1" not in str(wrong.value)


@pytest.mark.parametrize("kind", ["a\nb", "a\rb", "a\x00b", "", "a\ud800"])
def test_a_type_that_would_break_a_line_has_no_event_field(kind):
    """The type still stands in the event's own text."""
    block = Frames("e1", "lf", named=True).event(Stored(3, "evt_1", kind, False, b"{}"))
    assert block == b"id: e1.3\ndata: {}\n\n"


def test_a_timeline_is_in_order_and_ends_when_the_last_branch_does():
    script = Script(
        name="s",
        steps=(
            Parallel(branches=((Say(text="a b", every_ms=5), Wait(ms=100)), (Wait(ms=7), Status(text="x")))),
            Status(text="after"),
        ),
    )
    dues = [due for due in timeline(plan(script), script.seed) if due.act is not None]
    times = [due.at_ms for due in dues]
    assert times == sorted(times)
    assert [(due.act.path, due.at_ms) for due in dues] == [
        ("0.0.0.0", 5), ("0.1.1", 7), ("0.0.0.1", 10), ("0.0.0.done", 10), ("1", 110), ("end", 110),
    ]  # fmt: skip


def test_a_resumed_clock_counts_from_what_was_played():
    clock = RunClock(virtual=False, scripted=False, created_at=moment(0), now=lambda: 1_000, ticks=lambda: 7.0)
    clock.passed(500)
    assert clock.delay(750) == 0.25
    assert clock.time(750) == moment(1_000)


def test_a_virtual_clock_never_waits_and_says_the_scripts_time():
    clock = RunClock(virtual=True, scripted=False, created_at=moment(60_000), now=lambda: 5)
    assert clock.delay(10**9) == 0
    assert clock.time(1_500) == moment(61_500)
