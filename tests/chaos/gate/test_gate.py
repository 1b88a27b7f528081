"""The gate as a relay that knows what it relays: keyed cuts, records, no byte changed."""

import pytest

from gate_stage import GET, POST, body, framed, planned, stage
from reattach_chaos.history import Close, CutPlanned, Received, Request, Resume, ResumeOk, Terminal

pytestmark = [pytest.mark.anyio]
ANSWER = framed(body())


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.mark.parametrize("split", [None, 1, 7])
@pytest.mark.parametrize("framing", ["chunked", "sized", "until-close"])
async def test_a_gate_without_faults_changes_no_byte(framing, split):
    """Also where the server writes a byte at a time."""
    answer = framed(body(b"\r\n"), framing)
    async with stage(answer, closes=True, split=split) as played:
        heard = await played.ask()
        assert (heard.data, heard.how) == (answer, "fin")
        assert played.server.requests == [GET]
        assert [record.id for record in played.of(Received)] == ["e1.1", "e1.2", "e1.3", "e1.4"]


async def test_a_fault_comes_on_the_request_that_it_is_planned_on():
    """The second stream of the run, and no other."""
    async with stage(ANSWER, planned("fin", "after-event", 1, nth=2), closes=True) as played:
        heard = [await played.ask() for _ in range(3)]
        assert [each.data == ANSWER for each in heard] == [True, False, True]
        assert [record.nth for record in played.of(Request)] == [1, 2, 3]


async def test_a_fault_on_every_request_comes_on_each():
    """`every` and `times` are more than once."""
    async with stage(ANSWER, planned("fin", "after-event", 1, nth="every"), closes=True) as played:
        for _ in range(3):
            assert (await played.ask()).data != ANSWER
        assert played.gate.fired[1] == 3


async def test_a_run_is_counted_for_itself():
    """The first stream of the second run is not the second stream of the first."""
    other = GET.replace(b"r1", b"r2")
    async with stage(ANSWER, planned("fin", "after-event", 1, run=2), closes=True) as played:
        played.gate.name_runs("r1", "r2")
        assert (await played.ask()).data == ANSWER
        assert (await played.ask(other)).data != ANSWER


async def test_a_lost_request_and_a_lost_answer_look_alike_to_the_client():
    """Of the first the server has half a head, of the second all, and the client nothing of either."""
    created = framed([b'{"id":"r1","status":"running"}'], "sized", b"application/json")
    async with stage(created, planned("fin", "in-request-head", route="create", direction="upstream")) as played:
        assert (await played.ask(POST)).data == b""
    head = POST[: POST.index(b"\r\n\r\n") + 4]
    assert played.server.requests[0] == head[: len(head) // 2]
    async with stage(created, planned("fin", "after-request", route="create")) as played:
        assert (await played.ask(POST)).data == b""
        assert played.server.requests == [POST]


async def test_a_cut_inside_a_request_body_leaves_the_server_half_of_it():
    """The head and half of the body have come."""
    async with stage(b"", planned("rst", "in-request-body", route="create", direction="upstream")) as played:
        assert (await played.ask(POST)).how == "rst"
    assert played.server.requests == [POST[:-7]]


async def test_what_passed_is_recorded():
    """The request, its cursor, the announcement, the events with their digests, the end."""
    async with stage(ANSWER, planned("rst", "after-event", 2)) as played:
        await played.ask(GET.replace(b"\r\n\r\n", b"\r\nLast-Event-ID: e1.0\r\n\r\n"))
    assert [(record.after, record.run, record.conn) for record in played.of(Resume)] == [("e1.0", "r1", 1)]
    assert [(record.cursor, record.epoch, record.head) for record in played.of(ResumeOk)] == [("e1.0", "e1", 2)]
    assert [(record.sequence, record.whole) for record in played.of(Received)] == [(1, True), (2, True)]
    assert [(record.by, record.how) for record in played.of(Close)] == [("gate", "rst")]
    assert [(record.cut, record.position, record.phase) for record in played.of(CutPlanned)] == [
        (1, "after-event", "stream")
    ]
    assert "🙂" in played.fired[0].around
    assert "| " in played.fired[0].around


async def test_half_an_event_is_recorded_as_half():
    """Its id line had passed, its blank line had not: law I6 needs to know."""
    async with stage(ANSWER, planned("fin", "before-blank-line", 2)) as played:
        await played.ask()
    assert [(record.id, record.whole) for record in played.of(Received)] == [("e1.1", True), ("e1.2", False)]


async def test_an_event_whose_id_line_is_cut_was_not_received():
    """The line end of the id had not come: nobody may know that id."""
    async with stage(ANSWER, planned("fin", "in-id-line", 2)) as played:
        await played.ask()
    assert [record.id for record in played.of(Received)] == ["e1.1"]


async def test_the_settling_event_is_told():
    """The stream is a witness of the run's end."""
    async with stage(ANSWER, closes=True) as played:
        await played.ask()
    assert [record.status for record in played.of(Terminal)] == ["completed"]


async def test_no_fault_comes_through_another_door():
    """A bystander's connection is recorded under their name, and neither cut nor counted."""
    async with stage(ANSWER, planned("fin", "after-event", 1), closes=True) as played:
        url = await played.gate.open("bystander")
        assert (await played.ask(url=url)).data == ANSWER
        assert (await played.ask()).data != ANSWER
    assert [record.who for record in played.of(Request)] == ["bystander", "client"]


async def test_the_server_sees_the_end_of_a_cut_connection():
    """A proxy that is gone is gone on both sides; a stalled one is not."""
    async with stage(ANSWER, planned("rst", "after-event", 2)) as played:
        await played.ask()
    assert len(played.server.ends) == 1


async def test_a_server_that_moves_is_followed():
    """After a restart on another port the next connection goes there."""
    async with stage(ANSWER, closes=True) as played, stage(framed([b"other"]), closes=True) as other:
        host, _, port = other.gate.url.removeprefix("http://").partition(":")
        played.gate.instances[0] = (host, int(port))
        assert b"other" in (await played.ask()).data
