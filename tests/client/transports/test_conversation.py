"""One WebSocket without I/O: bytes in any cut become the same frames; sizes, fragments, pings and closes as RFC 6455 has them."""

from __future__ import annotations

import itertools
import json
import random

import pytest
from websockets.utils import accept_key

from reattach.testing import frames, socket_frames
from reattach.transports.conversation import WRAPPING, Conversation, Ended
from reattach.wire.frame import Frame

PROTOCOL = "reattach.v1"


def answer(asked: dict[str, str], **other: str | None) -> dict[str, str]:
    told = {
        "upgrade": "websocket",
        "connection": "Upgrade",
        "sec-websocket-accept": accept_key(asked["Sec-WebSocket-Key"]),
        "sec-websocket-protocol": PROTOCOL,
    }
    changed = told | {name.replace("_", "-"): value for name, value in other.items()}
    return {name: value for name, value in changed.items() if value is not None}


def opened(limit: int = 1 << 20) -> Conversation:
    conversation = Conversation(PROTOCOL, max_event_bytes=limit)
    assert conversation.upgraded(answer(conversation.upgrade())) is None
    assert conversation.to_send() == b""
    return conversation


def message(text: str) -> Frame:
    return Frame("message", text, "")


def close(code: int, reason: str = "") -> Frame:
    return Frame("close", json.dumps({"code": code, "reason": reason}), "")


# the upgrade ----------------------------------------------------------------------------------------------------------


def test_the_upgrade_asks_for_our_subprotocol_and_for_no_extension() -> None:
    """Nothing can be blown up by compression that was never offered."""
    asked = Conversation(PROTOCOL, max_event_bytes=1).upgrade()
    assert asked["Sec-WebSocket-Protocol"] == PROTOCOL
    assert asked["Upgrade"] == "websocket"
    assert not [name for name in asked if "xtension" in name]


@pytest.mark.parametrize(
    "other",
    [
        {"upgrade": "h2c"},
        {"upgrade": None},
        {"connection": "close"},
        {"sec_websocket_accept": "x"},
        {"sec_websocket_accept": None},
        {"sec_websocket_protocol": None},
        {"sec_websocket_protocol": "reattach.v2"},
        {"sec_websocket_protocol": "reattach.v1, reattach.v1"},
        {"sec_websocket_extensions": "permessage-deflate"},
        {"upgrade": "web\u00e9"},
    ],
)
def test_a_101_that_is_no_upgrade_of_ours_is_said_so(other: dict[str, str | None]) -> None:
    conversation = Conversation(PROTOCOL, max_event_bytes=1)
    assert "WebSocket" in (conversation.upgraded(answer(conversation.upgrade(), **other)) or "")
    conversation.leave()  # nothing can be said on it, and nothing is


# what comes -----------------------------------------------------------------------------------------------------------

TALK = (
    socket_frames.resume_ok(),
    socket_frames.event(1, data={"text": "né \U0001f600\u2028b" * 20}),
    socket_frames.PING,
    socket_frames.text("x" * 70_000),
    socket_frames.text("é" * 300, cuts=(1, 1, 3, 500)),
    socket_frames.text("a", cuts=(0, 1)),
    socket_frames.text(""),
    socket_frames.piece(2, b"\x00\xff"),
    socket_frames.piece(10, b"nobody asked"),
    socket_frames.end(2),
    socket_frames.close(1001, "going é"),
)


def read(conversation: Conversation, pieces: list[bytes]) -> list[Frame]:
    return [frame for piece in pieces for frame in conversation.feed(piece)]


@pytest.mark.parametrize("seed", range(60))
def test_the_same_frames_in_any_cut(seed: int) -> None:
    """A law: a seeded cut into reads, also inside heads, characters and control frames, changes nothing."""
    rng = random.Random(seed)
    whole = b"".join(TALK)
    edges = sorted(
        {0, len(whole), *(rng.randint(0, 3_000) for _ in range(200)), *(rng.randint(0, len(whole)) for _ in range(50))}
    )
    pieces = [whole[begin:end] for begin, end in itertools.pairwise(edges)]
    conversation = opened()
    found = read(conversation, pieces)
    assert found == read(opened(), [whole])
    assert [frame.event for frame in found] == [*["message"] * 6, "binary", "message", "close"]
    assert found[3].data == "é" * 300
    assert found[-1] == close(1001, "going é")
    assert conversation.ended == Ended(1001, "going é")


@pytest.mark.parametrize("last", range(1, 40))
def test_an_end_inside_anything_is_no_close(last: int) -> None:
    """However far the last frame came: what came whole before it is handed out, the rest is not, and the end is unclean."""
    conversation = opened()
    tail = socket_frames.event(2)
    found = read(conversation, [socket_frames.event(1) + tail[:last], b""])
    assert [json.loads(frame.data)["cursor"] for frame in found] == ["e1.1"]
    assert conversation.ended == Ended(1006, "the connection ended without a close")
    assert str(conversation.ended).startswith("1006, unclean: ")


def test_a_part_of_a_message_is_growth_and_a_ping_is_not() -> None:
    conversation = opened()
    event = socket_frames.event(1)
    states = []
    for piece in (event[:5], event[5:20], event[20:], socket_frames.PING, socket_frames.text("ab", cuts=(1,))[:3]):
        conversation.feed(piece)
        states.append(conversation.growing)
    assert states == [True, True, False, False, True]


@pytest.mark.parametrize(
    ("code", "detail", "clean"), [(1000, "", True), (1011, "boom", True), (4400, "x", True), (1006, "gone", False)]
)
def test_an_end_reads_like_a_sentence(code: int, detail: str, clean: bool) -> None:
    ended = Ended(code, detail)
    assert ended.clean is clean
    assert str(ended) == f"{code}, {'clean' if clean else 'unclean'}" + (f": {detail}" if detail else "")


def test_a_close_without_a_code_is_clean() -> None:
    conversation = opened()
    assert conversation.feed(socket_frames.piece(8, b"")) == (close(1005),)
    assert conversation.ended is not None
    assert conversation.ended.clean


# limits ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cuts", [(), (1, 50), tuple(range(1, 1200, 100))])
def test_a_message_above_the_limit_ends_it_and_what_came_before_is_handed_out(cuts: tuple[int, ...]) -> None:
    conversation = opened(100)
    largest = "x" * (100 + WRAPPING)
    assert conversation.feed(socket_frames.text("a") + socket_frames.text(largest, cuts=cuts))[1:] == (
        message(largest),
    )
    conversation = opened(100)
    sent = socket_frames.text("a") + socket_frames.text("x" * (101 + WRAPPING), cuts=cuts)
    assert conversation.feed(sent) == (message("a"),)
    assert conversation.oversize
    assert conversation.to_send()[:1] == b"\x88", "the server is told why"


def test_a_huge_head_is_refused_before_its_payload_comes() -> None:
    conversation = opened(100)
    conversation.feed(b"\x81\x7f" + (1 << 40).to_bytes(8))
    assert conversation.oversize


def test_endless_empty_fragments_cost_nothing() -> None:
    conversation = opened(100)
    assert conversation.feed(socket_frames.piece(1, b"", fin=False)) == ()
    for _ in range(100):
        assert conversation.feed(socket_frames.piece(0, b"", fin=False) * 100) == ()
    assert conversation.feed(socket_frames.piece(0, b"x")) == (message("x"),)


@pytest.mark.parametrize(
    "wrong",
    [
        b"\x83\x00",  # an opcode that there is not
        b"\xc1\x00",  # a reserved bit, of an extension that nobody agreed on
        b"\x81\x81abcdx",  # a mask, which servers never use
        b"\x80\x00",  # a continuation of nothing
        b"\x01\x00\x81\x00",  # a message inside a message
        b"\x09\x00",  # a ping in fragments
        b"\x88\x01\x03",  # half a code
        b"\x88\x02\x03\xee",  # 1006, which nobody may send
    ],
)
def test_what_is_no_websocket_is_an_unclean_end(wrong: bytes) -> None:
    conversation = opened()
    assert conversation.feed(socket_frames.text("a") + wrong)[:1] == (message("a"),)
    assert conversation.ended is not None
    assert not conversation.ended.clean
    assert conversation.ended.detail
    assert not conversation.oversize


def test_text_that_is_not_utf_8_is_an_unclean_end() -> None:
    conversation = opened()
    found = conversation.feed(socket_frames.text("a") + socket_frames.piece(1, b"\xff") + socket_frames.text("b"))
    assert found == (message("a"),)
    assert conversation.ended == Ended(1006, "a text message that is not UTF-8")
    assert conversation.feed(socket_frames.text("c")) == ()


# what is said ---------------------------------------------------------------------------------------------------------


def unmasked(data: bytes) -> tuple[int, bytes]:
    """Return opcode and payload of one frame of a client, which must carry a mask."""
    assert data[1] & 0x80
    size = data[1] & 0x7F
    assert size < 126
    mask, payload = data[2:6], data[6 : 6 + size]
    return data[0] & 0x0F, bytes(byte ^ mask[index % 4] for index, byte in enumerate(payload))


def test_pings_are_answered_with_what_they_carry() -> None:
    conversation = opened()
    assert conversation.feed(socket_frames.piece(9, b"are you there")) == ()
    assert unmasked(conversation.to_send()) == (10, b"are you there")


def test_a_close_is_answered_once_and_nothing_is_said_after_it() -> None:
    conversation = opened()
    conversation.feed(socket_frames.close(1000))
    assert unmasked(conversation.to_send()) == (8, (1000).to_bytes(2))
    conversation.leave()
    conversation.ping()
    assert conversation.to_send() == b""


def test_we_speak_text_ask_for_life_and_leave_with_1000() -> None:
    conversation = opened()
    conversation.say(b'{"a":1}')
    assert unmasked(conversation.to_send()) == (1, b'{"a":1}')
    conversation.ping()
    assert unmasked(conversation.to_send()) == (9, b"")
    conversation.leave()
    assert unmasked(conversation.to_send()) == (8, (1000).to_bytes(2))


def test_the_frames_of_the_tests_are_those_of_the_protocol() -> None:
    """`testing.socket_frames` against the library that reads them."""
    conversation = opened()
    (ok, event, rejected, closing, ended) = conversation.feed(
        socket_frames.resume_ok(3)
        + socket_frames.event(4)
        + socket_frames.rejected(410, "cursor_expired", first_sequence=7)
        + socket_frames.closing("draining")
    )
    assert json.loads(ok.data)["cursor"] == "e1.3"
    assert json.loads(event.data)["event"] == json.loads(frames.event_json(4))
    assert json.loads(rejected.data)["first_sequence"] == 7
    assert json.loads(closing.data) == {"type": "closing", "reason": "draining", "retry_ms": 1000}
    assert ended == close(1001)
