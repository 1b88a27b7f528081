"""What a recorded stream says."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reattach_mockserver.scenarios.errors import RecordingError
from reattach_mockserver.scenarios.expand import Emit, Finish, Operate, Pause, Rest
from reattach_mockserver.scenarios.recording import Recording, load_recording
from reattach_mockserver.scenarios.replay import plan_recording
from reattach_mockserver.scenarios.script import Action, Problem, Release

OPENAI: list[dict[str, Any]] = [
    {"type": "response.created", "sequence_number": 0, "response": {"id": "r"}},
    {"type": "response.output_text.delta", "sequence_number": 1, "delta": "Hi "},
    {"type": "response.output_text.delta", "sequence_number": 2, "delta": "🙂"},
    {"type": "response.output_text.done", "sequence_number": 3, "text": "Hi 🙂"},
    {"type": "response.completed", "sequence_number": 4, "response": {"id": "r"}},
]
ASKED: dict[str, Any] = {
    "type": "response.output_item.done",
    "item": {"type": "mcp_approval_request", "id": "mcpr_1", "name": "restart", "arguments": '{"a": 1}'},
}


class Folder:
    """Writes recordings and reads them."""

    def __init__(self, path: Path) -> None:
        self.path = path / "rec.jsonl"

    def reads(self, *events: object, profile: str | None = None) -> Recording:
        """Read events, one a line."""
        return self.reads_bytes("".join(json.dumps(event) + "\n" for event in events).encode(), profile)

    def reads_bytes(self, content: bytes, profile: str | None = None) -> Recording:
        """Read the content of a file."""
        self.path.write_bytes(content)
        return load_recording(self.path, profile)


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def test_a_bare_recording_keeps_order_and_data(folder: Folder):
    """A line is an event, 10 ms after the one before; its data is the line's object."""
    recording = folder.reads(*OPENAI)
    assert recording.name == "rec"
    assert [event.data for event in recording.events] == OPENAI
    assert [event.at_ms for event in recording.events] == [0, 10, 20, 30, 40]


def test_an_events_type_is_the_first_of_three_keys(folder: Folder):
    """`type`, `event_type`, `object`, else `message`; what is no text does not count."""
    recording = folder.reads(
        {"object": "o", "event_type": "e", "type": "t"},
        {"object": "o", "event_type": "e"},
        {"object": "o"},
        {"x": 1},
        {"type": 5, "object": "o"},
        {"type": ""},
    )
    assert [event.type for event in recording.events] == ["t", "e", "o", "message", "o", "message"]


@pytest.mark.parametrize(
    ("event", "profile"),
    [
        ({"type": "response.created"}, "openai-responses"),
        ({"event_type": "interaction.created", "interaction": {}}, "gemini-interactions"),
        ({"type": "message_start", "message": {}}, "anthropic-messages"),
        ({"object": "chat.completion.chunk", "choices": []}, "openai-chat"),
        ({"type": "anything"}, None),
        ({"interaction": {}}, None),
    ],
)
def test_the_family_is_known_by_content(folder: Folder, event: dict[str, Any], profile: str | None):
    """Also where the event that tells is not the first."""
    assert folder.reads({"type": "ping"}, event).profile == profile


def test_a_profile_overrides_content(folder: Folder):
    """Then no text is found where the other family has none."""
    recording = folder.reads(*OPENAI, profile="anthropic-messages")
    assert (recording.profile, recording.text) == ("anthropic-messages", "")


def test_a_profile_that_nobody_has_is_refused(folder: Folder):
    """With the names of those that there are."""
    with pytest.raises(ValueError, match="expected one of openai-responses"):
        folder.reads(*OPENAI, profile="nobody")


def test_visible_text_is_found_event_by_event(folder: Folder):
    """The repetition at the end adds nothing."""
    recording = folder.reads(*OPENAI)
    assert [event.text for event in recording.events] == [None, "Hi ", "🙂", None, None]
    assert recording.text == "Hi 🙂"


@pytest.mark.parametrize(
    ("events", "text"),
    [
        ([{"type": "response.x"}, {"type": "response.refusal.delta", "delta": "No."}], "No."),
        ([{"type": "response.x"}, {"type": "response.reasoning_text.delta", "delta": "hm"}], ""),
        (
            [
                {"type": "message_start"},
                {"type": "content_block_start", "content_block": {"type": "text", "text": "A"}},
                {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "B"}},
                {"type": "content_block_delta", "delta": {"type": "thinking_delta", "thinking": "C", "text": "C"}},
                {"type": "content_block_start", "content_block": {"type": "tool_use", "text": "D"}},
            ],
            "AB",
        ),
        (
            [
                {"event_type": "interaction.created", "interaction": {}},
                {"event_type": "step.delta", "delta": {"type": "text", "text": "A"}},
                {"event_type": "step.delta", "delta": {"type": "thought_summary", "text": "B"}},
            ],
            "A",
        ),
        (
            [
                {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"content": "A"}}]},
                {"object": "chat.completion.chunk", "choices": [{"index": 1, "delta": {"content": "other"}}]},
                {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"refusal": "B"}}]},
                {"object": "chat.completion.chunk", "choices": []},
            ],
            "AB",
        ),
        ([{"type": "note", "text": "nobody knows this family"}], ""),
    ],
)
def test_only_what_a_reader_sees_is_text(folder: Folder, events: list[dict[str, Any]], text: str):
    """Thoughts, arguments and second choices are not."""
    assert folder.reads(*events).text == text


@pytest.mark.parametrize(
    ("events", "status", "problem"),
    [
        (OPENAI, "completed", None),
        ([{"type": "note"}], "completed", None),
        ([], "completed", None),
        (OPENAI[:-1], "failed", "recording_truncated"),
        ([{"type": "message_start"}], "failed", "recording_truncated"),
        ([{"type": "message_start"}, {"type": "message_stop"}], "completed", None),
        (
            [{"type": "message_start"}, {"type": "error", "error": {"type": "overloaded_error"}}],
            "failed",
            "overloaded_error",
        ),
        ([*OPENAI[:2], {"type": "error", "error": {"code": "quota", "message": "m"}}], "failed", "quota"),
        ([*OPENAI[:2], {"type": "error", "code": "flat", "message": "m"}], "failed", "flat"),
        (
            [
                {"type": "error", "error": {"code": "first"}},
                {"type": "response.failed", "response": {"error": {"code": "b"}}},
            ],
            "failed",
            "first",
        ),
        (
            [*OPENAI[:2], {"type": "error", "code": "cause"}, {"type": "error", "code": "consequence"}],
            "failed",
            "cause",
        ),
        ([{"type": "response.failed", "response": {"error": {"code": "only"}}}], "failed", "only"),
        ([{"type": "response.incomplete", "response": {}}], "failed", "incomplete"),
        ([{"event_type": "interaction.completed", "interaction": {"status": "completed"}}], "completed", None),
        (
            [{"event_type": "interaction.completed", "interaction": {"status": "budget_exceeded"}}],
            "failed",
            "budget_exceeded",
        ),
        ([{"event_type": "interaction.completed", "interaction": {"status": "cancelled"}}], "cancelled", None),
        ([{"object": "chat.completion.chunk", "choices": [{"index": 0, "finish_reason": "stop"}]}], "completed", None),
        (
            [{"object": "chat.completion.chunk", "choices": [{"index": 0, "finish_reason": None}]}],
            "failed",
            "recording_truncated",
        ),
        ([{"object": "chat.completion.chunk", "error": {"code": 500, "message": "m"}}], "failed", "error"),
        ([ASKED, OPENAI[-1], {"type": "error", "error": {"code": "late"}}], "failed", "late"),
    ],
)
def test_a_recording_settles_as_its_stream_did(folder: Folder, events: list[object], status: str, problem: str | None):
    """Failed after an error, failed where the end is missing, else completed."""
    ending = folder.reads(*events).ending
    assert ending.status == status
    assert (ending.problem.code if ending.problem else None) == problem
    assert ending.actions == ()


def test_a_pending_approval_pauses(folder: Folder):
    """The action has the vendor's id, tool and arguments."""
    assert folder.reads(ASKED, OPENAI[-1]).ending.actions == (Action(id="mcpr_1", tool="restart", arguments={"a": 1}),)


@pytest.mark.parametrize("kind", ["mcp_approval_response", "mcp_call"])
def test_an_answered_approval_does_not(folder: Folder, kind: str):
    """A response to it, or the call itself, is its answer."""
    answer = {"type": "response.output_item.done", "item": {"type": kind, "approval_request_id": "mcpr_1"}}
    assert folder.reads(ASKED, answer, OPENAI[-1]).ending.actions == ()


def test_arguments_that_are_no_object_are_kept_as_text(folder: Folder):
    """A person who approves should see them."""
    asked = {**ASKED, "item": {**ASKED["item"], "arguments": "not json"}}
    assert folder.reads(asked, OPENAI[-1]).ending.actions[0].arguments == {"arguments": "not json"}


def test_blank_lines_crlf_a_byte_order_mark_and_a_missing_end_are_fine(folder: Folder):
    """And a raw U+2028 in a text ends no line."""
    content = b'\xef\xbb\xbf\r\n{"type": "a"}\r\n  \r\n\n{"type": "b", "x": "\xe2\x80\xa8"}'
    assert [event.data for event in folder.reads_bytes(content).events] == [{"type": "a"}, {"type": "b", "x": "\u2028"}]


@pytest.mark.parametrize(
    ("line", "what"),
    [
        (b"{", "not JSON"),
        (b"[1]", "JSON that is no object ([1])"),
        (b'"x"', "JSON that is no object"),
        (b"[DONE]", "not JSON"),
        (b'{"a": NaN}', "NaN is no number"),
        (b'{"a": 1e999}', "JSON that cannot be kept"),
        (b'{"a": "\\ud800"}', "half a surrogate pair"),
        (b'{"a": "\xff"}', "a byte that is not UTF-8"),
        (b'{"a": ' + b"9" * 5000 + b"}", "JSON that cannot be kept"),
        (b'{"type": "run.completed"}', "the type 'run.completed'"),
        (b'{"type": "a\\nb"}', "the type 'a\\nb'"),
        (b"[" * 100_000, "JSON that cannot be kept"),
    ],
)
def test_a_bad_line_is_an_error_with_its_number(folder: Folder, line: bytes, what: str):
    """Blank lines count."""
    with pytest.raises(RecordingError) as caught:
        folder.reads_bytes(b'{"type": "a"}\n\n' + line + b"\n")
    assert caught.value.line == 3
    assert what in caught.value.what
    assert str(caught.value).startswith(f"{folder.path}:3: ")


def test_a_file_that_is_not_there_is_an_error(tmp_path: Path):
    """It has no number then."""
    with pytest.raises(RecordingError, match=r"none: cannot be read"):
        load_recording(tmp_path / "none")


HEADER = {
    "reattach": "recording/1",
    "profile": "openai-responses",
    "recorded_at": "2027-01-01T00:00:00Z",
    "run": {"id": "r"},
}


def test_a_header_brings_times_types_and_ids(folder: Folder):
    """Each line after it names them; the family is the header's."""
    recording = folder.reads(
        HEADER,
        {"at_ms": 0, "id": "a", "type": "response.output_text.delta", "data": OPENAI[1]},
        {"at_ms": 700, "id": "b", "type": "response.completed", "data": OPENAI[4]},
    )
    assert recording.profile == "openai-responses"
    assert [(event.at_ms, event.id, event.data) for event in recording.events] == [
        (0, "a", OPENAI[1]),
        (700, "b", OPENAI[4]),
    ]
    assert (recording.text, recording.ending.status, recording.ending.problem) == ("Hi ", "completed", None)


def test_without_timing_events_come_as_fast_as_bare_ones(folder: Folder):
    """`record --no-timing` leaves `at_ms` out."""
    line = {"type": "x", "data": {}}
    assert [event.at_ms for event in folder.reads({"reattach": "recording/1"}, line, line, line).events] == [0, 10, 20]


@pytest.mark.parametrize(
    ("header", "line", "number", "what"),
    [
        ({"reattach": "recording/2"}, {}, 1, "the header 'recording/2'"),
        (HEADER, {"at_ms": -1, "type": "x", "data": {}}, 2, "at_ms -1"),
        (HEADER, {"at_ms": True, "type": "x", "data": {}}, 2, "at_ms True"),
        (HEADER, {"at_ms": 1, "data": {}}, 2, "without a type"),
        (HEADER, {"at_ms": 1, "type": "x", "data": []}, 2, "without data"),
    ],
)
def test_a_bad_line_after_a_header_is_an_error(folder: Folder, header: object, line: object, number: int, what: str):
    """Time runs forwards, type and data are there."""
    with pytest.raises(RecordingError) as caught:
        folder.reads(header, line)
    assert caught.value.line == number
    assert what in caught.value.what


def test_a_native_recording_leaves_out_what_a_server_appends_itself(folder: Folder):
    """The replaying server begins, pauses and ends the run; the rest is as it was."""
    action = {"id": "act_1", "kind": "client_tool", "tool": "t", "arguments": {"a": 1}, "thread": None}
    recording = folder.reads(
        {"reattach": "recording/1", "profile": "native"},
        {"type": "run.created", "data": {}},
        {"type": "message.delta", "data": {"message_id": "m", "index": 0, "text": "Hi"}},
        {"type": "action.required", "data": {"action": action}},
        {"type": "run.paused", "data": {"required_actions": [action]}},
    )
    assert [event.type for event in recording.events] == ["message.delta"]
    assert recording.ending.actions == (Action(id="act_1", kind="client_tool", tool="t", arguments={"a": 1}),)


@pytest.mark.parametrize(
    ("event_type", "data", "status", "problem"),
    [
        ("run.completed", {"result": {"a": 1}}, "completed", None),
        ("run.failed", {"error": {"code": "c", "message": "m"}}, "failed", Problem(code="c", message="m")),
        ("run.cancelled", {}, "cancelled", None),
    ],
)
def test_a_native_recording_settles_as_the_run_did(
    folder: Folder, event_type: str, data: object, status: str, problem: Problem | None
):
    """Result and problem are the run's."""
    ending = folder.reads({"reattach": "recording/1", "profile": "native"}, {"type": event_type, "data": data}).ending
    assert (ending.status, ending.problem) == (status, problem)
    assert ending.result == ({"a": 1} if status == "completed" else None)


def test_a_recording_is_planned_as_a_script_is(folder: Folder):
    """Waits between events, their text beside them, one settling step."""
    assert list(plan_recording(folder.reads(OPENAI[1], OPENAI[3], OPENAI[4]))) == [
        Emit(path="0", type="response.output_text.delta", data=OPENAI[1], text="Hi "),
        Rest(path="1.rest", ms=10),
        Emit(path="1", type="response.output_text.done", data=OPENAI[3]),
        Rest(path="2.rest", ms=10),
        Emit(path="2", type="response.completed", data=OPENAI[4]),
        Finish(path="end", status="completed"),
    ]


def test_a_recording_with_a_pending_approval_is_planned_with_a_pause(folder: Folder):
    """The engine asks and settles."""
    recording = folder.reads(ASKED, OPENAI[4])
    assert list(plan_recording(recording))[-1] == Pause(path="end", actions=recording.ending.actions)


TOKENS = st.sampled_from([b"{", b"}", b'"type"', b":", b'"a"', b"\n", b"\r", b",", b"1"])


@given(content=st.binary(max_size=80) | st.lists(TOKENS).map(b"".join))
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_file_brings_anything_but_a_recording_error(content: bytes, folder: Folder):
    """Every file is a recording or an error with a line of it."""
    number = 1
    try:
        folder.reads_bytes(content)
    except RecordingError as error:
        number = error.line
    assert 1 <= number <= content.count(b"\n") + 1


KEYS = ["item", "error", "delta", "response", "interaction", "choices", "content_block"]
JSON = st.recursive(
    st.none() | st.integers() | st.text(st.characters(codec="utf-8"), max_size=4),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from([*KEYS, "type", "index", "id", "text"]), inner, max_size=4)
    ),
    max_leaves=8,
)
SHAPES: list[dict[str, Any]] = [
    *OPENAI,
    ASKED,
    {"type": "error"},
    {"type": "response.failed"},
    {"type": "content_block_delta"},
    {"type": "content_block_start"},
    {"event_type": "step.delta"},
    {"event_type": "interaction.completed"},
    {"object": "chat.completion.chunk"},
]
PROFILES = ["openai-responses", "gemini-interactions", "anthropic-messages", "openai-chat", "native"]


@given(shape=st.sampled_from(SHAPES), key=st.sampled_from(KEYS), value=JSON, profile=st.sampled_from(PROFILES))
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_shape_of_an_event_upsets_a_family(
    shape: dict[str, Any], key: str, value: object, profile: str, folder: Folder
):
    """What a vendor adds or leaves out tomorrow is passed on, not stumbled over."""
    recording = folder.reads({**shape, key: value}, profile=profile)
    assert recording.events[0].data == {**shape, key: value}


def test_a_native_recording_keeps_release_operation_and_text(folder: Folder):
    """What the replaying server does not make by itself: who executes the run, what an answer is for, a foreign event's text."""
    action = {"id": "act_1", "kind": "approval", "tool": "t", "arguments": {}, "operation_id": "op_1"}
    recording = folder.reads(
        {"reattach": "recording/1", "profile": "native"},
        {"type": "release.changed", "data": {"release": "r2"}},
        {"type": "release.changed", "data": {"release": 2}},
        {"type": "vendor.note", "data": {}, "text": "seen"},
        {"type": "action.required", "data": {"action": action}},
    )
    release, note, pause = [step for step in plan_recording(recording) if not isinstance(step, Rest)]
    assert release == Operate(path="0", step=Release(release="r2"))
    assert note == Emit(path="1", type="vendor.note", data={}, text="seen")
    assert isinstance(pause, Pause)
    assert pause.actions[0].operation_id == "op_1"


def test_a_text_that_is_none_is_an_error(folder: Folder):
    with pytest.raises(RecordingError, match=r":2: the text 5, expected 'text'"):
        folder.reads(HEADER, {"type": "x", "data": {}, "text": 5})


def test_a_recording_that_is_not_whole_yet_is_not_played(tmp_path):
    """`reattach record` keeps what came beside it; the file itself is still empty, and would look like a run that said nothing."""
    file = tmp_path / "run.jsonl"
    file.write_bytes(b"")
    (tmp_path / "run.jsonl.recording").mkdir()
    with pytest.raises(RecordingError, match=r"run\.jsonl: not whole yet, go on with `reattach record`"):
        load_recording(file)
