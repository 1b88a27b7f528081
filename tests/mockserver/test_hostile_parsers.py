"""Whatever is sent: a value or a documented refusal, never an unexpected exception, in bounded time.

The parsers one by one, then whole calls and whole sockets over them. Scenario files and recordings have the same law in
scenarios/test_parse_laws.py and test_recording.py, cursors in test_values.py.
"""

import asyncio
import json
import string
import time
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from mockserver_dialogue import Dialogue
from mockserver_stage import OPEN, QUICK, Site
from reattach_mockserver.app import create_app
from reattach_mockserver.bearer import parse_tokens
from reattach_mockserver.cursor import parse_cursor, run_tag
from reattach_mockserver.faces.accept import chosen_form, is_json, takes_json
from reattach_mockserver.faces.call import Call
from reattach_mockserver.faces.canonical import NotJson, digest_of, parse_json
from reattach_mockserver.faces.cors import cors_headers, may_connect
from reattach_mockserver.faces.create import _key
from reattach_mockserver.faces.problem import CODES, Refusal
from reattach_mockserver.faces.socket_messages import read_message
from reattach_mockserver.library import Library
from reattach_mockserver.logs.sqlite import SqliteLog
from reattach_mockserver.settings import Settings

BOUND = 2.0  # seconds for one input; a quiet machine takes a thousandth of it

HEADER = st.text(st.characters(max_codepoint=255, exclude_characters="\r\n\x00"), max_size=60)
PIECES = st.sampled_from(
    ["application/json", "text/event-stream", "*/*", "text/*", ";", ",", "q=", "0.5", "nan", "inf", "1_0", "-1", "1e999",
     " ", "q=0", "application/", "+json", "\xe9", '"', "charset=utf-8"]
)  # fmt: skip
ACCEPT = st.lists(HEADER | st.lists(PIECES, max_size=12).map("".join), max_size=4)
LONE = st.text(st.characters(categories=["Cs", "L", "N", "P", "Z", "Cc"]), max_size=8)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.floats() | LONE,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(LONE, inner, max_size=3),
    max_leaves=8,
)
JSON_PIECES = st.sampled_from(
    [b"{", b"}", b"[", b"]", b",", b":", b'"', b'"a"', b"1", b"-0", b"1e999", b"1" * 400, b"1" * 5_000, b"0." + b"3" * 400,
     b"NaN", b"-Infinity", b"true", b"null", b"\\ud800", b'"\\ud800"', b'"\\udc00\\ud800"', b"\xff", b"\xed\xa0\x80", b" ",
     b"\x00", b'{"a":1,"a":2}', b"\xef\xbb\xbf", b'"\\u0000"', b"[" * 500, b'{"a":' * 500, b"\\", b'"\\x"']
)  # fmt: skip
BODIES = st.binary(max_size=60) | st.lists(JSON_PIECES, max_size=10).map(b"".join)
LAW = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def outcome(call: Callable[[], Any], refusal: type[Exception]) -> tuple[Any, Any]:
    """Return what a call gives, and how it refused; any other exception is the test's failure."""
    try:
        return call(), None
    except refusal as error:
        return None, error


def call_of(headers: list[tuple[str, str]], query: bytes = b"") -> Call:
    raw = [(name.encode(), value.encode("latin-1")) for name, value in headers]
    return Call({"type": "http", "method": "GET", "headers": raw, "query_string": query}, None, None, {})


@LAW
@given(ACCEPT)
def test_any_accept_chooses_a_form_or_none(lines):
    assert chosen_form(lines) in ("json", "sse", None)
    assert takes_json(lines) in (True, False)
    assert is_json(lines) in (True, False)


@LAW
@given(st.lists(HEADER | st.text(st.sampled_from(string.printable[:94]), max_size=300), max_size=3))
def test_any_key_is_taken_or_refused(values):
    """Visible ASCII, 1 to 255 of it, once."""
    key, refusal = outcome(lambda: _key(call_of([("idempotency-key", value) for value in values])), Refusal)
    if refusal is not None:
        assert refusal.code in ("idempotency_key_missing", "invalid_request")
    else:
        assert values == [key]
        assert 1 <= len(key) <= 255
        assert all("!" <= letter <= "~" for letter in key)


@LAW
@given(st.lists(HEADER | st.from_regex(r"https?://[a-z0-9.:\[\]@%\t-]{0,30}"), max_size=2), st.booleans())
def test_any_origin_is_judged_and_none_is_echoed_that_is_not_loopback(origins, tokens):
    allowed = cors_headers(origins, tokens=tokens).get("Access-Control-Allow-Origin")
    assert allowed in (None, "*", *origins)
    assert may_connect(origins, tokens=tokens) in (True, False)


@LAW
@given(
    st.binary(max_size=80)
    | st.lists(st.sampled_from([b"limit", b"=", b"&", b"9" * 30, b"-", b"%", b"%ff", b"1", b";"])).map(b"".join)
)
def test_any_query_gives_a_number_or_a_refusal(query):
    call = call_of([], query)
    for name in ("limit", "wait_ms"):
        number, refusal = outcome(partial(call.number, name, 100, 1, 1_000), Refusal)
        assert refusal.code == "invalid_request" if refusal else 1 <= number <= 1_000


@LAW
@given(st.text() | st.from_regex(r"[A-Za-z0-9_-]{0,70}(\.[0-9]{0,25})?-?"))
def test_any_text_is_a_cursor_or_none_and_an_epoch_of_ours_or_none(text):
    cursor = parse_cursor(text)
    assert cursor is None or (str(cursor) == text and len(text.encode()) <= 128)
    assert run_tag(text) is None or text.startswith(run_tag(text))


@LAW
@given(st.lists(LONE | st.sampled_from(["alice a1", "bob b1 none", "#", "a b c d", "\ud800 x"]), max_size=5))
def test_any_lines_are_tokens_or_say_which_is_not_one(lines):
    _, error = outcome(lambda: parse_tokens(lines), ValueError)
    assert error is None or str(error).startswith("line ")


@LAW
@given(BODIES)
def test_any_body_is_a_value_with_a_digest_or_no_json(body):
    """And what has a value has one that can be written, and read as the same."""
    begun = time.monotonic()
    digest, error = outcome(lambda: digest_of(parse_json(body)), NotJson)
    if error is None:
        assert digest_of(parse_json(json.dumps(parse_json(body)).encode())) == digest
    else:
        assert len(str(error)) < 500
    assert time.monotonic() - begun < BOUND


@pytest.mark.parametrize(
    "body",
    [b"[" * 1_000_000, b'{"a":' * 200_000, b"1" * 1_000_000, b'"' + b"\\ud83d" * 160_000 + b'"', b"[" + b"1e999," * 150_000,
     b"{" + b",".join(b'"%d":0' % number for number in range(20_000)) + b"}", b'["' + b"\\u0000" * 160_000 + b'"]',
     b"0." + b"1" * 1_000_000, b"[" + b"[]," * 60_000 + b"[]]", b"1e" + b"9" * 1_000_000, b'{"a":1,' * 2 + b'"a":1}'],
)  # fmt: skip
def test_a_megabyte_of_malice_is_answered_in_bounded_time(body):
    """Depth, huge numbers, huge strings, many members: each is linear, or ends before it costs anything."""
    begun = time.monotonic()
    _, error = outcome(lambda: digest_of(parse_json(body)), NotJson)
    assert error is None or len(str(error)) < 500
    assert time.monotonic() - begun < 5 * BOUND


@LAW
@given(
    st.fixed_dictionaries(
        {},
        optional={
            "text": BODIES.map(
                lambda body: body.decode("utf-8", "surrogatepass") if body.isascii() else body.decode("latin-1")
            )
            | LONE,
            "bytes": st.binary(max_size=9),
        },
    )
)
def test_any_message_of_a_socket_is_an_object_with_a_type_or_refused(message):
    value, refusal = outcome(lambda: read_message(message, 1_000), Refusal)
    assert refusal.code in ("invalid_request", "body_too_large") if refusal else isinstance(value["type"], str)


# whole calls ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def on_site(tmp_path_factory):
    """Run a coroutine over one site, in one loop; its log is in a file, which is stricter than memory."""
    log = SqliteLog(tmp_path_factory.mktemp("hostile") / "log.db")
    with asyncio.Runner() as runner:
        app = create_app(Settings(scripts=Library({"quick": QUICK, "open": OPEN}), default="quick", log=log))
        runner.run(app.engine.start())
        site = Site(app)

        def run(work: Callable[[Site], Coroutine[Any, Any, Any]]) -> Any:
            return runner.run(work(site))

        yield run
        runner.run(site.close())


MEMBERS = {
    "input": VALUES | st.just({"scenario": "quick"}) | st.builds(dict, scenario=VALUES),
    "continues": VALUES | st.just("run_x"),
    "responses": VALUES
    | st.lists(st.dictionaries(st.sampled_from(["action_id", "decision", "result", "error"]), VALUES)),
    "on_active": VALUES | st.sampled_from(["reject", "cancel"]),
    "metadata": VALUES,
    "session_id": VALUES | st.just("s"),
}


@settings(LAW, max_examples=30)
@given(
    value=VALUES | st.fixed_dictionaries({}, optional=MEMBERS),
    key=st.text(st.sampled_from("abc"), min_size=1, max_size=2),
)
@example({"continues": "\ud800", "responses": []}, "a")
@example({"input": {"scenario": 10**300}, "session_id": "\udfff"}, "b")
@example({"input": {"scenario": "\ud800"}, "metadata": {"\ud800": "\udc00"}}, "c")
def test_any_create_is_answered_with_a_run_or_a_documented_refusal(on_site, value, key):
    """Never 500, and what was made can be read on every face."""

    async def work(site):
        answer = await site.call("POST", "/v1/runs", {"Idempotency-Key": key}, json.dumps(value).encode())
        if answer.status in (200, 201):
            run_id = answer.json["id"]
            for path in ("", "/events", "/snapshot"):
                assert (await site.get(f"/v1/runs/{run_id}{path}")).status == 200
        else:
            assert answer.status == CODES[answer.code] < 500

    on_site(work)


PATHS = st.lists(
    st.sampled_from(
        ["v1", "runs", "run_1", "events", "..", "%2e%2e", "%00", "%ff", "", "sessions", "operations", "é", " "]
    ),
    max_size=6,
).map("/".join)


@settings(LAW, max_examples=30)
@given(
    method=st.sampled_from(["GET", "HEAD", "POST", "PUT", "OPTIONS", "TRACE", "X"]),
    path=PATHS,
    query=HEADER,
    headers=st.lists(
        st.tuples(
            st.sampled_from(
                ["accept", "content-type", "authorization", "origin", "last-event-id", "if-none-match", "idempotency-key",
                 "content-length", "transfer-encoding"]
            ),
            HEADER | st.sampled_from(["9" * 5_000, "-1", "0x10", "text/event-stream", "Bearer \xff", "*", 'W/"x", *']),
        ),
        max_size=5,
    ),
    body=BODIES,
)  # fmt: skip
@example("POST", "v1/runs", "", [("content-length", "9" * 5_000), ("idempotency-key", "k")], b"{}")
@example(
    "GET",
    "v1/runs/run_1/events",
    "after=%ed%a0%80&limit=%00",
    [("last-event-id", "\xff"), ("accept", "text/event-stream")],
    b"",
)
@example("GET", "v1/runs", "idempotency_key=%ed%a0%80%00", [], b"")
def test_any_call_is_answered(on_site, method, path, query, headers, body):
    """With an answer of the protocol, whatever headers come, and however often; never 500."""

    async def work(site):
        answer = await site.call(method, f"/{path}?{query.replace('?', '')}", headers, body)
        if answer.status >= 400 and method != "HEAD":
            assert answer.status == CODES[answer.code] < 500

    on_site(work)


MESSAGES = st.one_of(
    st.builds(lambda text: {"text": text}, LONE | VALUES.map(json.dumps)),
    st.builds(
        lambda kind, members: {"text": json.dumps({**members, "type": kind})},
        st.sampled_from(["auth", "start", "resume", "cancel", "applied", "event", "x"]),
        st.fixed_dictionaries(
            {},
            optional={
                "token": VALUES, "run_id": VALUES, "cursor": VALUES | st.sampled_from(["tail", "earliest", "e-1.0"]),
                "idempotency_key": VALUES | st.just("k"), **MEMBERS,
            },
        ),
    ),
    st.just({"bytes": b"\x00"}),
)  # fmt: skip


@settings(LAW, max_examples=25)
@given(messages=st.lists(MESSAGES, min_size=1, max_size=4))
@example([{"text": '{"type":"start","idempotency_key":"\\ud800","input":"x"}'}])
@example([{"text": '{"type":"resume","run_id":"\\ud800","cursor":"\\udfff"}'}])
@example([{"text": '{"type":"start","idempotency_key":"k2","input":"x","metadata":{"\\ud800":1e308}}'}, {"text": "{"}])
def test_any_messages_end_a_socket_with_a_code_of_the_protocol(on_site, messages):
    """And everything but 1000 is preceded by an error; the socket's task ends without an exception."""

    async def work(site):
        dialogue = await Dialogue(site).opened()
        for message in messages:
            dialogue.send(message)
        first = await dialogue.message()
        dialogue.leave()
        said = [first, *(await dialogue.messages())] if first is not None else []
        assert dialogue.task.exception() is None
        assert dialogue.code in (None, 1000, 1008, 1009, 4400)
        for message in said:
            assert message["type"] in ("started", "resume_ok", "event", "resume_rejected", "error", "closing")
            assert message.get("code", "internal") in CODES
        if dialogue.code in (1008, 1009, 4400):
            assert said[-1]["type"] == "error"

    on_site(work)
