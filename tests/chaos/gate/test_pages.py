"""Pages of events as JSON: the same places under every split, exact cuts, and records of what a client may use."""

import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gate_stage import framed, planned, stage
from reattach_chaos.gate.marks import Mark
from reattach_chaos.gate.numbering import Numbering
from reattach_chaos.gate.pages import PageReader
from reattach_chaos.history import Received, Status, Terminal, bytes_sha256
from reattach_chaos.schedules import Place

pytestmark = [pytest.mark.anyio]
EVENTS = [
    {"id": "evt_1", "sequence": 1, "type": "run.created", "data": {"events": [{"sequence": 9}], "text": 'a "{[\\'}},
    {"id": "evt_2", "sequence": 2, "type": "message.delta", "data": {"text": "é€🙂}"}},
    {"id": "evt_3", "sequence": 3, "type": "run.completed", "data": {}},
]
PAGE = json.dumps(
    {"epoch": "e1", "events": EVENTS, "next": "e1.3", "status": "completed", "last_sequence": 3}, ensure_ascii=False
).encode()
TEXTS = [json.dumps(each, ensure_ascii=False).encode() for each in EVENTS]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def marks(pieces: list[bytes]) -> list[tuple[int, Mark]]:
    reader, found, at = PageReader(Numbering()), [], 0
    for piece in pieces:
        found += [(at + index, mark) for index, mark in reader.feed(piece)]
        at += len(piece)
    return found


@given(st.lists(st.integers(0, len(PAGE)), max_size=12))
def test_every_split_of_a_page_gives_the_same_marks(places):
    """Also inside strings, escapes and characters."""
    edges = [0, *sorted(places), len(PAGE)]
    assert marks([PAGE[start:end] for start, end in itertools.pairwise(edges)]) == marks([PAGE])
    assert marks([PAGE[at : at + 1] for at in range(len(PAGE))]) == marks([PAGE])


def test_the_events_of_a_page_are_its_members_alone():
    """Not what an event's data call so."""
    found = [(index, mark.number) for index, mark in marks([PAGE]) if mark.place is Place.AFTER_EVENT]
    assert found == [(PAGE.index(text) + len(text), number) for number, text in enumerate(TEXTS, 1)]


@pytest.mark.parametrize(("place", "more", "expected"), [
    ("after-event", {"event": 2}, PAGE.index(TEXTS[1]) + len(TEXTS[1])),
    ("in-data-line", {"event": 2}, PAGE.index(TEXTS[1]) + 1),
    ("before-blank-line", {"event": 2}, PAGE.index(TEXTS[1]) + len(TEXTS[1]) - 1),
    ("in-character", {"event": 1, "width": 4}, PAGE.index("🙂".encode()) + 2),
    ("after-terminal", {}, PAGE.index(TEXTS[2]) + len(TEXTS[2])),
    ("after-terminator", {}, len(PAGE)),
])  # fmt: skip
async def test_a_cut_in_a_page_comes_at_exactly_the_byte(place, more, expected):
    """As in a stream."""
    answer = framed([PAGE], "sized", b"application/json")
    async with stage(answer, planned("rst", place, **more)) as played:
        assert (await played.ask()).data == answer[: len(answer) - len(PAGE) + expected]


async def test_a_whole_page_is_received():
    """Each event under its cursor, with the digest of its text; the run's status; the settling event."""
    async with stage(framed([PAGE], "chunked", b"application/json"), closes=True) as played:
        await played.ask()
    told = [(record.id, record.sequence, record.sha256) for record in played.of(Received)]
    assert told == [(f"e1.{number}", number, bytes_sha256(text)) for number, text in enumerate(TEXTS, 1)]
    assert [(record.status, record.head) for record in played.of(Status)] == [("completed", 3)]
    assert [record.status for record in played.of(Terminal)] == ["completed"]


async def test_of_half_a_page_nothing_is_received():
    """Nobody can read half a JSON object."""
    answer = framed([PAGE], "sized", b"application/json")
    async with stage(answer, planned("fin", "after-event", 2)) as played:
        await played.ask()
    assert played.of(Received, Status) == []
