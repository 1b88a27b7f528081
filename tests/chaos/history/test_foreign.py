"""What nobody would say on purpose: it is kept, it is not judged, and nothing that is written of it fails."""

import json
from xml.etree import ElementTree

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from chaos_cases import faults
from reattach_chaos.cases.spoken import read_line
from reattach_chaos.checkers import RunVerdict, judge
from reattach_chaos.gate.routes import json_object
from reattach_chaos.history import (
    Case,
    Delivered,
    Exited,
    History,
    Lease,
    Logged,
    Received,
    Said,
    is_plain,
    json_of,
    printable,
    read_history,
    record_of,
    write_history,
)
from reattach_chaos.report import Played, Suite, as_junit, as_page, as_text

NINES = "9" * 5000
KINDS = (
    "rendered",
    "committed",
    "applied",
    "acked",
    "lease",
    "gap",
    "error",
    "finished",
    "run",
    "struck",
    "woke",
    "else",
)
FIELDS = (
    "id",
    "run",
    "data",
    "redelivered",
    "token",
    "reason",
    "code",
    "message",
    "after",
    "until",
    "missing",
    "status",
    "evidence",
)
texts = st.text(st.characters(codec=None), max_size=8)
values = st.recursive(
    st.none()
    | st.booleans()
    | st.floats()
    | st.integers()
    | texts
    | st.sampled_from([10**4000, f"e.{NINES}", "\ud800", "\0\x1b[2J"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
objects = st.fixed_dictionaries({"kind": st.sampled_from(KINDS)}, optional=dict.fromkeys(FIELDS, values)).map(
    json.dumps
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("hostile")


@given(objects | values.map(json.dumps) | texts)
@example("[" * 200_000)
@example('{"kind":"rendered","id":"e.1","data":' + "[" * 300 + "]" * 300 + "}")
@example(json.dumps({"kind": "rendered", "id": f"e.{NINES}"}))
@example('{"kind":"rendered","id":"\\ud800"}')
@example('{"kind":"run","run":"\\udfff"}')
@example('{"kind":"gap","missing":1e999,"after":[],"reason":{"a":NaN}}')
@example('{"kind":"lease","token":true}')
@example(f'{{"kind":"lease","token":{NINES}}}')
@settings(max_examples=40, deadline=None)
def test_any_line_is_a_record_that_can_be_judged_and_written_everywhere(folder, line):
    """And read again as what it was."""
    value, run = read_line(line, "r")
    record = record_of(value, run=run)
    history = History([Case(id="c", n=1), Logged(id="e.1", cursor="e.1", sequence=1, n=2), record, Exited(code=0, n=4)])
    write_history(folder / "h.jsonl", history)
    assert list(read_history(folder / "h.jsonl")) == list(history)
    verdict = judge(history)
    suite = Suite(
        verdict=RunVerdict(cases=(verdict,)), played=(Played(schedule=faults(), history=history, verdict=verdict),)
    )
    as_page(suite).encode()
    as_text(suite).encode()
    ElementTree.fromstring(as_junit(suite).encode())


@pytest.mark.parametrize(
    "line",
    [
        "[" * 200_000,
        '{"a":' * 400 + "1" + "}" * 400,
        json.dumps({"kind": "rendered", "id": f"e.{NINES}"}),
        '{"kind":"rendered","id":"\\ud800"}',
        '{"kind":"rendered","id":"e.1\\u0000"}',
        '{"kind":"finished","status":"\\udc00"}',
        '{"kind":"lease","token":true}',
    ],
    ids=["open", "deep", "digits", "surrogate", "nul", "status", "token"],
)
def test_a_strange_line_is_kept_as_what_was_said_and_is_printable(line):
    record = record_of(read_line(line, None)[0])
    assert isinstance(record, Said)
    assert record.text.isprintable()
    assert 0 < len(record.text) <= 10_000


def test_what_is_said_in_order_stays_what_it_was():
    """Control: an id with any letters, data as deep as an event's, and the marks."""
    data = json.dumps({"kind": "rendered", "id": "é-7.12", "data": json_of("[" * 150 + "]" * 150)})
    assert isinstance(record_of(read_line(data, None)[0]), Delivered)
    assert record_of({"kind": "lease", "token": 7}) == Lease(token=7)
    assert is_plain("e1.7")
    assert printable("was heißt\n\x1b[2J\ud800") == "was heißt\\n\\x1b[2J\\ud800"


def test_a_history_keeps_half_a_surrogate_pair_of_a_servers_id(tmp_path):
    """What a gate saw is written as it was, with the escape that JSON has for it."""
    history = History([Received(id="\ud800", n=1)])
    write_history(tmp_path / "h", history)
    assert list(read_history(tmp_path / "h")) == list(history)


@pytest.mark.parametrize("body", [b"[" * 200_000, b'{"a":' * 500, b"\xff\xfe", f'{{"a":{NINES}}}'.encode()])
def test_a_servers_answer_that_is_no_json_for_anybody_says_nothing(body):
    assert json_object(body) == {}
