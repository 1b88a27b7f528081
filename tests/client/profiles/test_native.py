"""The native profile: what it asks for, and what every answer and frame means, however odd."""

import json
from datetime import UTC, datetime

import pytest

from reattach import Event, Gap, Status
from reattach.core.fold import Fold
from reattach.core.messages import UNSTATED, Closing, Mark, Opened, Received, Refusal, Refused, Why
from reattach.model import Operation, Outcome, Problem, RequiredAction
from reattach.profiles import Native, named
from reattach.profiles.base import Unreadable
from reattach.profiles.native_reader import NativeReader
from reattach.profiles.native_values import NESTING
from reattach.wire.frame import Frame

PROFILE = Native()
RUN = "run_1"


def event(sequence=1, **members):
    told = {
        "id": f"evt_{sequence}",
        "prev_id": f"evt_{sequence - 1}" if type(sequence) is int and sequence > 1 else None,
        "run_id": RUN,
        "sequence": sequence,
        "type": "message.delta",
        "time": "2026-01-01T00:00:00.000Z",
        "data": {"message_id": "m1", "text": "hi"},
    }
    return {name: value for name, value in (told | members).items() if value is not ...}


def frame(value, id="e1.1", event="message"):
    return Frame(event, value if isinstance(value, str) else json.dumps(value), id)


def read(*frames, attached=True, reader=None):
    reader = reader or PROFILE.reader(RUN)
    if attached:
        reader.read([frame({"epoch": "e1", "cursor": "e1.0"}, "", "stream.attached")])
    return reader.read(frames)


def one(value, **rest):
    ((arrival,),) = [told.arrivals for told in read(frame(value, **rest))]
    return arrival


def refused(told):
    assert isinstance(told[-1], Refused), told
    assert told[-1].refusal.why is Why.FOREIGN
    return told[-1].refusal.detail


# requests --------------------------------------------------------------------------------------------------------------


def test_requests():
    assert PROFILE.create({"input": 1}, "k") == ("POST", "/v1/runs", {"Idempotency-Key": "k"}, {"input": 1})
    assert PROFILE.lookup("a/b c").path == "/v1/runs?idempotency_key=a%2Fb%20c"
    assert PROFILE.status("a/../b").path == "/v1/runs/a%2F..%2Fb"
    assert PROFILE.snapshot(RUN).path == "/v1/runs/run_1/snapshot"
    assert PROFILE.cancel(RUN)[:2] == ("POST", "/v1/runs/run_1/cancel")
    assert "Last-Event-ID" not in PROFILE.attach(RUN, None).headers
    assert PROFILE.attach(RUN, "e1.4").headers["Last-Event-ID"] == "e1.4"
    assert PROFILE.attach(RUN, "earliest").path == "/v1/runs/run_1/events?after=earliest"
    assert PROFILE.place("e1.4") == ("e1", 4)
    assert [PROFILE.place(bad) for bad in ("", "e1", "e1.-1", "e1.01", "e1.4\n", "é.4", "e1.1e3")] == [None] * 7


def test_profiles_by_name():
    assert isinstance(named("native"), Native)
    assert named(PROFILE) is PROFILE
    with pytest.raises(ValueError, match="there is 'native'"):
        named("openai")


# frames ----------------------------------------------------------------------------------------------------------------


def test_an_event():
    arrival = one(event(3), id="e1.3")
    assert (arrival.id, arrival.prev_id, arrival.epoch, arrival.sequence, arrival.cursor) == (
        "evt_3",
        "evt_2",
        "e1",
        3,
        "e1.3",
    )
    assert (arrival.kind, arrival.text, arrival.type, arrival.outcome) == ("text", "hi", "message.delta", None)
    assert json.loads(arrival.stored) == event(3)
    assert one(event(1), id="").cursor == "e1.1"


@pytest.mark.parametrize("sequence", [True, 1.0, 0, -1, "1", None, ..., [1]])
def test_a_sequence_that_is_none_is_another_protocol_where_the_frame_has_an_id(sequence):
    assert "no id, sequence and type" in refused(read(frame(event(sequence=sequence))))
    assert read(frame(event(sequence=sequence), id="")) == ()


@pytest.mark.parametrize("member", ["id", "type", "sequence"])
@pytest.mark.parametrize("value", [..., None, 7.5, {}])
def test_an_event_without_its_members_is_refused_with_an_id_and_ignored_without(member, value):
    assert refused(read(frame(event(**{member: value}))))
    assert read(frame(event(**{member: value}), id="")) == ()


@pytest.mark.parametrize(
    "text", ["", "x", "[]", "1", "null", '{"a":1', '{"a":NaN}', '{"a":Infinity}', "{" * 5000, " " + "[" * 5000]
)
def test_what_is_no_json_object_is_refused_with_an_id_and_ignored_without(text):
    assert "is not JSON" in refused(read(frame(text)))
    assert read(frame(text, id="")) == ()


def test_white_space_around_an_object_is_legal_json():
    assert one(f" \t{json.dumps(event())} ").id == "evt_1"


def test_deep_payloads_are_refused_before_the_journal_could_not_read_them_back():
    def nested(depth):
        return json.loads("[" * depth + "]" * depth)

    assert one(event(data={"x": nested(NESTING - 3)}))
    assert "nested too deeply" in refused(read(frame(event(data={"x": nested(NESTING + 1)}))))
    assert one(event(data={"x": [[]] * 5000}))


def test_of_duplicate_members_the_last_counts():
    assert one('{"id":"evt_1","id":"evt_2","sequence":1,"type":"note"}').id == "evt_2"


def test_large_numbers_pass():
    assert one(event(2**53 + 1), id=f"e1.{2**53 + 1}").sequence == 2**53 + 1
    assert one(event(data={"n": 10**400})).data["n"] == 10**400


def test_an_id_that_disagrees_with_its_event_is_another_protocol():
    assert "disagrees" in refused(read(frame(event(2), id="e1.3")))


def test_an_id_of_another_epoch_says_so_to_admission():
    assert one(event(2), id="e2.2").epoch == "e2"


def test_an_opaque_id_is_only_a_hint():
    arrival = one(event(2), id="whatever")
    assert (arrival.epoch, arrival.cursor) == ("e1", "e1.2")


def test_without_attached_the_epoch_comes_from_the_id():
    ((arrival,),) = [told.arrivals for told in read(frame(event(2), id="e7.2"), attached=False)]
    assert (arrival.epoch, arrival.cursor) == ("e7", "e7.2")
    ((arrival,),) = [told.arrivals for told in read(frame(event(2), id=""), attached=False)]
    assert (arrival.epoch, arrival.cursor) == (None, None)


def test_another_runs_event_is_another_protocol():
    assert "another run ('run_2')" in refused(read(frame(event(run_id="run_2"))))
    assert one(event(run_id=...)).id == "evt_1"


def test_a_predecessor_that_is_no_text_is_unstated():
    assert one(event(prev_id=...)).prev_id == UNSTATED
    assert one(event(prev_id=7)).prev_id == UNSTATED
    assert one(event(prev_id=None)).prev_id is None
    assert one(event(time=5)).time is None


def test_what_came_before_a_bad_frame_is_told_first():
    told = read(frame(event(1)), frame("x"), frame(event(2), id="e1.2"))
    assert [type(each) for each in told] == [Received, Refused]


def test_control_frames():
    reader = PROFILE.reader(RUN)
    told = reader.read(
        [
            frame(
                {
                    "protocol": 1,
                    "epoch": "e1",
                    "cursor": "e1.4",
                    "cursor_id": "evt_4",
                    "last_sequence": 9,
                    "heartbeat_ms": 500,
                },
                "",
                "stream.attached",
            ),
            frame(event(5), "e1.5"),
            frame({"x": 1}, "", "stream.unheard-of"),
            frame("no json", "", "stream.closing"),
            frame({"reason": "draining"}, "", "stream.closing"),
        ]
    )
    assert told[0] == Opened("e1", "e1.4", 4, "evt_4", 9, 0.5)
    assert [type(each) for each in told] == [Opened, Received, Closing]
    assert told[2].reason == "draining"
    assert reader.read([frame({}, "", "stream.closing")]) == (Closing("max_age"),)


@pytest.mark.parametrize("beat", [None, True, "500", -1, 0, 1e400, 10**400, 10**9])
def test_a_heartbeat_that_is_none_is_not_believed(beat):
    (opened,) = PROFILE.reader(RUN).read(
        [frame({"epoch": "e1", "heartbeat_ms": beat, "last_sequence": True}, "", "stream.attached")]
        if beat != 1e400
        else [frame('{"epoch":"e1","heartbeat_ms":1e400,"last_sequence":1.5}', "", "stream.attached")]
    )
    assert (opened.heartbeat, opened.head, opened.cursor_id) == (None, None, UNSTATED)


def test_a_cursor_that_no_header_can_carry_is_refused_at_once():
    for bad in ({"cursor": "a\nb"}, {"epoch": "é"}, {"epoch": "x" * 65}):
        (told,) = PROFILE.reader(RUN).read([frame({"cursor_id": 7} | bad, "", "stream.attached")])
        assert isinstance(told, Refused)


def test_the_text_of_whole_messages_counts_only_without_deltas():
    reader = PROFILE.reader(RUN)
    delta = {"type": "message.delta", "data": {"message_id": "m1", "text": "a"}}
    whole = {"type": "message.completed", "data": {"message_id": "m1", "text": "a", "role": "assistant"}}
    other = {"type": "message.completed", "data": {"message_id": "m2", "text": "b"}}
    odd = {"type": "message.completed", "data": {"message_id": "m3", "text": 5}}
    told = reader.read([frame(event(n, **each), f"e1.{n}") for n, each in enumerate([delta, whole, other, odd], 1)])
    assert [arrival.text for arrival in told[0].arrivals] == ["a", "", "b", ""]
    again = PROFILE.reader(RUN)
    again.recall(
        [
            Event(id="x", run_id=RUN, type="message.delta", kind="text", data=delta["data"]),
            Event(id="y", run_id=RUN, type="note", kind="other", data=7),
            Event(id="z", run_id=RUN, type="note", kind="other", data={"message_id": "m9"}),
        ]
    )
    ((arrival,),) = [told.arrivals for told in again.read([frame(event(2, **whole), "e1.2")])]
    assert arrival.text == ""


def test_foreign_types_may_bring_text():
    assert (one(event(type="vendor.note", text="x")).text, one(event(type="vendor.note", text="x")).kind) == (
        "x",
        "text",
    )
    assert (one(event(type="vendor.note", text=7)).text, one(event(type="vendor.note")).kind) == ("", "other")
    assert one(event(type="tool.call", text="x")).text == ""
    assert one(event(type="message.delta", data="x")).text == ""


@pytest.mark.parametrize(
    ("type_", "status"),
    [
        ("run.completed", "completed"),
        ("run.failed", "failed"),
        ("run.cancelled", "cancelled"),
        ("run.paused", "requires_action"),
    ],
)
def test_settling_events_tell_the_outcome(type_, status):
    arrival = one(event(type=type_, data={"result": 1}))
    assert (arrival.kind, arrival.outcome.status, arrival.outcome.evidence) == ("end", status, "event")
    told = Event(id="x", run_id=RUN, type=type_, kind="end", data=None)
    assert PROFILE.settled(RUN, told) == Outcome(run_id=RUN, status=Status(status))
    assert PROFILE.settled(RUN, Event(id="x", run_id=RUN, type="note", kind="other", data=None)) is None


# answers ---------------------------------------------------------------------------------------------------------------


def test_created():
    body = json.dumps({"id": "run_9", "session_id": "s", "status": "running"}).encode()
    assert PROFILE.created(201, {}, body) == ("run_9", "s", Status.RUNNING, False)
    assert PROFILE.created(200, {"idempotency-replayed": "True"}, body).replayed
    assert PROFILE.created(201, {"location": "http://x/v1/runs/run%2F9"}, b"cut").run_id == "run/9"
    for odd in (b"", b"[]", b"{}", b'{"id":""}', b'{"id":7}', b"\xff"):
        with pytest.raises(Unreadable):
            PROFILE.created(201, {"location": "/elsewhere"}, odd)


def test_found():
    assert PROFILE.found(b'{"runs":[]}') is None
    assert PROFILE.found(b'{"runs":[{"id":"run_9","status":"odd"}]}') == ("run_9", None, Status.UNKNOWN, False)
    for odd in (b"", b"{}", b'{"runs":{}}'):
        with pytest.raises(Unreadable, match="without runs"):
            PROFILE.found(odd)
    with pytest.raises(Unreadable):
        PROFILE.found(b'{"runs":[{}]}')


def test_reading():
    run = {
        "id": RUN,
        "status": "failed",
        "epoch": "e1",
        "last_sequence": 7,
        "error": {"code": "c", "message": "m", "data": 1},
    }
    told = PROFILE.reading(RUN, json.dumps(run | {"created_at": "2026-01-01T00:00:00"}).encode())
    assert (told.status, told.epoch, told.head) == ("failed", "e1", 7)
    assert told.outcome.problem == Problem(code="c", message="m", data=1)
    assert told.outcome.evidence == "status"
    assert told.created_at == datetime(2026, 1, 1, tzinfo=UTC)
    odd = PROFILE.reading(
        RUN, json.dumps({"id": RUN, "status": 7, "epoch": 1, "last_sequence": True, "created_at": "x"}).encode()
    )
    assert (odd.status, odd.epoch, odd.head, odd.outcome, odd.created_at) == ("unknown", None, None, None, None)
    assert PROFILE.reading(RUN, json.dumps({"id": RUN, "created_at": 5}).encode()).status == "unknown"
    for bad in (b"", b"[]", b'{"id":"run_2"}', b"<html>" + b"x" * 100):
        with pytest.raises(Unreadable, match="a status that is no run"):
            PROFILE.reading(RUN, bad)


def test_boundary():
    state = {"sequence": 7, "epoch": "e1", "cursor": "e1.7", "cursor_id": "evt_7"}
    assert PROFILE.boundary(RUN, json.dumps(state).encode()) == (Mark(0, "e1", 7, "evt_7", "e1.7"), state)
    for odd in (
        {"sequence": True}, {"sequence": -1}, {"sequence": 2**63, "cursor": f"e1.{2**63}"}, {"epoch": None}, {"cursor": "a\nb"},
        {"cursor": "e1.8"}, {"cursor": "e2.7"}, {"cursor": None},
    ):  # fmt: skip
        with pytest.raises(Unreadable, match="without its boundary"):
            PROFILE.boundary(RUN, json.dumps(state | odd).encode())


PROBLEM = {"content-type": "application/problem+json"}


@pytest.mark.parametrize(
    ("status", "code", "why"),
    [
        (400, "cursor_malformed", Why.CURSOR),
        (400, "cursor_foreign", Why.CURSOR),
        (409, "cursor_ahead", Why.AHEAD),
        (410, "cursor_expired", Why.EXPIRED),
        (410, "epoch_changed", Why.EPOCH),
        (410, None, Why.EXPIRED),
        (404, "run_not_found", Why.NOT_FOUND),
        (404, None, Why.NOT_FOUND),
        (409, "idempotency_in_flight", Why.BUSY),
        (503, "overloaded", Why.BUSY),
        (408, None, Why.BUSY),
        (425, None, Why.BUSY),
        (429, None, Why.BUSY),
        (500, None, Why.BUSY),
        (599, None, Why.BUSY),
        (401, None, Why.UNAUTHENTICATED),
        (403, None, Why.FORBIDDEN),
        (409, "session_busy", Why.OTHER),
        (418, None, Why.OTHER),
        (302, None, Why.FOREIGN),
        (304, None, Why.FOREIGN),
        (600, None, Why.FOREIGN),
    ],
)
def test_refusals_are_sorted_by_code_then_by_status(status, code, why):
    refusal = PROFILE.refusal(status, PROBLEM, json.dumps({"code": code} if code else {}).encode())
    assert (refusal.why, refusal.status, refusal.code) == (why, status, code)
    assert refusal.detail


def test_a_refusal_keeps_the_numbers_and_the_words():
    body = {"code": "cursor_expired", "detail": "gone", "epoch": "e2", "first_sequence": 5, "last_sequence": 9}
    refusal = PROFILE.refusal(410, PROBLEM | {"retry-after": "7"}, json.dumps(body).encode())
    assert refusal == Refusal(Why.EXPIRED, "gone", 410, "cursor_expired", 7.0, "e2", 5, 9)
    assert PROFILE.refusal(410, PROBLEM, b'{"title":"Gone"}').detail == "Gone"
    odd = PROFILE.refusal(400, PROBLEM, b'{"code":7,"detail":7,"first_sequence":true}')
    assert (odd.code, odd.first_sequence, odd.detail) == (None, None, "HTTP 400 (application/problem+json)")
    assert PROFILE.refusal(302, {}, b"<a>").detail == 'HTTP 302 with no content type ("<a>")'
    assert PROFILE.refusal(400, PROBLEM, b"no json").why is Why.OTHER
    assert PROFILE.refusal(500, {"content-type": "text/html"}, b'{"code":"run_not_found"}').code is None


# meaning ---------------------------------------------------------------------------------------------------------------


def view_of(*told):
    fold = Fold(RUN)
    for position, (type_, data) in enumerate(told, 1):
        each = Event(id=str(position), run_id=RUN, type=type_, kind="other", data=data, position=position)
        fold.add(each, PROFILE.changes(each))
    return fold.view()


def test_what_events_do_to_the_view():
    view = view_of(
        ("run.created", {}),
        ("run.started", {}),
        ("message.delta", {"message_id": "m1", "text": "a"}),
        ("message.delta", {"message_id": "m1"}),
        ("message.completed", {"message_id": "m1", "text": "ab"}),
        ("tool.call", {"call_id": "c1", "tool": "t", "arguments": {"x": 1}, "operation_id": "op"}),
        ("tool.result", {"call_id": "c1", "result": 5}),
        ("tool.result", {"call_id": "c2", "error": {"code": "c"}}),
        ("action.required", {"action": {"id": "a1", "kind": "approval", "expires_at": "2026-01-01T00:00:00Z"}}),
        ("action.required", {"action": {"id": "a2", "kind": "unheard-of"}}),
        ("action.required", {}),
        ("action.resolved", {"action_id": "a1"}),
        ("vendor.note", {"x": 1}),
        ("message.delta", None),
    )
    assert view.status == "running"
    assert [(m.id, m.role, m.text, m.complete) for m in view.messages] == [("m1", "assistant", "ab", True)]
    assert [(t.id, t.name, t.result, t.operation_id) for t in view.tools] == [
        ("c1", "t", 5, "op"),
        ("c2", "", {"error": {"code": "c"}}, None),
    ]
    assert [(a.id, a.kind) for a in view.required_actions] == [("a2", "other")]


def test_a_pause_states_all_that_is_pending():
    view = view_of(
        ("action.required", {"action": {"id": "old"}}),
        ("run.paused", {"required_actions": [{"id": "a1", "kind": "approval"}, 7]}),
    )
    assert (view.status, [action.id for action in view.required_actions]) == ("requires_action", ["a1"])
    assert view_of(("run.paused", {})).required_actions == ()
    assert view_of(("run.completed", {})).status == "completed"


def test_a_snapshot_replaces_the_view():
    state = {
        "status": "running",
        "messages": [{"message_id": "m9", "role": "user", "text": "new", "completed": True}, 7],
        "tool_calls": [
            {"call_id": "c1", "tool": "t", "result": None},
            {"call_id": "c2", "tool": "t", "error": {"code": "x"}},
            {"call_id": "c3", "tool": "t"},
            None,
        ],
        "required_actions": [{"id": "a1"}],
    }
    gap = Gap(run_id=RUN, reason="expired", snapshot=state)
    event = Event(id="gap", run_id=RUN, type="gap", kind="gap", data=None, gap=gap)
    fold = Fold(RUN)
    fold.add(event, PROFILE.changes(event))
    view = fold.view()
    assert [(m.id, m.text) for m in view.messages] == [("m9", "new")]
    assert [(t.id, t.complete, t.result) for t in view.tools] == [
        ("c1", True, None),
        ("c2", True, {"error": {"code": "x"}}),
        ("c3", False, None),
    ]
    assert [action.id for action in view.required_actions] == ["a1"]
    bare = Event(id="gap", run_id=RUN, type="gap", kind="gap", data=None, gap=Gap(run_id=RUN, reason="hole"))
    assert PROFILE.changes(bare) == ()
    empty = Event(
        id="gap", run_id=RUN, type="gap", kind="gap", data=None, gap=Gap(run_id=RUN, reason="hole", snapshot={})
    )
    assert view_of_event(empty).status == "unknown"


@pytest.mark.parametrize("name", ["messages", "tool_calls", "required_actions"])
@pytest.mark.parametrize("value", [7, -1.5, True, "text", {"a": 1}, [[]], [None]])
def test_a_snapshot_with_odd_lists_can_still_be_viewed(name, value):
    """It is in the journal for good: a view that failed on it would fail for ever."""
    gap = Gap(run_id=RUN, reason="expired", snapshot={"status": "running", name: value})
    view = view_of_event(Event(id="gap", run_id=RUN, type="gap", kind="gap", data=None, gap=gap))
    assert (view.status, view.messages, view.tools, view.required_actions) == ("running", (), (), ())


def view_of_event(event):
    fold = Fold(RUN)
    fold.add(event, PROFILE.changes(event))
    return fold.view()


def test_a_cancelled_run_tells_its_inventory():
    data = {"operations": {"known": ["op_1"], "unknown": ["op_2", 7], "irreversible": ["op_3"], "other": 1}}
    told = PROFILE.settled(RUN, Event(id="x", run_id=RUN, type="run.cancelled", kind="end", data=data))
    assert told.operations == (
        Operation(id="op_1", status="committed", reversible=True, run_id=RUN),
        Operation(id="op_2", status="unknown", reversible=None, run_id=RUN),
        Operation(id="op_3", status="committed", reversible=False, run_id=RUN),
    )
    odd = Event(
        id="x", run_id=RUN, type="run.cancelled", kind="end", data={"operations": {"known": "op_1"}, "error": 7}
    )
    assert PROFILE.settled(RUN, odd).operations == ()


def test_a_paused_run_tells_its_actions():
    data = {
        "required_actions": [{"id": "a1", "kind": "approval", "tool": "t", "arguments": {"x": 1}, "expires_at": "odd"}],
        "release": "r1",
    }
    told = PROFILE.settled(RUN, Event(id="x", run_id=RUN, type="run.paused", kind="end", data=data))
    assert told.required_actions == (RequiredAction(id="a1", kind="approval", tool="t", arguments={"x": 1}),)
    assert told.release == "r1"


# what neither a journal nor a path can carry ------------------------------------------------------------------------------


@pytest.mark.parametrize("told", ["\ud800", "r" * 513, "../x\n", ".", "..", 5, ""])
def test_a_run_id_that_cannot_be_kept_is_no_run(told):
    """A lone surrogate made the journal raise, and an id of a megabyte the request line."""
    body = json.dumps({"id": told, "status": "running"}).encode()
    with pytest.raises(Unreadable, match="a create's answer without a run"):
        PROFILE.created(201, {}, body)
    assert PROFILE.created(201, {"location": "/v1/runs/run_1"}, body).run_id == "run_1"
    if isinstance(told, str) and told.isascii() and told:
        with pytest.raises(Unreadable):
            PROFILE.created(201, {"location": f"/v1/runs/{told.replace(chr(10), '%0A')}"}, b"")


def test_an_event_id_with_half_a_character_is_not_the_protocol():
    """SQLite could not write it; that is no fault of the disk, as CommitFailed would say."""
    assert "an id that cannot be kept" in refused(read(frame(event(id="evt_\ud800"))))


def test_texts_that_cannot_be_stored_are_not_told():
    """A session id goes into the journal as it is."""
    body = json.dumps({"id": RUN, "status": "running", "session_id": "\udfff"}).encode()
    assert PROFILE.created(201, {}, body).session_id is None
    assert PROFILE.reading(RUN, body).session_id is None


ODD = {
    "no JSON": "{",
    "a list": "[]",
    "a text": '"id"',
    "more than one value": '{"a": 1} {"b": 2}',
    "white space": json.dumps(event(3)) + " ",
    "not a number": json.dumps(event(3, data={"x": float("nan")})),
    "nested": json.dumps(event(3, data=json.loads("[" * 230 + "]" * 230))),
    "large": json.dumps(event(3, data={"message_id": "m1", "text": "x" * 900})),
    "another run": json.dumps(event(3, run_id="run_2")),
    "no run": json.dumps(event(3, run_id=...)),
    "no predecessor told": json.dumps(event(3, prev_id=...)),
    "a predecessor that is none": json.dumps(event(3, prev_id=7)),
    "no time": json.dumps(event(3, time=...)),
    "a time that is none": json.dumps(event(3, time=7)),
    "no data": json.dumps(event(3, data=...)),
    "data that is text": json.dumps(event(3, data="hi")),
    "a sequence that is none": json.dumps(event(True)),
    "a sequence of nought": json.dumps(event(0)),
    "another place": json.dumps(event(4)),
    "an id that is none": json.dumps(event(3, id=7)),
    "half a character": json.dumps(event(3, id="evt_\ud800")),
    "an id beyond ASCII": json.dumps(event(3, id="evt_ü")),
    "a type that is none": json.dumps(event(3, type=["message.delta"])),
    "a foreign type": json.dumps(event(3, type="x.y", text="hi")),
    "the end": json.dumps(event(3, type="run.completed", data={"result": 1})),
    "a whole message": json.dumps(event(3, type="message.completed", data={"message_id": "m1", "text": "hihi"})),
    "another message": json.dumps(event(3, type="message.completed", data={"message_id": "m2", "text": "ho"})),
    "a tool": json.dumps(event(3, type="tool.call", data={"tool": "t"})),
}


@pytest.mark.parametrize("hint", ["e1.3", "e2.3", "opaque", ""])
@pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
def test_what_is_read_in_a_run_of_usual_events_is_what_is_read_alone(odd, hint, monkeypatch):
    """The short way through a replay takes only what the long one would say the same of."""
    frames = [frame(event(1), "e1.1"), frame(event(2), "e1.2"), frame(odd, hint), frame(event(4), "e1.4")]
    short = read(*frames)
    monkeypatch.setattr(NativeReader, "_plain", lambda self, frames, begin, batch: begin)
    assert short == read(*frames)
