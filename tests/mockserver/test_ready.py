"""The ready scenarios: each is valid, can be asked for by its name, and is what its sentence says, played in virtual time."""

import json
import re
import subprocess
import sys
import unicodedata
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import httpx
import pytest

from mockserver_stage import Site
from reattach_mockserver import cli
from reattach_mockserver.library import Library
from reattach_mockserver.moment import ms_of
from reattach_mockserver.scenarios.ready import READY, about, load_ready

pytestmark = pytest.mark.anyio

ROOM = Path(__file__).parents[2] / "mockserver"
FOLDER = ROOM / "reattach_mockserver/scenarios/ready"
ENDS = {
    "approval": "requires_action",
    "approvals": "requires_action",
    "approval-expires": "requires_action",
    "approval-stale": "requires_action",
    "failure": "failed",
    "cancelled": "cancelled",
    "session-approval": "requires_action",
    "canonical": "requires_action",
}


async def played(sites, name: str) -> tuple[Site, dict, list[dict]]:
    """Play a ready scenario by its name, with waits that take no time; return the run and its events."""
    site = await sites(replace(load_ready(name), clock="virtual"))
    run = await site.settled({"input": {"scenario": name}})
    return site, run, [json.loads(event.body) for event in await site.engine.log.read(run["id"], 0, 100_000, 1 << 28)]


def of_type(events: list[dict], kind: str) -> list[dict]:
    return [event["data"] for event in events if event["type"] == kind]


def test_every_file_of_the_folder_has_its_place_in_the_list():
    """A new one is a file and a name; `demo` alone has no file."""
    assert sorted(path.stem for path in FOLDER.glob("*.yaml")) == sorted(set(READY) - {"demo"})


@pytest.mark.parametrize(
    "name", [name for name in READY if name not in ("long-text", "burst")]
)  # their own tests play them
async def test_it_plays_to_its_end_by_its_name(sites, name):
    """Valid, played, and settled as its kind should; the last event is the settling one."""
    _, run, events = await played(sites, name)
    assert run["status"] == ENDS.get(name, "completed")
    assert [event["sequence"] for event in events] == list(range(1, len(events) + 1))
    assert events[-1]["type"] == {"requires_action": "run.paused"}.get(run["status"], f"run.{run['status']}")


async def test_a_name_that_nobody_has_is_refused(sites):
    """Not played as something else: a test that misspelt it would pass for the wrong reason."""
    site = await sites()
    assert (await site.create({"input": {"scenario": "helo"}})).code == "invalid_request"


async def test_long_text_is_a_message_of_many_small_pieces(sites):
    """Some thousand deltas; what they add up to is what the messages say, and is long."""
    _, run, events = await played(sites, "long-text")
    assert run["status"] == "completed"
    pieces = [data["text"] for data in of_type(events, "message.delta")]
    assert len(pieces) > 2_500
    assert "".join(pieces) == "".join(data["text"] for data in of_type(events, "message.completed"))
    assert len("".join(pieces)) > 15_000


async def test_tools_has_each_kind_of_tool(sites):
    """With a result, with an error, named and unnamed operations; each call has its result."""
    _, _, events = await played(sites, "tools")
    calls, results = of_type(events, "tool.call"), of_type(events, "tool.result")
    assert {call["call_id"] for call in calls} == {result["call_id"] for result in results}
    assert any("error" in result for result in results)
    assert "op_charge_41" in {call["operation_id"] for call in calls}


async def test_parallel_tools_are_in_flight_at_once_and_end_in_another_order(sites):
    """A reader that pairs a result with the last call, not with its id, is wrong here."""
    _, _, events = await played(sites, "parallel-tools")
    flying = most = 0
    for event in events:
        flying += {"tool.call": 1, "tool.result": -1}.get(event["type"], 0)
        most = max(most, flying)
    assert most >= 6
    called = [data["call_id"] for data in of_type(events, "tool.call")]
    ended = [data["call_id"] for data in of_type(events, "tool.result")]
    assert sorted(called) == sorted(ended)
    assert called != ended


async def test_parallel_has_producers_that_mix(sites):
    """Deltas of one message stand between those of another."""
    _, _, events = await played(sites, "parallel")
    owners = [data["message_id"] for data in of_type(events, "message.delta")]
    assert len(owners) > len(set(owners))
    assert owners != sorted(owners, key=owners.index)


async def test_approvals_wait_for_several_things_of_each_kind(sites):
    """Two approvals, one of them a sub-agent's, a client's tool, an authorization."""
    _, run, _ = await played(sites, "approvals")
    kinds = [action["kind"] for action in run["required_actions"]]
    assert kinds == ["approval", "approval", "client_tool", "authorization"]
    assert [action["thread"] for action in run["required_actions"]] == [None, "letters", None, None]


async def test_failure_says_something_first(sites):
    _, run, events = await played(sites, "failure")
    assert run["error"]["code"] == "upstream_down"
    assert of_type(events, "message.completed")


async def test_cancelled_leaves_effects_of_each_kind(sites):
    """In the inventory: known, not to be undone, outside; a failed call is known, and there is nothing in doubt."""
    _, _, events = await played(sites, "cancelled")
    inventory = events[-1]["data"]["operations"]
    assert {name: len(ids) for name, ids in inventory.items()} == {
        "known": 2, "unknown": 0, "irreversible": 2, "external": 1,
    }  # fmt: skip


async def test_cancel_me_can_be_cancelled_at_any_moment(sites):
    """On the real clock it goes on for an hour; a cancel settles it."""
    site = await sites(load_ready("cancel-me"))
    run = await site.run({"input": {"scenario": "cancel-me"}})
    assert (await site.call("POST", f"/v1/runs/{run['id']}/cancel")).status == 202
    assert (await site.until_settled(run["id"]))["status"] == "cancelled"


async def test_the_huge_event_is_near_the_default_limit_and_not_above(sites):
    """It is taken with default settings; a reader with a smaller buffer meets it here."""
    site, _, events = await played(sites, "huge-event")
    size = max(len(json.dumps(event["data"])) for event in events)
    limit = site.engine.settings.limits.event_bytes
    assert 0.9 * limit < size < limit


async def test_unicode_has_what_readers_stumble_over(sites):
    """Ends of lines that are none to SSE, NUL, a BOM, joiners, four bytes, right to left, combining marks, controls."""
    _, _, events = await played(sites, "unicode")
    text = json.dumps([event["data"] for event in events], ensure_ascii=False)
    said = "".join(data["text"] for data in of_type(events, "message.completed"))
    for character in "\u2028\u2029\u0085\v\f\r\n\0\ufeff\u200d\u202e\u3000\ufffd\U0010fffd🙂":
        assert character in said, ascii(character)
    assert any(unicodedata.combining(character) for character in said)
    assert any(unicodedata.bidirectional(character) in ("R", "AL") for character in said)
    assert re.search(r"\\u001b|\\u0007", text)
    assert {len(character.encode()) for character in said} == {1, 2, 3, 4}


async def test_quiet_has_minutes_without_an_event_and_takes_none(sites):
    """`clock: virtual`: half an hour by its times, played at once."""
    assert load_ready("quiet").clock == "virtual"
    _, _, events = await played(sites, "quiet")
    times = [ms_of(event["time"]) for event in events]
    assert max(late - early for early, late in pairwise(times)) >= 600_000
    assert times[-1] - times[0] >= 1_700_000


async def test_burst_has_two_thousand_events_without_a_pause(sites):
    _, run, events = await played(sites, "burst")
    assert run["status"] == "completed"
    assert len(events) > 2_000
    assert len({event["time"] for event in events[2:-1]}) == 1, "virtual time stands still: there is no wait in it"


def test_the_help_and_the_readme_tell_what_each_is_for(capsys):
    """The table of the room's README is made of the files' own first lines."""
    readme = (ROOM / "README.md").read_text(encoding="utf-8")
    rows = "\n".join(f"| `{name}` | {about(name)} |" for name in READY)
    assert rows in readme
    with pytest.raises(SystemExit):
        cli.main(["--help"])
    told = capsys.readouterr().out
    assert all(name in told and about(name)[:40] in told for name in READY)


def test_serve_plays_one_by_its_name():
    """`--scenario NAME` makes it the default; any other is played by the input of a create."""
    command = [sys.executable, "-m", "reattach_mockserver.cli", "--port", "0", "--scenario", "failure"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            url = process.stdout.readline().split()[-1]
            with httpx.Client(base_url=url, trust_env=False, timeout=20) as client:
                kinds = [client.post("/v1/runs", json={"input": given}, headers={"Idempotency-Key": key}).json()["id"]
                         for key, given in (("a", "x"), ("b", {"scenario": "cancelled"}))]  # fmt: skip
                ends = [last_type(client, run) for run in kinds]
        finally:
            process.kill()
    assert ends == ["run.failed", "run.cancelled"]


def last_type(client: httpx.Client, run: str) -> str:
    """Read the run to its end by long polls; return the type of its last event."""
    after, kind = "", ""
    while True:
        page = client.get(f"/v1/runs/{run}/events?limit=1000&wait_ms=9000{after}").json()
        if not page["events"]:
            return kind
        kind, after = page["events"][-1]["type"], f"&after={page['next']}"


def test_a_file_of_that_name_is_meant_before_the_ready_one(tmp_path, monkeypatch):
    """What lies in the folder is what a person sees."""
    (tmp_path / "hello").write_text("reattach: scenario/1\nname: mine\nsteps: []\n")
    monkeypatch.chdir(tmp_path)
    assert cli._scenario("hello").name == "mine"
    assert cli._scenario("failure") == load_ready("failure")


def test_the_library_gives_a_given_script_before_the_ready_one():
    mine = replace(load_ready("hello"), seed=99)
    assert Library({"hello": mine})["hello"].seed == 99
    assert Library()["hello"].seed == 1


async def test_the_chaos_session_holds_every_kind_of_event(sites):
    """Three runs: one completes, one pauses and is continued, that one fails; short enough to be cut at every byte."""
    _, _, first = await played(sites, "session")
    site, paused, second = await played(sites, "session-approval")
    answer = {"action_id": "act_1", "decision": "approve"}
    created = await site.create({"continues": paused["id"], "responses": [answer]})
    last = await site.until_settled(created.json["id"])
    assert last["status"] == "failed"
    third = [json.loads(event.body) for event in await site.engine.log.read(last["id"], 0, 100_000, 1 << 28)]
    session = [*first, *second, *third]
    assert {event["type"] for event in session} >= {
        "run.created",
        "run.started",
        "status",
        "message.delta",
        "message.completed",
        "tool.call",
        "tool.result",
        "action.required",
        "action.resolved",
        "run.completed",
        "run.paused",
        "run.failed",
    }
    assert sum(len(json.dumps(event)) for event in session) < 8 * 1024
    assert len(session) < 20
