"""The native profile's acting: bodies that are sent, and answers that are not what they should be."""

import pytest

from reattach.model import RequiredAction, Status
from reattach.profiles import Native
from reattach.profiles.base import Listed, Unreadable

NATIVE = Native()
APPROVAL = RequiredAction(id="a", kind="approval")
TOOL = RequiredAction(id="t", kind="client_tool")
OTHER = RequiredAction(id="o", kind="other")


def test_a_continuation_names_the_run_and_each_answer() -> None:
    """As protocol.md, 5 writes them; a reason only where there is one."""
    pairs = (
        (APPROVAL, APPROVAL.approve()),
        (APPROVAL, APPROVAL.reject("too dear")),
        (APPROVAL, APPROVAL.reject()),
        (TOOL, TOOL.answer({"now": 12})),
        (TOOL, TOOL.answer(None)),
        (TOOL, TOOL.reject("no clock")),
        (OTHER, OTHER.approve()),
        (OTHER, OTHER.answer(1)),
    )
    assert NATIVE.continuation("run_1", pairs) == {
        "continues": "run_1",
        "responses": [
            {"action_id": "a", "decision": "approve"},
            {"action_id": "a", "decision": "reject", "reason": "too dear"},
            {"action_id": "a", "decision": "reject"},
            {"action_id": "t", "result": {"now": 12}},
            {"action_id": "t", "result": None},
            {"action_id": "t", "error": {"code": "rejected", "message": "no clock"}},
            {"action_id": "o", "decision": "approve"},
            {"action_id": "o", "result": 1},
        ],
    }


def test_ids_are_quoted_in_paths() -> None:
    assert NATIVE.operation("a/b ?").path == "/v1/operations/a%2Fb%20%3F"
    assert NATIVE.session_runs("s/1", "r&2").path == "/v1/sessions/s%2F1/runs?after=r%262"
    assert NATIVE.session_runs("s", None).path == "/v1/sessions/s/runs"


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"id": "op_2"}', b"<html>", b"\xff"])
def test_an_answer_that_is_not_this_operation_is_unreadable(body: bytes) -> None:
    with pytest.raises(Unreadable, match="no operation"):
        NATIVE.operation_told("op_1", body)


def test_an_operation_of_odd_members_is_in_doubt() -> None:
    """What cannot be read is not known, never made up."""
    told = NATIVE.operation_told(
        "op_1", b'{"id":"op_1","status":["committed"],"reversible":1,"external":"yes","tool":{}}'
    )
    assert (told.status, told.reversible, told.external, told.tool) == ("unknown", None, None, None)
    told = NATIVE.operation_told("op_1", b'{"id":"op_1","status":"failed","reversible":false,"external":true}')
    assert (told.status, told.reversible, told.external) == ("failed", False, True)


@pytest.mark.parametrize(
    "body", [b"", b"{}", b'{"runs": {}}', b'{"runs": [1]}', b'{"runs": [{"id": ""}]}', b'{"runs": [{"id": "a\\nb"}]}']
)
def test_an_answer_that_is_no_page_of_runs_is_unreadable(body: bytes) -> None:
    with pytest.raises(Unreadable, match="without runs"):
        NATIVE.session_told(body)


def test_a_page_of_runs_is_read_in_its_order() -> None:
    body = b'{"runs":[{"id":"b","session_id":"s","status":"cancelled"},{"id":"a","status":"odd","continues":"b"}],"next":"a"}'
    runs, after = NATIVE.session_told(body)
    assert runs == (Listed("b", "s", Status.CANCELLED, None), Listed("a", None, Status.UNKNOWN, "b"))
    assert after == "a"


@pytest.mark.parametrize(
    ("body", "hours"),
    [
        (b'{"limits":{"key_retention_ms":7200000}}', 2.0),
        (b'{"limits":{"key_retention_ms":null}}', None),
        (b'{"limits":{"key_retention_ms":true}}', None),
        (b'{"limits":{"key_retention_ms":-1}}', None),
        (b'{"limits":{"key_retention_ms":1e3}}', None),
        (b'{"limits":{"key_retention_ms":99999999999999999999}}', None),
        (b'{"limits":[]}', None),
        (b"{}", None),
    ],
)
def test_a_retention_is_a_number_of_milliseconds_or_not_known(body: bytes, hours: float | None) -> None:
    assert NATIVE.retention_told(body) == hours


def test_a_page_that_is_no_discovery_document_is_unreadable() -> None:
    with pytest.raises(Unreadable, match="no discovery document"):
        NATIVE.retention_told(b"<html>")


def test_a_server_that_ignores_keys_is_not_asked_for_one() -> None:
    assert Native(keyed=False).lookup("k") is None
    assert Native().lookup("k").path == "/v1/runs?idempotency_key=k"
