"""The WebSocket form: the same runs, events, seam and refusals as the other forms (PROTOCOL, section 6)."""

import asyncio
import json

import pytest

from mockserver_dialogue import Dialogue, played, resumed
from mockserver_stage import OPEN, QUICK, quiet
from reattach_mockserver.bearer import parse_tokens
from reattach_mockserver.hooks import Hooks
from reattach_mockserver.scenarios.script import Limits as ScriptLimits
from reattach_mockserver.scenarios.script import Say, Script
from reattach_mockserver.settings import Limits

pytestmark = pytest.mark.anyio

TOKENS = ("alice a1", "alice a2", "bob b1", "carol c1 none")
LONG = Script(name="long", clock="virtual", steps=(Say(text="one two three four five six"),))
ALICE = {"Authorization": "Bearer a1"}


async def bodies(site, run_id):
    return [event.body.decode() for event in await site.engine.log.read(run_id, 0, 1_000, 1 << 24)]


# streaming ------------------------------------------------------------------------------------------------------------


async def test_a_resume_says_where_it_begins_then_sends_what_comes_after_the_cursor_and_closes_with_1000(sites):
    site = await sites()
    run = await site.settled()
    dialogue = await resumed(site, run["id"], f"{run['epoch']}.3")
    texts = []
    while (text := await dialogue.text()) is not None:
        texts.append(text)
    first = json.loads(texts[0])
    log = await bodies(site, run["id"])
    expected = {"type": "resume_ok", "run_id": run["id"], "epoch": run["epoch"], "cursor": f"{run['epoch']}.3",
                "cursor_id": json.loads(log[2])["id"], "last_sequence": 7, "status": "completed"}  # fmt: skip
    assert expected.items() <= first.items()
    events = [json.loads(text) for text in texts[1:]]
    assert [event["cursor"] for event in events] == [f"{run['epoch']}.{number}" for number in (4, 5, 6, 7)]
    assert dialogue.code == 1000
    assert dialogue.subprotocol == "reattach.v1"


async def test_an_event_is_the_same_bytes_as_in_the_log(sites):
    site = await sites()
    run = await site.settled()
    dialogue = await resumed(site, run["id"])
    await dialogue.text()
    for number, body in enumerate(await bodies(site, run["id"]), 1):
        wrapped = f'{{"type":"event","cursor":"{run["epoch"]}.{number}","event":{body}}}'
        assert await dialogue.text() == wrapped


async def test_at_the_end_of_a_settled_run_a_resume_is_answered_and_closed_at_once(sites):
    site = await sites()
    run = await site.settled()
    for cursor in (run["cursor"], "tail"):
        messages, code = await played(site, run["id"], cursor)
        assert [message["type"] for message in messages] == ["resume_ok"]
        assert code == 1000


async def test_what_is_appended_between_replay_and_live_comes_once(sites):
    """The seam, held open by a hook."""
    at_the_seam, go_on = asyncio.Event(), asyncio.Event()

    async def hold(run_id, sequence):
        if not at_the_seam.is_set():
            at_the_seam.set()
            await go_on.wait()

    site = await sites(OPEN, hooks=Hooks(replayed=hold))
    run = await site.run()
    await site.until_head(run["id"], 3)
    dialogue = await resumed(site, run["id"])
    assert [(await dialogue.message())["type"] for _ in range(4)] == ["resume_ok", "event", "event", "event"]
    await at_the_seam.wait()
    await site.append(run["id"], "between")
    go_on.set()
    await site.append(run["id"], "after")
    names = [(await dialogue.message())["event"]["data"]["name"] for _ in range(2)]
    assert names == ["between", "after"]
    dialogue.leave()
    await dialogue.messages()


async def test_a_start_makes_the_run_that_the_same_create_by_http_finds(sites):
    """Key and body are compared over both forms."""
    site = await sites(QUICK)
    dialogue = await Dialogue(site).opened()
    dialogue.say("start", idempotency_key="k1", input={"n": 1.0}, metadata={"a": "b"})
    first, *events = await dialogue.messages()
    assert (first["type"], first["replayed"]) == ("started", False)
    assert first["run"]["status"] in ("queued", "running")
    assert [event["event"]["sequence"] for event in events] == [1, 2, 3, 4, 5, 6, 7]
    assert dialogue.code == 1000
    answer = await site.create({"metadata": {"a": "b"}, "input": {"n": 1}}, key="k1")
    assert (answer.status, answer.json["id"]) == (200, first["run"]["id"])


async def test_a_start_under_a_known_key_is_the_same_run_from_the_beginning(sites):
    site = await sites(QUICK)
    run = (await site.create({"input": "x"}, key="k1")).json
    await site.until_settled(run["id"])
    dialogue = await Dialogue(site).opened()
    dialogue.say("start", idempotency_key="k1", input="x")
    first, *events = await dialogue.messages()
    assert (first["replayed"], first["run"]["id"], len(events)) == (True, run["id"], 7)
    assert (await site.engine.log.counts()).runs == 1


async def test_cancel_on_the_socket_is_the_cancel(sites):
    site = await sites(OPEN)
    run = await site.run()
    dialogue = await resumed(site, run["id"])
    await dialogue.message()
    dialogue.say("applied", cursor=f"{run['epoch']}.1")
    dialogue.say("cancel")
    messages = await dialogue.messages()
    assert messages[-1]["event"]["type"] == "run.cancelled"
    assert dialogue.code == 1000


async def test_pings_keep_to_the_runs_own_heartbeat(sites):
    site = await sites(quiet(heartbeat_ms=30))
    run = await site.run()
    dialogue = await resumed(site, run["id"], "tail")
    assert (await dialogue.message())["heartbeat_ms"] == 30
    reading = asyncio.ensure_future(dialogue.text())
    await site.until(lambda: dialogue.pings >= 3)
    await site.append(run["id"], "note")
    assert "note" in (await reading or "")
    dialogue.leave()
    await dialogue.messages()


async def test_where_the_asgi_server_cannot_ping_a_message_stands_in(sites):
    site = await sites(quiet(heartbeat_ms=30))
    run = await site.run()
    dialogue = await Dialogue(site, extensions=()).opened()
    dialogue.say("resume", run_id=run["id"], cursor="tail")
    assert [(await dialogue.message())["type"] for _ in range(3)] == ["resume_ok", "heartbeat", "heartbeat"]
    dialogue.leave()
    await dialogue.messages()


async def test_a_client_that_leaves_is_no_reader_any_more(sites):
    site = await sites(OPEN)
    run = await site.run()
    dialogue = await resumed(site, run["id"])
    await dialogue.message()
    assert site.engine.hub.readers(run["id"]) == 1
    dialogue.leave()
    await dialogue.messages()
    assert site.engine.hub.readers(run["id"]) == 0


async def test_the_death_of_the_server_closes_without_a_word(sites):
    site = await sites(OPEN)
    run = await site.run()
    dialogue = await resumed(site, run["id"], "tail")
    await dialogue.message()
    await site.engine.restart()
    assert await dialogue.messages() == []
    assert dialogue.code is None


# refusals -------------------------------------------------------------------------------------------------------------


async def hopeless(site, run):
    """Return a cursor, or a run, for each row of the refusals table, by its name."""
    other = await site.settled({"input": "y"}, Authorization="Bearer a1")
    await site.engine.expire(run["id"], 4)
    return {
        "unknown run": ("run_none", None),
        "another's run": ((await site.run({"input": "z"}, Authorization="Bearer b1"))["id"], None),
        "malformed": (run["id"], "nonsense"),
        "empty": (run["id"], ""),
        "foreign": (run["id"], other["cursor"]),
        "epoch": (run["id"], "other-9.1"),
        "expired": (run["id"], f"{run['epoch']}.1"),
        "beginning expired": (run["id"], None),
        "ahead": (run["id"], f"{run['epoch']}.99"),
    }


async def test_a_resume_is_refused_exactly_as_an_attach_is(sites):
    """Same code, status and members in every row."""
    site = await sites(LONG, tokens=parse_tokens(TOKENS))
    run = await site.settled({"input": "x"}, **ALICE)
    for name, (run_id, cursor) in (await hopeless(site, run)).items():
        query = "" if cursor is None else f"?after={cursor}"
        attach = await site.get(f"/v1/runs/{run_id}/events{query}", {"Accept": "text/event-stream", **ALICE})
        (message,), code = await played(site, run_id, cursor, **ALICE)
        assert message.pop("type") == "resume_rejected"
        problem = {member: value for member, value in attach.json.items() if member != "type"}
        assert message == problem, name
        assert code == 1000, name


@pytest.mark.parametrize("run_id", [None, 7, ["x"], "\ud800", ""])
async def test_a_run_that_is_no_text_is_not_found(sites, run_id):
    site = await sites()
    dialogue = await Dialogue(site).opened()
    dialogue.say("resume", run_id=run_id)
    assert [(each["type"], each["code"]) for each in await dialogue.messages()] == [
        ("resume_rejected", "run_not_found")
    ]


@pytest.mark.parametrize("cursor", [7, ["x"], {}, "\ud800", "x" * 500, True])
async def test_a_cursor_that_is_no_cursor_is_malformed(sites, cursor):
    site = await sites()
    run = await site.settled()
    (message,), _ = await played(site, run["id"], cursor)
    assert message["code"] == "cursor_malformed"


async def test_a_server_with_too_much_to_do_says_when_to_come_back(sites):
    site = await sites(OPEN, limits=Limits(streams_per_principal=1))
    run = await site.run()
    first = await resumed(site, run["id"])
    await first.message()
    (message,), code = await played(site, run["id"])
    assert (message["type"], message["code"], message["status"]) == ("resume_rejected", "overloaded", 429)
    assert (message["retry_after_ms"], code) == (1000, 1000)
    dialogue = await Dialogue(site).opened()
    dialogue.say("start", idempotency_key="new", input="x")
    (message,) = await dialogue.messages()
    assert (message["type"], message["code"]) == ("error", "overloaded")
    assert (await site.engine.log.counts()).runs == 1, "refused, and yet created"
    first.leave()
    await first.messages()


@pytest.mark.parametrize(
    ("members", "code"),
    [
        ({"input": "x"}, "idempotency_key_missing"),
        ({"idempotency_key": "", "input": "x"}, "idempotency_key_missing"),
        ({"idempotency_key": "a b", "input": "x"}, "invalid_request"),
        ({"idempotency_key": "ä", "input": "x"}, "invalid_request"),
        ({"idempotency_key": "a\r\nb: c", "input": "x"}, "invalid_request"),
        ({"idempotency_key": 7, "input": "x"}, "invalid_request"),
        ({"idempotency_key": "new"}, "invalid_request"),
        ({"idempotency_key": "used", "input": "other"}, "idempotency_conflict"),
    ],
)
async def test_a_start_that_the_create_would_refuse_is_refused_and_makes_nothing(sites, members, code):
    site = await sites()
    await site.create({"input": "x"}, key="used")
    dialogue = await Dialogue(site).opened()
    dialogue.say("start", **members)
    (message,) = await dialogue.messages()
    assert (message["type"], message["code"], dialogue.code) == ("error", code, 1000)
    assert (await site.engine.log.counts()).runs == 1


# who -----------------------------------------------------------------------------------------------------------------


async def test_the_token_may_come_in_the_first_message_and_a_renewed_one_resumes(sites):
    """A browser cannot set headers; a run belongs to the principal."""
    site = await sites(tokens=parse_tokens(TOKENS))
    run = await site.settled({"input": "x"}, **ALICE)
    dialogue = await Dialogue(site).opened()
    dialogue.say("auth", token="a2")
    dialogue.say("resume", run_id=run["id"], cursor="tail")
    assert [each["type"] for each in await dialogue.messages()] == ["resume_ok"]


@pytest.mark.parametrize(
    ("headers", "first"),
    [
        ({"Authorization": "Bearer wrong"}, None),
        ({"Authorization": "Basic a1"}, None),
        ({}, {"type": "auth", "token": "wrong"}),
        ({}, {"type": "auth", "token": 7}),
        ({}, {"type": "auth", "token": "\ud800"}),
        ({}, {"type": "auth"}),
        ({}, {"type": "resume", "run_id": "x"}),
        ({}, {"type": "start", "idempotency_key": "k", "input": "x"}),
        ({}, None),
    ],
)
async def test_without_a_good_token_nothing_is_said_but_1008(sites, headers, first):
    """The last one says nothing in time."""
    site = await sites(tokens=parse_tokens(TOKENS), hello_wait=0.02 if first is None else 10.0)
    dialogue = await Dialogue(site, headers).opened()
    if first is not None:
        dialogue.send({"text": json.dumps(first)})
    (message,) = await dialogue.messages()
    assert (message["type"], message["code"], dialogue.code) == ("error", "unauthenticated", 1008)


async def test_a_token_without_rights_is_forbidden_whatever_the_run(sites):
    site = await sites(tokens=parse_tokens(TOKENS))
    (message,), code = await played(site, "run_none", **{"Authorization": "Bearer c1"})
    assert (message["type"], message["code"], code) == ("resume_rejected", "forbidden", 1000)


# what makes no sense --------------------------------------------------------------------------------------------------

NONSENSE = [
    {"bytes": b"\x00"},
    {"text": "{"},
    {"text": "[]"},
    {"text": "{}"},
    {"text": '{"type":7}'},
    {"text": '{"type":"resume","type":"resume"}'},
    {"text": '{"type":"dance"}'},
    {"text": "[" * 100_000},
]


@pytest.mark.parametrize("message", NONSENSE)
async def test_a_first_message_that_makes_no_sense_is_4400(sites, message):
    site = await sites()
    dialogue = await Dialogue(site).opened()
    dialogue.send(message)
    (told,) = await dialogue.messages()
    assert (told["type"], told["code"], dialogue.code) == ("error", "invalid_request", 4400)


@pytest.mark.parametrize("message", [*NONSENSE, {"text": '{"type":"resume"}'}, {"text": '{"type":"start"}'}])
async def test_a_later_message_that_makes_no_sense_ends_the_stream_between_two_events(sites, message):
    site = await sites(OPEN)
    run = await site.run()
    dialogue = await resumed(site, run["id"], "tail")
    await dialogue.message()
    dialogue.send(message)
    (told,) = await dialogue.messages()
    assert (told["type"], told["code"], dialogue.code) == ("error", "invalid_request", 4400)
    assert (await site.engine.log.run(run["id"])).status == "running"


@pytest.mark.parametrize("first", ["start", "resume"])
@pytest.mark.parametrize("second", ["start", "resume", "auth"])
async def test_a_second_first_message_is_4400_whichever_of_them_it_is(sites, first, second):
    """One run a socket; the run goes on, and a second `start` has made none."""
    site = await sites(OPEN)
    run = await site.run()
    say = {
        "start": {"idempotency_key": "k1", "input": "x"},
        "resume": {"run_id": run["id"], "cursor": "tail"},
        "auth": {"token": "a1"},
    }
    dialogue = await Dialogue(site).opened()
    dialogue.say(first, **say[first])
    opening = await dialogue.message()
    before = (await site.engine.log.counts()).runs
    dialogue.say(second, **{**say[second], **({"idempotency_key": "k2"} if second == "start" else {})})
    messages = await dialogue.messages()
    assert opening["type"] == {"start": "started", "resume": "resume_ok"}[first]
    assert (messages[-1]["type"], messages[-1]["code"], dialogue.code) == ("error", "invalid_request", 4400)
    assert (await site.engine.log.counts()).runs == before


@pytest.mark.parametrize("first", ["cancel", "applied", "auth"])
async def test_what_may_come_later_may_not_come_first(sites, first):
    """Where a token was given already, or none is needed: `auth` once at most, then what is wanted."""
    site = await sites(OPEN)
    dialogue = await Dialogue(site).opened()
    if first == "auth":
        dialogue.say("auth", token="whatever")
    dialogue.say(first, token="whatever")
    (told,) = await dialogue.messages()
    assert (told["type"], told["code"], dialogue.code) == ("error", "invalid_request", 4400)


async def test_a_cancel_that_is_said_twice_is_one(sites):
    """The second is for a run that settles, or has: ignored, and never what closes the socket."""
    site = await sites(OPEN)
    run = await site.run()
    dialogue = await resumed(site, run["id"])
    await dialogue.message()
    for _ in range(3):
        dialogue.say("cancel")
    messages = await dialogue.messages()
    assert [message["event"]["type"] for message in messages].count("run.cancelled") == 1
    assert (messages[-1]["event"]["type"], dialogue.code) == ("run.cancelled", 1000)


async def test_a_message_that_is_too_big_is_1009(sites):
    site = await sites(limits=Limits(body_bytes=100))
    dialogue = await Dialogue(site).opened()
    dialogue.say("resume", run_id="x" * 100)
    (told,) = await dialogue.messages()
    assert (told["code"], dialogue.code) == ("body_too_large", 1009)


async def test_a_socket_that_says_nothing_is_closed(sites):
    site = await sites(hello_wait=0.02)
    dialogue = await Dialogue(site).opened()
    (told,) = await dialogue.messages()
    assert (told["type"], told["code"], dialogue.code) == ("error", "invalid_request", 4400)


async def test_sockets_that_say_nothing_are_few(sites, monkeypatch):
    monkeypatch.setattr("reattach_mockserver.faces.socket._MOST_WAITING", 1)
    site = await sites()
    silent = await Dialogue(site).opened()
    await site.until(lambda: site.engine.hub.readers("") == 1)
    second = await Dialogue(site).opened()
    (told,) = await second.messages()
    assert (told["code"], second.code) == ("overloaded", 1013)
    silent.leave()
    await silent.messages()


# closing --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["max_age", "draining", "epoch_changed", "cursor_expired", "slow_consumer"])
async def test_a_healthy_socket_is_closed_with_a_reason_and_1001(sites, how):
    at_the_seam, go_on = asyncio.Event(), asyncio.Event()

    async def hold(run_id, sequence):
        at_the_seam.set()
        await go_on.wait()

    script = Script(name="aging", limits=ScriptLimits(stream_age_ms=30), steps=OPEN.steps) if how == "max_age" else OPEN
    site = await sites(script, hooks=Hooks(replayed=hold))
    run = await site.run()
    await site.until_head(run["id"], 3)
    dialogue = await resumed(site, run["id"])
    for _ in range(4):
        await dialogue.message()
    await at_the_seam.wait()
    match how:
        case "draining":
            site.engine.drain()
        case "epoch_changed":
            await site.engine.new_epoch(run["id"])
        case "cursor_expired":
            await site.append(run["id"], "a", "b", "c")
            await site.engine.expire(run["id"], 6)
        case "slow_consumer":
            site.engine.hub.close(how, run["id"])
    go_on.set()
    assert await dialogue.messages() == [{"type": "closing", "reason": how, "retry_ms": 1000}]
    assert dialogue.code == 1001


async def test_a_draining_server_sends_sockets_away_that_have_said_nothing_and_refuses_the_rest(sites):
    site = await sites(OPEN)
    run = await site.run()
    silent = await Dialogue(site).opened()
    await site.until(lambda: site.engine.hub.readers("") == 1)
    site.engine.drain()
    assert [each["reason"] for each in await silent.messages()] == ["draining"]
    assert silent.code == 1001
    (message,), _ = await played(site, run["id"])
    assert message["code"] == "overloaded"


# the upgrade ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("headers", "more", "status", "code"),
    [
        ({"Origin": "https://shop.example"}, {}, 403, "forbidden"),
        ({"Origin": "null"}, {}, 403, "forbidden"),
        ({}, {"subprotocols": ()}, 400, "invalid_request"),
        ({}, {"subprotocols": ("reattach.v2",)}, 400, "invalid_request"),
        ({}, {"path": "/v1/sockets"}, 404, "not_found"),
        ({"X-Long": "x" * 40_000}, {}, 431, "headers_too_large"),
    ],
)
async def test_an_upgrade_that_cannot_be_is_refused_as_http(sites, headers, more, status, code):
    site = await sites()
    answer = await Dialogue(site, headers, **more).denied()
    assert (answer.status, answer.code) == (status, code)


async def test_where_the_asgi_server_cannot_refuse_in_words_it_is_refused_all_the_same(sites):
    site = await sites()
    dialogue = Dialogue(site, {"Origin": "https://shop.example"}, extensions=())
    assert await dialogue.text() is None
    assert dialogue.code is not None


@pytest.mark.parametrize("origin", ["http://localhost:3000", "http://127.0.0.1:5173", "http://[::1]:8080"])
async def test_pages_of_this_machine_may_connect(sites, origin):
    site = await sites()
    await Dialogue(site, {"Origin": origin}).opened()


async def test_where_tokens_are_in_use_any_page_may_connect(sites):
    """It has no token of ours."""
    site = await sites(tokens=parse_tokens(TOKENS))
    await Dialogue(site, {"Origin": "https://shop.example"}).opened()


async def test_discovery_says_where_and_a_plain_call_there_says_what_it_is(sites):
    site = await sites(root_path="/agent")
    endpoints = (await site.get("/.well-known/reattach")).json["endpoints"]
    assert endpoints["socket"] == "/agent/v1/socket"
    answer = await site.get("/v1/socket")
    assert (answer.status, answer.code) == (400, "invalid_request")
    assert await Dialogue(site).opened()
