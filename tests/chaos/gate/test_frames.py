"""WebSocket: the same places under every split, exact cuts between two bytes, and records of what was asked."""

import itertools
import json
import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gate_stage import planned, stage
from reattach_chaos.gate.frames import FrameReader, Messages
from reattach_chaos.gate.marks import Mark
from reattach_chaos.history import Create, Received, Request, Resume, ResumeOk, ResumeRejected, bytes_sha256

pytestmark = [pytest.mark.anyio]
UPGRADE = b"GET /v1/socket HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"
SWITCHED = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"
EVENTS = [
    '{"sequence":1,"type":"run.created","data":{"event":1}}',
    '{"sequence":2,"type":"message.delta","data":{"text":"é€🙂"}}',
    '{"sequence":3,"type":"run.completed","data":{}}',
]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def frame(payload: str | bytes, opcode: int = 1, *, mask: bytes = b"", final: bool = True) -> bytes:
    """Return one frame, masked as a client's where there is a mask."""
    data = payload.encode() if isinstance(payload, str) else payload
    size = len(data)
    length = bytes([size]) if size < 126 else b"\x7e" + size.to_bytes(2) if size < 65536 else b"\x7f" + size.to_bytes(8)
    flags = bytes([length[0] | (0x80 if mask else 0)]) + length[1:]
    body = bytes(byte ^ mask[place % 4] for place, byte in enumerate(data)) if mask else data
    return bytes([opcode | (0x80 if final else 0)]) + flags + mask + body


def asked(told: dict[str, object]) -> bytes:
    return frame(json.dumps(told), mask=os.urandom(4))


def event(number: int) -> str:
    return f'{{"type":"event","cursor":"e1.{number}","event":{EVENTS[number - 1]}}}'


OK = frame('{"type":"resume_ok","run_id":"r1","epoch":"e1","cursor":"e1.0","last_sequence":2}')
FRAMES = [OK, frame(event(1)), frame(b"", 9), frame(event(2)), frame(event(3)), frame(b"\x03\xe8", 8)]
RESUME = asked({"type": "resume", "run_id": "r1", "cursor": "e1.0"})
WHOLE = b"".join(FRAMES)


def marks(pieces: list[bytes]) -> list[tuple[int, Mark]]:
    reader, found, at = FrameReader(), [], 0
    for piece in pieces:
        found += [(at + index, mark) for index, mark in reader.feed(piece)]
        at += len(piece)
    return found


@given(st.lists(st.integers(0, len(WHOLE)), max_size=12))
def test_every_split_of_the_frames_gives_the_same_marks(places):
    """Also inside headers, lengths and characters."""
    edges = [0, *sorted(places), len(WHOLE)]
    assert marks([WHOLE[start:end] for start, end in itertools.pairwise(edges)]) == marks([WHOLE])
    assert marks([WHOLE[at : at + 1] for at in range(len(WHOLE))]) == marks([WHOLE])


@settings(max_examples=30)
@given(st.binary(max_size=200), st.lists(st.integers(0, 400), max_size=6), st.sampled_from([0, 125, 126, 65535, 65536]))
def test_a_client_s_messages_are_found_under_every_split(data, places, size):
    """Masked, fragmented, with a ping between, of each form of length."""
    payload = (data * (size // max(1, len(data)) + 1))[:size] if data else b"x" * size
    mask = b"\x01\x02\x03\x04"
    half = size // 2
    whole = frame(payload, mask=mask) + frame(payload[:half], mask=mask, final=False) + frame(b"p", 9, mask=mask)
    whole += frame(payload[half:], 0, mask=mask)
    edges = [0, *sorted(min(place, len(whole)) for place in places), len(whole)]
    messages = Messages()
    found = [message for start, end in itertools.pairwise(edges) for _, message in messages.feed(whole[start:end])]
    assert found == [payload, payload]


START = len(SWITCHED) + len(FRAMES[0])
SECOND = START + len(FRAMES[1]) + len(FRAMES[2])
THIRD = SECOND + len(FRAMES[3])


@pytest.mark.parametrize(("place", "more", "expected"), [
    ("after-request", {}, len(SWITCHED)),
    ("after-head", {}, START),
    ("in-chunk-size", {"event": 2}, START + len(FRAMES[1]) + len(FRAMES[2]) + 1),
    ("after-event", {"event": 1}, START + len(FRAMES[1])),
    ("in-comment", {}, START + len(FRAMES[1]) + 1),
    ("after-comment", {}, START + len(FRAMES[1]) + len(FRAMES[2])),
    ("in-data-line", {"event": 2}, SECOND + 2 + len(b'{"type":"event"')),
    ("before-blank-line", {"event": 2}, THIRD - 1),
    ("in-character", {"event": 2, "width": 4}, SECOND + FRAMES[3].index("🙂".encode()) + 2),
    ("in-replay", {"event": 2}, THIRD),
    ("before-live", {}, THIRD),
    ("after-terminal", {}, THIRD + len(FRAMES[4])),
    ("after-terminator", {}, len(SWITCHED) + len(WHOLE)),
])  # fmt: skip
async def test_a_cut_between_frames_comes_at_exactly_the_byte(place, more, expected):
    """The server's bytes before it have come, none behind it."""
    async with stage(SWITCHED, planned("rst", place, **more), socket=WHOLE) as played:
        heard = await played.ask(UPGRADE, then=RESUME)
        assert heard.how == "rst"
        assert heard.data == (SWITCHED + WHOLE)[:expected]


async def test_a_resume_is_a_request_for_the_stream():
    """With its cursor, its number, and the answer; the events under their cursors with the digest of their text."""
    async with stage(SWITCHED, socket=WHOLE) as played:
        assert (await played.ask(UPGRADE, then=RESUME, silent=True)).data == SWITCHED + WHOLE
        assert played.server.requests == [UPGRADE, RESUME]
    assert [(record.route, record.nth) for record in played.of(Request)] == [("other", 1), ("stream", 1)]
    assert [(record.run, record.after) for record in played.of(Resume)] == [("r1", "e1.0")]
    assert [(record.cursor, record.head) for record in played.of(ResumeOk)] == [("e1.0", 2)]
    told = [(record.id, record.sha256) for record in played.of(Received)]
    assert told == [(f"e1.{number}", bytes_sha256(text.encode())) for number, text in enumerate(EVENTS, 1)]


async def test_a_refused_resume_is_told():
    """With its code; a WebSocket has no status."""
    refused = frame('{"type":"resume_rejected","code":"cursor_expired"}')
    async with stage(SWITCHED, socket=refused) as played:
        await played.ask(UPGRADE, then=RESUME, silent=True)
    assert [record.code for record in played.of(ResumeRejected)] == ["cursor_expired"]


async def test_a_start_is_a_create_and_then_the_first_stream():
    """Its events follow without another request: they are those of the run's first stream."""
    start = asked({"type": "start", "idempotency_key": "k", "input": "x"})
    started = frame('{"type":"started","run":{"id":"r1"},"replayed":false}')
    async with stage(SWITCHED, planned("fin", "after-event", 1), socket=started + FRAMES[1] + FRAMES[3]) as played:
        heard = await played.ask(UPGRADE, then=start)
        assert heard.data == SWITCHED + started + FRAMES[1]
    assert [record.key for record in played.of(Create)] == ["k"]


async def test_a_lost_resume_leaves_the_server_without_it():
    """Half of the message: nobody asked."""
    async with stage(SWITCHED, planned("fin", "in-request-head"), socket=WHOLE) as played:
        assert (await played.ask(UPGRADE, then=RESUME)).data == SWITCHED
    assert played.server.requests[1] == RESUME[:-2]
