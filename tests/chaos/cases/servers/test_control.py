"""The hand at a server that nobody vouches for: what it answers is a run, or a log with an end, or trouble that is named."""

import json

import httpx
import pytest

from reattach_chaos.cases.servers.control import Control, ServerTrouble

pytestmark = pytest.mark.anyio
EVENT = {"id": "evt_1", "cursor": "e1.1", "sequence": 1, "type": "run.completed", "data": {}}


@pytest.fixture
def anyio_backend():
    return "asyncio"


def control(answer):
    """Return a hand at a server that answers so."""

    def told(request):
        said = answer(request)
        return httpx.Response(200, text=said if isinstance(said, str) else json.dumps(said))

    return Control(httpx.AsyncClient(transport=httpx.MockTransport(told)), "http://server", "")


async def test_a_log_is_read_to_its_empty_page():
    """Each page leads to the next one; the cursor is the event's own."""
    pages = {None: [EVENT], "e1.1": []}
    hand = control(lambda request: {"epoch": "e1", "events": pages[request.url.params.get("after")], "next": "e1.1"})
    assert [(event.logged.cursor, event.logged.settles) for event in await hand.log("r")] == [("e1.1", "completed")]


async def test_a_log_is_whole_with_the_last_event_that_the_server_names():
    """No further page is asked for: there are thousands of cases."""
    asked = []

    def answer(request):
        asked.append(request)
        return {"epoch": "e1", "events": [EVENT], "next": "e1.1", "last_sequence": 1}

    assert len(await control(answer).log("r")) == len(asked) == 1


async def test_a_log_whose_pages_lead_to_themselves_is_trouble_and_no_wait_for_ever():
    """A server that ignores `after` gives its first page again and again."""
    hand = control(lambda request: {"epoch": "e1", "events": [EVENT], "next": "e1.1"})
    with pytest.raises(ServerTrouble, match="the log of run r has no end"):
        await hand.log("r")


@pytest.mark.parametrize("page", ["[]", "{}", '{"events": [{}], "next": "e1.1"}', "no"])
async def test_what_is_no_page_of_a_log_is_trouble(page):
    with pytest.raises(ServerTrouble, match="the log of run r cannot be read"):
        await control(lambda request: page).log("r")


@pytest.mark.parametrize(
    "told",
    [
        {},
        {"id": "r"},
        {"id": 1, "status": "running"},
        {"id": "r", "status": "requires_action", "required_actions": {"id": "a"}},
        {"id": "r", "status": "requires_action", "required_actions": ["a"]},
        {"id": "r", "status": "requires_action", "required_actions": [{"kind": "approval"}]},
    ],
)
async def test_what_is_no_run_is_trouble(told):
    """Of another server nothing is believed: its answer is named, where a missing member would be a crash of ours."""
    with pytest.raises(ServerTrouble, match="POST /v1/runs was answered with no run"):
        await control(lambda request: told).create("x", "k")
