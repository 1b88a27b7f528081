"""The page on scenario files, sentence by sentence, from files as people write them to what a client sees.

What a file may say, and its errors, is in scenarios/test_parse.py; single steps are in test_engine.py. Here is what the page says
of a scenario as a whole, and of whom a server step concerns.
"""

import json

import pytest

from mockserver_stage import OPEN, Site
from reattach_mockserver.bearer import parse_tokens
from reattach_mockserver.moment import ms_of
from reattach_mockserver.scenarios.parse import loads_script
from reattach_mockserver.scenarios.script import Script

pytestmark = pytest.mark.anyio


def scenario(*steps: str, name: str = "mine", head: str = "clock: virtual") -> Script:
    return loads_script("\n".join(["reattach: scenario/1", f"name: {name}", head, "steps:", *steps]), f"{name}.yaml")


async def played(sites, *scripts: Script, given: object = "x") -> tuple[Site, dict, list[dict]]:
    site = await sites(*scripts)
    run = await site.settled({"input": given})
    return site, run, [json.loads(event.body) for event in await site.engine.log.read(run["id"], 0, 10_000, 1 << 26)]


def of_type(events: list[dict], kind: str) -> list[dict]:
    return [event["data"] for event in events if event["type"] == kind]


async def test_a_run_plays_what_its_input_names(sites):
    """`{"scenario": NAME}`, else the default; also a ready one, which is always there."""
    scripts = (scenario("  - {status: first}", name="first"), scenario("  - {status: second}", name="second"))
    for given, status in (
        ("x", "first"),
        ({"scenario": "second"}, "second"),
        ({"scenario": "hello"}, "looking around"),
    ):
        _, _, events = await played(sites, *scripts, given=given)
        assert of_type(events, "status")[0] == {"text": status}


async def test_a_script_without_an_end_completes_with_nothing(sites):
    """Default: completed."""
    _, run, events = await played(sites, scenario("  - {status: a}"))
    assert (run["status"], events[-1]["data"]) == ("completed", {"result": None})


@pytest.mark.parametrize(
    ("split", "pieces"),
    [
        ("words", ["Look ", "– ", "🙂\n", "b"]),
        ("lines", ["Look – 🙂\n", "b"]),
        ("whole", ["Look – 🙂\nb"]),
        ("4", ["Look", " – 🙂", "\nb"]),
    ],
)
async def test_a_text_is_split_as_it_says(sites, split, pieces):
    """Into words, lines, nothing, or so many characters; the message is the text."""
    _, _, events = await played(sites, scenario(f'  - {{say: "Look – 🙂\\nb", split: {split}}}'))
    assert [data["text"] for data in of_type(events, "message.delta")] == pieces
    assert of_type(events, "message.completed")[0]["text"] == "Look – 🙂\nb"


async def test_a_repeat_counts_its_rounds(sites):
    """`{i}` from 0, in every text of the step."""
    _, _, events = await played(
        sites, scenario('  - {repeat: 3, steps: [{status: "tick {i}"}, {tool: "t{i}", result: "r{i}"}]}')
    )
    assert [data["text"] for data in of_type(events, "status")] == ["tick 0", "tick 1", "tick 2"]
    assert [data["result"] for data in of_type(events, "tool.result")] == ["r0", "r1", "r2"]


async def test_a_blob_is_text_of_so_many_ascii_characters(sites):
    """Under its own type; the same for the same seed, another one for another."""
    texts = []
    for seed in (1, 1, 2):
        script = scenario("  - {blob: {type: report, bytes: 65536}}", head=f"clock: virtual\nseed: {seed}")
        (data,) = of_type((await played(sites, script))[2], "report")
        assert (list(data), len(data["text"]), data["text"].isascii()) == (["text"], 65_536, True)
        texts.append(data["text"])
    assert texts[0] == texts[1] != texts[2]


async def test_races_come_from_the_seed(sites):
    """The same seed, the same order of producers; some other seed, another."""
    branches = ", ".join(f"[{{status: {letter}1}}, {{status: {letter}2}}, {{status: {letter}3}}]" for letter in "abc")
    orders = {}
    for seed in (1, 1, 2, 3, 4):
        script = scenario(f"  - parallel: [{branches}]", head=f"clock: virtual\nseed: {seed}")
        order = [data["text"] for data in of_type((await played(sites, script))[2], "status")]
        assert orders.setdefault(seed, order) == order
        for letter in "abc":
            assert [text for text in order if text[0] == letter] == [f"{letter}{number}" for number in (1, 2, 3)]
    assert len({tuple(order) for order in orders.values()}) > 1


async def test_retention_trims_at_the_append(sites):
    """`retention_events: 3`: nobody has to ask for anything before the fourth last is gone."""
    script = scenario("  - {repeat: 20, steps: [{status: x}]}", head="clock: virtual\nlimits: {retention_events: 3}")
    site = await sites(script)
    run = await site.settled()
    record = await site.engine.log.run(run["id"])
    assert (record.first_sequence, record.last_sequence) == (21, 23)


async def test_an_ask_without_lists_goes_on_with_the_rest(sites):
    """Whatever the answer: there is nothing that it would change."""
    script = scenario("  - ask: [{id: a, tool: t}]", "  - {status: after}")
    for decision in ("approve", "reject"):
        site, run, _ = await played(sites, script)
        answers = {"continues": run["id"], "responses": [{"action_id": "a", "decision": decision}]}
        again = await site.settled(answers)
        events = (await site.get(f"/v1/runs/{again['id']}/events")).json["events"]
        assert of_type(events, "status") == [{"text": "after"}]


THEIRS = ("new_epoch", "{release: r2}", "close_streams", "{expire_to: 3}", "expire_tokens")


@pytest.mark.parametrize("step", THEIRS)
async def test_a_server_step_concerns_the_run_that_plays_it(sites, step):
    """Another run, of another principal, keeps its epoch, its events, its release, its stream and its token."""
    acting = scenario("  - {status: a}", f"  - {{server: {step}}}", "  - {status: b}", name="acting")
    site = await sites(OPEN, acting, tokens=parse_tokens(["alice one", "bob two"]))
    other = await site.run(None, Authorization="Bearer two")
    await site.until_head(other["id"], 3)
    stream = site.attach(other["id"], "?after=tail", Authorization="Bearer two")
    await stream.block()
    before = (await site.get(f"/v1/runs/{other['id']}", {"Authorization": "Bearer two"})).json
    run = await site.run({"input": {"scenario": "acting"}}, Authorization="Bearer one")
    await site.until_head(run["id"], 5 if step != "{release: r2}" else 6)
    answer = await site.get(f"/v1/runs/{run['id']}", {"Authorization": "Bearer one"})
    changed = {
        "new_epoch": lambda: answer.json["epoch"].endswith("-2"),
        "{release: r2}": lambda: answer.json["release"] == "r2",
        "close_streams": lambda: answer.status == 200,
        "{expire_to: 3}": lambda: answer.json["first_sequence"] == 3,
        "expire_tokens": lambda: answer.status == 401,
    }
    assert changed[step]()
    assert (await site.get(f"/v1/runs/{other['id']}", {"Authorization": "Bearer two"})).json == before
    await site.append(other["id"], "still here")
    assert (await stream.block()).json["data"] == {"name": "still here"}


@pytest.mark.parametrize("step", ["restart", "kill", "{overload_ms: 600000}", "{overload_ms: 600000, status: 429}"])
async def test_but_for_those_that_concern_the_server(sites, step):
    """A restart and a kill break everybody's streams; an overload refuses everybody's work, by 503 if it does not say."""
    site = await sites(OPEN, scenario(f"  - {{server: {step}}}", name="acting"))
    other = await site.run()
    await site.until_head(other["id"], 3)
    stream = site.attach(other["id"], "?after=tail")
    await stream.block()
    run = await site.run({"input": {"scenario": "acting"}})
    if "overload" in step:
        await site.until(lambda: site.engine.overloaded() is not None)
        assert (await site.create()).status == (429 if "429" in step else 503)
        assert (await site.get(f"/v1/runs/{other['id']}")).status == 200, "what is there can be read"
    else:
        assert await stream.blocks() == []
        assert not stream.complete, "broken off, not closed"
    assert (await site.until_settled(run["id"]))["status"] == "completed"


async def test_the_token_that_created_the_run_expires_and_its_principals_others_do_not(sites):
    """Whoever holds another one reads on."""
    acting = scenario("  - {server: expire_tokens}")
    site = await sites(acting, tokens=parse_tokens(["alice one", "alice two"]))
    run = await site.run(None, Authorization="Bearer one")
    assert (await site.until_settled(run["id"], {"Authorization": "Bearer two"}))["status"] == "completed"
    assert (await site.get(f"/v1/runs/{run['id']}", {"Authorization": "Bearer one"})).status == 401


async def test_by_the_virtual_clock_waits_take_no_time_and_are_seen(sites):
    """An hour between two events, by their times; and `every_ms`, `takes_ms` likewise."""
    steps = (
        "  - {say: a b, every_ms: 1000}",
        "  - {tool: t, takes_ms: 2000}",
        "  - {wait_ms: 3600000}",
        "  - {status: x}",
    )
    _, _, events = await played(sites, scenario(*steps))
    began = ms_of(events[0]["time"])
    passed = [(ms_of(event["time"]) - began) / 1000 for event in events[2:]]
    assert passed == [1, 2, 2, 2, 4, 3604, 3604]
