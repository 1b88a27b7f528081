import dataclasses

import pytest

from reattach_chaos import history
from reattach_chaos.history import Case, Delivered, HistoryError, Journal, Other, from_json, parse_history, to_json
from reattach_chaos.history.record import KINDS, Record

EXAMPLES = {
    "str": "word",
    "int": 7,
    "float": 1.5,
    "bool": True,
    "str | None": "word",
    "int | None": 7,
    "float | None": 1.5,
}


def example(kind):
    """Return a record of a kind in which no member has its default."""
    facts = {}
    for field in dataclasses.fields(kind):
        hint = str(getattr(field.type, "__name__", field.type))
        if field.name == "version":
            continue
        if hint in EXAMPLES:
            facts[field.name] = EXAMPLES[hint]
    special = {
        "case": {"mode": "start"},
        "server": {"did": "trimmed"},
        "store": {"did": "failed"},
        "resources": {"when": "after"},
        "request": {"route": "create"},
        "head": {"route": "stream"},
        "close": {"by": "gate", "how": "rst"},
        "discarded": {"reason": "dup"},
        "surfaced": {"what": "gap"},
        "finished": {"status": "completed", "evidence": "status"},
        "logged": {"by": "replay"},
        "counts": {"of": "twin"},
        "terminal": {"witness": "status"},
        "journal": {"ids": ("a", None, "b")},
    }
    return kind(**facts | special.get(kind.kind, {}))


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_what_is_written_is_what_is_read(kind, tmp_path):
    """Every kind, with every member set."""
    record = example(kind)
    history.write_history(tmp_path / "h.jsonl", [record])
    assert list(history.read_history(tmp_path / "h.jsonl")) == [record]


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_every_kind_is_a_frozen_value_with_a_word_of_its_own(kind):
    """A record cannot be changed after the fact."""
    assert kind.__dataclass_params__.frozen
    assert not hasattr(example(kind), "__dict__")
    assert kind.kind != Record.kind


def test_members_with_their_default_are_left_out():
    """A history of a thousand events is read by people, too."""
    assert to_json(Delivered(id="e1.1", n=2, at_ms=1.5)) == {"kind": "delivered", "n": 2, "at_ms": 1.5, "id": "e1.1"}


def test_an_unknown_kind_is_kept_whole():
    """A newer program's records survive an older one's reading and writing."""
    line = {"kind": "moonphase", "n": 3, "at_ms": 2.0, "conn": 4, "name": 7, "facts": "few", "deep": {"a": [1]}}
    record = from_json(line)
    assert record == Other(
        n=3, at_ms=2.0, conn=4, name="moonphase", facts={"name": 7, "facts": "few", "deep": {"a": [1]}}
    )
    assert to_json(record) == line


def test_an_unknown_member_is_ignored():
    """A newer program may say more about a kind that we know."""
    assert from_json({"kind": "delivered", "n": 1, "id": "e1.1", "mood": "good"}) == Delivered(n=1, id="e1.1")


def test_a_torn_last_line_is_dropped():
    """A recorder that was killed leaves half a line: it was never recorded."""
    assert len(parse_history(b'{"kind":"born"}\n{"kind":"delivered","id":"e1')) == 1
    assert len(parse_history(b'{"kind":"bo')) == 0
    assert len(parse_history(b"")) == 0


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b"nonsense", "line 2: Expecting value"),
        (b"[]", "line 2: a record is an object with a 'kind'"),
        (b'{"kind": 7}', "line 2: a record is an object with a 'kind'"),
        (b'{"kind": "delivered"}', "line 2: a record of kind 'delivered' needs 'id'"),
        (b'{"kind": "delivered", "id": 7}', "line 2: member 'id' of kind 'delivered' cannot be 7"),
        (b'{"kind": "delivered", "id": "a", "n": true}', "line 2: member 'n' of kind 'delivered' cannot be True"),
        (b'{"kind": "delivered", "id": "a", "at_ms": true}', "cannot be True"),
        (b'{"kind": "close", "by": "wind"}', "line 2: member 'by' of kind 'close' cannot be 'wind'"),
        (b'{"kind": "journal", "ids": ["a", 7]}', "line 2: member 'ids' of kind 'journal' cannot be 7"),
        (b'{"kind": "journal", "ids": "abc"}', "line 2: member 'ids' of kind 'journal' cannot be 'abc'"),
    ],
)
def test_a_bad_line_is_an_error_with_its_number(line, words):
    """A history that was damaged in its middle is not judged as if it were whole."""
    with pytest.raises(HistoryError) as caught:
        parse_history(b'{"kind":"born"}\n' + line + b"\n")
    assert words in str(caught.value)


def test_a_file_of_a_newer_version_is_refused():
    """Its words may mean something else."""
    with pytest.raises(HistoryError, match="a history of version 99"):
        parse_history(b'{"kind":"case","id":"a","version":99}\n')


def test_a_line_without_bound_is_refused(monkeypatch):
    """What is longer than any record was written by somebody else."""
    monkeypatch.setattr("reattach_chaos.history.files.LINE_BYTES", 20)
    with pytest.raises(HistoryError, match="line 1: longer than 20 bytes"):
        parse_history(b'{"kind":"said","text":"long"}\n')


def test_records_written_by_hand_are_numbered_by_their_place():
    """A test writes records without numbers; those that have one keep it."""
    records = history.History([Case(id="a"), Delivered(id="b", n=7), Journal()])
    assert [record.n for record in records] == [1, 7, 3]


def test_a_record_may_be_in_two_histories():
    """Each gives it a number of its own; what was handed in is not changed."""
    record = Delivered(id="a")
    assert [list(history.History([*before, record]))[-1].n for before in ([], [Case(id="c")])] == [1, 2]
    assert record.n == 0


def test_subscribers_are_those_that_are_not_ours():
    """Gate, server and control reader are the house's."""
    records = [Delivered(id="a", who=who) for who in ("gate", "client", "control", "second", "client", "server")]
    assert history.History(records).who() == ["client", "second"]


def test_a_history_without_a_case_has_default_terms():
    """A fragment can be judged."""
    assert history.History([]).case.id == "unnamed"
