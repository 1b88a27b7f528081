"""Every place of a stream: the gate holds at exactly that byte, for every framing and line end, and the actuator cuts there."""

import pytest

from gate_stage import body, framed, planned, stage

pytestmark = [pytest.mark.anyio]
FRAMINGS = ("chunked", "sized", "until-close")
LINE_ENDS = {"lf": b"\n", "crlf": b"\r\n", "cr": b"\r"}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def expected(answer: bytes, place: str, end: bytes) -> int:
    """Return how many bytes of the answer pass before the place, found by searching its text."""
    head = answer.index(b"\r\n\r\n") + 4

    def before(text: bytes) -> int:
        assert answer.count(text) == 1, text
        return answer.index(text)

    def after(text: bytes) -> int:
        return before(text) + len(text)

    third = after(b"id: e1.3" + end)
    match place:
        case "after-request":
            return 0
        case "in-head":
            return head // 2
        case "after-head":
            return head
        case "in-field-name":
            return after(b"id: e1.3" + end + b"event: message.delta" + end + b"d")
        case "in-id-line":
            return after(b"id: e1.3")
        case "after-id-line":
            return third
        case "in-event-line":
            return third + len(b"event: message.delta")
        case "in-data-line":
            return after(b"data: o")
        case "in-line-end":
            return after(b"data: one\r")
        case "before-blank-line":
            return after(b"data: two" + end)
        case "after-event" | "idle":
            return after(b"data: two" + end + end)
        case "in-2-byte-character":
            return before("é".encode()) + 1
        case "in-3-byte-character":
            return before("€".encode()) + 1
        case "in-4-byte-character":
            return before("🙂".encode()) + 2
        case "in-comment":
            return after(b": heartbeat") - len(b" heartbeat")
        case "after-comment":
            return after(b": heartbeat" + end)
        case "in-replay":
            return after(b'{"n":1}' + end + end)
        case "before-live":
            return after('🙂"}'.encode() + end + end)
        case "after-terminal":
            return after(b'{"n":4}' + end + end)
        case "after-terminator":
            return len(answer)
        case _:
            raise AssertionError(place)


PLACES = {
    "after-request": {}, "in-head": {}, "after-head": {}, "in-comment": {}, "after-comment": {}, "before-live": {},
    "after-terminal": {}, "after-terminator": {}, "in-replay": {"event": 1},
    **{
        place: {"event": 3}
        for place in (
            "in-field-name", "in-id-line", "after-id-line", "in-event-line", "in-data-line", "before-blank-line",
            "after-event", "idle",
        )
    },
    **{f"in-{width}-byte-character": {"event": 1, "width": width} for width in (2, 3, 4)},
}  # fmt: skip


@pytest.mark.parametrize("line_end", LINE_ENDS)
@pytest.mark.parametrize("framing", FRAMINGS)
async def test_a_cut_comes_at_exactly_the_byte_of_its_place(framing, line_end):
    """For each place: the client has every byte before it, none behind it, and then the end."""
    end = LINE_ENDS[line_end]
    answer = framed(body(end), framing)
    places = PLACES | ({"in-line-end": {"event": 3}} if line_end == "crlf" else {})
    for place, more in places.items():
        word = "in-character" if "character" in place else place
        async with stage(answer, planned("fin", word, **more), closes=framing == "until-close") as played:
            heard = await played.ask()
            assert heard.how == "fin", place
            assert heard.data == answer[: expected(answer, place, end)], place
            assert [record.position for record in played.fired] == [word]
            assert played.missed == []


@pytest.mark.parametrize("fault", ["rst", "stall", "half-open"])
async def test_a_cut_of_another_kind_comes_at_the_same_byte(fault):
    """RST, silence, and the silence of a peer that is gone."""
    answer = framed(body())
    for place, event in (("after-event", 3), ("before-blank-line", 3), ("in-data-line", 3), ("after-terminal", None)):
        async with stage(answer, planned(fault, place, event)) as played:
            heard = await played.ask(silent=fault != "rst")
            assert heard.how == ("rst" if fault == "rst" else "silence")
            assert heard.data == answer[: expected(answer, place, b"\n")]


async def test_a_place_inside_a_chunk_size_line_is_after_its_first_byte():
    """The chunk that holds the event: a size line has at least two bytes more."""
    pieces = body()
    answer = framed(pieces)
    async with stage(answer, planned("fin", "in-chunk-size", 4)) as played:
        heard = await played.ask()
        assert heard.data == answer[: answer.index(b"\r\n" + pieces[5]) - 1]


async def test_a_place_that_a_stream_has_not_is_missed():
    """A sized answer has no chunk size: the fault did not fire, and says so."""
    answer = framed(body(), "sized")
    async with stage(answer, planned("fin", "in-chunk-size", 3), closes=True) as played:
        assert (await played.ask()).data == answer
    assert [record.reason for record in played.missed] == ["its place was never reached"]


async def test_an_event_that_does_not_come_is_met_at_the_first_later_one():
    """On a resume after it the cut comes at the next."""
    answer = framed(body()[3:])
    resume = b"GET /v1/runs/r1/events HTTP/1.1\r\nLast-Event-ID: e1.2\r\n\r\n"
    async with stage(answer, planned("fin", "after-event", 1)) as played:
        heard = await played.ask(resume)
        assert heard.data == answer[: expected(answer, "after-event", b"\n")]
        assert played.fired[0].sequence == 3


@pytest.mark.parametrize("framing", FRAMINGS)
async def test_every_byte_can_be_the_last(framing):
    """An offset counts the bytes of the answer, its head included."""
    answer = framed(body()[:2], framing)
    for offset in range(0, len(answer) + 1, 7):
        async with stage(answer, planned("fin", "offset", offset=offset), closes=framing == "until-close") as played:
            assert (await played.ask()).data == answer[:offset]
            assert played.fired[0].offset == offset
