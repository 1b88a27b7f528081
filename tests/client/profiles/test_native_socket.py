"""The native protocol on a WebSocket: the first message, the meaning of every message and every close."""

from __future__ import annotations

import json

import pytest

from reattach.core.messages import Arrival, Closing, Opened, Received, Refused, Why
from reattach.profiles import Native
from reattach.profiles.base import Noted, socket_way
from reattach.profiles.native_socket import NativeSocket
from reattach.testing import frames
from reattach.wire.frame import Frame


def message(kind: str, **members: object) -> Frame:
    return Frame("message", json.dumps({"type": kind, **members}), "")


def event(sequence: int, *, cursor: str | None = None, text: str | None = None) -> Frame:
    body = frames.event_json(sequence) if text is None else text
    return Frame("message", f'{{"type":"event","cursor":"{cursor or f"e1.{sequence}"}","event":{body}}}', "")


def resume_ok(after: int = 0, **members: object) -> Frame:
    told = {"run_id": frames.RUN, "epoch": "e1", "cursor": f"e1.{after}", "cursor_id": frames.event_id(after)}
    return message("resume_ok", **(told | {"last_sequence": 9, "status": "running"} | members))


def close(code: int, reason: str = "") -> Frame:
    return Frame("close", json.dumps({"code": code, "reason": reason}), "")


def read(*given: Frame) -> list[object]:
    """Return what the frames say, without the note on the first message."""
    told = NativeSocket().reader(frames.RUN).read(given)
    assert isinstance(told[0], Noted)
    return list(told[1:])


def test_the_native_profile_has_a_socket() -> None:
    assert isinstance(socket_way(Native()), NativeSocket)


@pytest.mark.parametrize("after", [None, "e1.41", "earliest"])
def test_the_first_message_resumes_after_the_cursor_and_never_starts(after: str | None) -> None:
    call = NativeSocket().attach("run_1", after)
    assert call.body == {"type": "resume", "run_id": "run_1", "cursor": after}
    assert (call.method, call.path) == ("GET", "/v1/socket")
    assert call.headers == {"Sec-WebSocket-Protocol": "reattach.v1"}


def test_what_the_server_answers_to_a_resume_is_the_opening() -> None:
    (told,) = read(resume_ok(41, heartbeat_ms=2000))
    assert told == Opened("e1", "e1.41", 41, "evt_e1_41", 9, 2.0)


def test_a_resume_without_a_heartbeat_leaves_it_unknown() -> None:
    (told,) = read(resume_ok())
    assert isinstance(told, Opened)
    assert told.heartbeat is None


@pytest.mark.parametrize("spaces", ["", " ", "\n\t"])
def test_an_event_is_its_own_bytes_whatever_is_around_it(spaces: str) -> None:
    """Its digest is the same as on every other way: a duplicate over two ways is no conflict."""
    body = '{ "id": "x",  "prev_id":null, "sequence":1, "type":"note", "run_id":"run_1", "data":{"a":[1, "}"]} }'
    text = (
        f'{{{spaces}"new":{{"event":0}},{spaces}"type":"event"{spaces},"event":{spaces}{body}{spaces},"cursor":"e1.1"}}'
    )
    _, told = read(resume_ok(), Frame("message", spaces + text + spaces, ""))
    assert isinstance(told, Received)
    by_stream = (
        Native()
        .reader(frames.RUN)
        .read([Frame("stream.attached", '{"epoch":"e1","cursor":"e1.0"}', ""), Frame("note", body, "e1.1")])[1]
    )
    assert told == by_stream
    assert told.arrivals[0].stored == body


def test_neighbouring_events_come_together() -> None:
    told = read(resume_ok(), event(1), event(2), message("news"), event(3))
    assert [type(each) for each in told] == [Opened, Received]
    assert isinstance(told[1], Received)
    assert [arrival.sequence for arrival in told[1].arrivals] == [1, 2, 3]


def test_events_of_an_epoch_that_was_never_stated_have_that_of_their_cursor() -> None:
    (told,) = read(event(1))
    assert isinstance(told, Received)
    assert (told.arrivals[0].epoch, told.arrivals[0].cursor) == ("e1", "e1.1")


@pytest.mark.parametrize("kind", ["resume_rejected", "error"])
@pytest.mark.parametrize(
    ("members", "why"),
    [
        ({"code": "run_not_found", "status": 404}, Why.NOT_FOUND),
        ({"code": "cursor_malformed"}, Why.CURSOR),
        ({"code": "cursor_foreign"}, Why.CURSOR),
        ({"code": "cursor_ahead"}, Why.AHEAD),
        ({"code": "cursor_expired"}, Why.EXPIRED),
        ({"code": "epoch_changed"}, Why.EPOCH),
        ({"code": "overloaded", "status": 429}, Why.BUSY),
        ({"code": "unauthenticated"}, Why.UNAUTHENTICATED),
        ({"code": "forbidden"}, Why.FORBIDDEN),
        ({"code": "internal"}, Why.BUSY),
        ({"code": "invalid_request"}, Why.OTHER),
        ({"code": "never_heard_of", "status": 503}, Why.BUSY),
        ({"code": "never_heard_of"}, Why.OTHER),
        ({"code": 7}, Why.OTHER),
        ({}, Why.OTHER),
    ],
)
def test_a_refusal_is_sorted_by_its_code_else_by_its_status(kind: str, members: dict[str, object], why: Why) -> None:
    (told,) = read(message(kind, **members), event(1))
    assert isinstance(told, Refused), "and nothing after it counts"
    assert told.refusal.why is why


def test_a_refusal_brings_its_facts() -> None:
    (told,) = read(
        message("resume_rejected", code="cursor_expired", detail="gone", first_sequence=5, last_sequence=9, epoch="e1")
    )
    assert isinstance(told, Refused)
    refusal = told.refusal
    assert (refusal.detail, refusal.first_sequence, refusal.last_sequence, refusal.epoch) == ("gone", 5, 9, "e1")


@pytest.mark.parametrize(
    ("told", "seconds"), [(1500, 1.5), (0, 0.0), (-1, None), ("9", None), (True, None), (1e300, None)]
)
def test_the_servers_wish_is_in_milliseconds(told: object, seconds: float | None) -> None:
    (refused,) = read(message("resume_rejected", code="overloaded", retry_after_ms=told))
    (closing,) = read(message("closing", reason="max_age", retry_ms=told))
    assert isinstance(refused, Refused)
    assert refused.refusal.retry_after == seconds
    assert closing == Closing("max_age", seconds)


@pytest.mark.parametrize("reason", ["max_age", "draining", "epoch_changed", "cursor_expired", "slow_consumer"])
def test_a_planned_close_keeps_its_reason(reason: str) -> None:
    _, told = read(event(1), message("closing", reason=reason))
    assert told == Closing(reason)


def test_a_start_that_nobody_asked_for_is_not_this_protocol() -> None:
    """A failed resume never falls back to a start, at neither end."""
    (told,) = read(message("started", run={"id": "run_2"}, replayed=False))
    assert isinstance(told, Refused)
    assert told.refusal.why is Why.FOREIGN


@pytest.mark.parametrize(
    "frame",
    [
        Frame("binary", "", ""),
        Frame("message", "", ""),
        Frame("message", "{", ""),
        Frame("message", '{"type":"event","type"}', ""),
        Frame("message", '{"a":1,}', ""),
        Frame("message", '{"a":1}{}', ""),
        Frame("message", '{"a" 1}', ""),
        Frame("message", "{7:1}", ""),
        Frame("message", "[]", ""),
        Frame("message", '{"a":NaN}', ""),
        Frame("message", '{"a":' + "[" * 300 + "]" * 300 + "}", ""),
        Frame("message", '{"a":' + "[" * 200_000 + "}", ""),
        message("event"),
        message("event", event=[], cursor="e1.1"),
        message("event", event={}, cursor="e1.1"),
        message("event", event={"id": "x", "sequence": 0, "type": "note"}),
        event(1, cursor="e1.2"),
        resume_ok(run_id="another"),
        resume_ok(cursor="a\nb"),
        resume_ok(epoch="a.b"),
    ],
)
def test_what_is_not_this_protocol_is_said_so(frame: Frame) -> None:
    (told,) = read(frame, event(1))
    assert isinstance(told, Refused)
    assert told.refusal.why is Why.FOREIGN


def test_messages_of_a_newer_server_are_passed_over() -> None:
    assert (
        read(message("hello", a=1), message(7), Frame("message", '{"no":"type"}', ""), Frame("message", "{}", "")) == []
    )


CLOSES = {
    1000: None,
    1005: None,
    1006: None,
    1015: None,
    2999: None,
    1001: Closing("close code 1001"),
    1012: Closing("close code 1012"),
    1002: Why.FOREIGN,
    1003: Why.FOREIGN,
    1007: Why.FOREIGN,
    1008: Why.UNAUTHENTICATED,
    1009: Why.FOREIGN,
    1011: Why.BUSY,
    1013: Why.BUSY,
    1014: Why.BUSY,
    3000: Why.UNAUTHENTICATED,
    3003: Why.FORBIDDEN,
    4000: Why.FOREIGN,
    4400: Why.FOREIGN,
    4999: Why.FOREIGN,
}


@pytest.mark.parametrize("code", CLOSES)
def test_a_close_is_classified_by_its_code(code: int) -> None:
    """Normal and unknown ones are the end of a socket, which says nothing about the run; no close is ever the run's end."""
    told = read(close(code, "why"))
    expected = CLOSES[code]
    if expected is None:
        assert told == []
    elif isinstance(expected, Closing):
        assert told == [expected]
    else:
        (refused,) = told
        assert isinstance(refused, Refused)
        assert refused.refusal.why is expected
        assert f"{code} (why)" in refused.refusal.detail


def test_the_first_message_is_noted_once_by_its_type() -> None:
    reader = NativeSocket().reader(frames.RUN)
    assert reader.read([resume_ok(), event(1)])[0] == Noted("first_message", "resume_ok")
    assert not [each for each in reader.read([event(2)]) if isinstance(each, Noted)]


@pytest.mark.parametrize(
    ("frame", "kind"),
    [
        (close(1008), "close"),
        (Frame("binary", "", ""), "binary"),
        (Frame("message", "x", ""), "not JSON"),
        (message("x" * 1000), "x" * 40),
    ],
)
def test_whatever_came_first_is_noted(frame: Frame, kind: str) -> None:
    assert NativeSocket().reader("r").read([frame])[0] == Noted("first_message", kind)


def test_a_whole_message_after_its_deltas_adds_no_text_also_over_two_sockets() -> None:
    reader = NativeSocket().reader(frames.RUN)
    (noted, delta) = reader.read([event(1)])
    assert isinstance(noted, Noted)
    assert isinstance(delta, Received)
    whole = frames.event_json(
        2, type="message.completed", data={"message_id": "m1", "role": "assistant", "text": "word"}
    )
    (told,) = reader.read([event(2, text=whole)])
    assert isinstance(told, Received)
    assert told.arrivals[0].text == ""
    assert isinstance(told.arrivals[0], Arrival)


@pytest.mark.parametrize(
    ("status", "body", "why"),
    [
        (404, b"", Why.FOREIGN),
        (400, b"", Why.FOREIGN),
        (405, b"", Why.FOREIGN),
        (410, b"", Why.FOREIGN),
        (426, b"", Why.FOREIGN),
        (302, b"", Why.FOREIGN),
        (401, b"", Why.UNAUTHENTICATED),
        (403, b"", Why.FORBIDDEN),
        (429, b"", Why.BUSY),
        (502, b"", Why.BUSY),
        (503, b'{"code":"overloaded"}', Why.BUSY),
    ],
)
def test_an_answer_that_is_no_upgrade_is_no_word_about_the_run(status: int, body: bytes, why: Why) -> None:
    """A 404 there means that there is no WebSocket, not that there is no run."""
    told = NativeSocket().refusal(status, {"content-type": "application/problem+json"}, body)
    assert told.why is why
