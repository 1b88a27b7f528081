"""`POST /v1/runs`: once, whatever happens to the answer."""

import asyncio
import json

import pytest

from mockserver_stage import OPEN, QUICK
from reattach_mockserver.logs.sqlite import SqliteLog
from reattach_mockserver.scenarios.script import Action, Ask, Script
from reattach_mockserver.settings import Limits

pytestmark = pytest.mark.anyio

PAUSES = Script(name="pauses", clock="virtual", steps=(Ask(actions=(Action(id="act_1", tool="restart"),)),))


async def test_a_create_answers_201_with_the_run_and_its_place(sites):
    site = await sites()
    answer = await site.create({"input": "x", "metadata": {"team": "a"}})
    run = answer.json
    assert answer.status == 201
    assert answer.headers["location"] == f"/v1/runs/{run['id']}"
    assert (run["status"], run["last_sequence"], run["first_sequence"]) == ("queued", 1, 1)
    assert run["metadata"] == {"team": "a"}
    assert run["cursor"] == f"{run['epoch']}.1"
    assert (await site.get(answer.headers["location"])).json["id"] == run["id"]


async def test_the_same_key_and_body_is_the_same_run(sites):
    """RS-41, B43: in sequence, past completion, with `Idempotency-Replayed` and 200."""
    site = await sites()
    first = await site.create(key="k")
    await site.until_settled(first.json["id"])
    again = await site.create(key="k")
    assert again.status == 200
    assert again.headers["idempotency-replayed"] == "true"
    assert again.headers["location"] == first.headers["location"]
    assert again.json["id"] == first.json["id"]
    assert (await site.engine.log.counts()).runs == 1
    assert "idempotency-replayed" not in first.headers


async def test_the_same_key_at_the_same_time_is_one_run(sites):
    """RS-42, B43: twenty creates in parallel, one run, one 201."""
    site = await sites(OPEN)
    answers = await asyncio.gather(*(site.create(key="k") for _ in range(20)))
    assert sorted(answer.status for answer in answers) == [200] * 19 + [201]
    assert len({answer.json["id"] for answer in answers}) == 1
    assert (await site.engine.log.counts()).runs == 1


async def test_a_key_outlives_the_process(sites, tmp_path):
    """RS-44, B43, B44: another process on the same log finds the run of the key."""
    first = await sites(log=SqliteLog(tmp_path / "log.db"))
    made = await first.create(key="k")
    await first.close()
    second = await sites(log=SqliteLog(tmp_path / "log.db"))
    again = await second.create(key="k")
    assert (again.status, again.json["id"]) == (200, made.json["id"])


async def test_a_body_is_compared_as_a_value(sites):
    """RFC 8785: order, spacing, escapes and the way a number is written do not count."""
    site = await sites(OPEN)
    headers = {"Idempotency-Key": "k"}
    first = await site.call("POST", "/v1/runs", headers, b'{"input":{"a":1,"b":"\xc3\xa9"},"metadata":{"n":100}}')
    same = await site.call("POST", "/v1/runs", headers, b' {"metadata":{"n":1e2}, "input":{"b":"\\u00e9", "a":1.0}} ')
    assert (first.status, same.status) == (201, 200)


@pytest.mark.parametrize(
    "other", [{"input": "y"}, {"input": "x", "on_active": "reject"}, {"input": "x", "session_id": None}]
)
async def test_the_same_key_with_another_body_is_a_conflict(sites, other):
    """RS-43: Absent and default are different."""
    site = await sites()
    await site.create({"input": "x"}, key="k")
    answer = await site.create(other, key="k")
    assert (answer.status, answer.code) == (422, "idempotency_conflict")
    assert (await site.engine.log.counts()).runs == 1


async def test_an_unknown_member_counts_as_part_of_the_body(sites):
    site = await sites()
    await site.create({"input": "x", "later": 1}, key="k")
    assert (await site.create({"input": "x", "later": 2}, key="k")).code == "idempotency_conflict"


async def test_the_key_is_found_before_anything_else_can_refuse(sites):
    """RS-88, B44: at the limit of runs, in a busy session, in a drained and in an overloaded server."""
    site = await sites(OPEN, limits=Limits(runs_per_principal=1))
    body = {"input": "x", "session_id": "s", "on_active": "cancel"}
    made = await site.create(body, key="k")
    site.engine.overload(60_000, 503)
    site.engine.drain()
    again = await site.create(body, key="k")
    assert (again.status, again.json["id"]) == (200, made.json["id"])
    assert (await site.get(f"/v1/runs/{made.json['id']}")).json["status"] in ("queued", "running")
    assert (await site.create(body, key="other")).code == "overloaded"


async def test_a_known_key_with_an_invalid_body_is_a_conflict_not_invalid(sites):
    """The key is looked up before validation."""
    site = await sites()
    await site.create(key="k")
    assert (await site.create({"input": None}, key="k")).code == "idempotency_conflict"
    assert (await site.create({"input": None}, key="k2")).code == "invalid_request"


async def test_a_refused_create_does_not_use_up_its_key(sites):
    site = await sites()
    assert (await site.create({"input": "x", "on_active": "never"}, key="k")).code == "invalid_request"
    assert (await site.create({"input": "x"}, key="k")).status == 201


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ([], "idempotency_key_missing"),
        ([("Idempotency-Key", "")], "idempotency_key_missing"),
        ([("Idempotency-Key", "a b")], "invalid_request"),
        ([("Idempotency-Key", "é")], "invalid_request"),
        ([("Idempotency-Key", "k" * 256)], "invalid_request"),
        ([("Idempotency-Key", "a"), ("Idempotency-Key", "a")], "invalid_request"),
    ],
)
async def test_a_key_is_one_header_of_visible_characters(sites, headers, code):
    site = await sites()
    answer = await site.call("POST", "/v1/runs", headers, b'{"input":"x"}')
    assert (answer.status, answer.code) == (400, code)


async def test_a_key_is_compared_byte_for_byte(sites):
    site = await sites()
    assert (await site.create(key="Key")).status == 201
    assert (await site.create(key="key")).status == 201
    assert (await site.create(key="k" * 255)).status == 201


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'"text"',
        b"{}",
        b'{"input":"x","input":"x"}',
        b'{"input":{"a":1,"a":1}}',
        b'{"input":NaN}',
        b'{"input":1e999}',
        b'{"input":"\xff"}',
        b'\xef\xbb\xbf{"input":"x"}',
        b'{"input":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"input":' + b"9" * 5_000 + b"}",
        b'{"input":"x","session_id":7}',
        b'{"input":"x","session_id":"a b"}',
        b'{"input":"x","metadata":[]}',
        b'{"input":{"scenario":"no such"}}',
        b'{"input":{"scenario":7}}',
        b'{"input":"x","continues":7}',
        b'{"input":"x","responses":[]}',
    ],
)
async def test_what_is_no_create_is_refused_and_creates_nothing(sites, body):
    site = await sites()
    answer = await site.call("POST", "/v1/runs", {"Idempotency-Key": "k"}, body)
    assert (answer.status, answer.code) == (400, "invalid_request")
    assert (await site.engine.log.counts()).runs == 0


async def test_a_named_scenario_is_played(sites):
    site = await sites(OPEN, QUICK)
    run = await site.settled({"input": {"scenario": "quick"}})
    assert (run["status"], run["last_sequence"]) == ("completed", 7)


async def test_ready_scenarios_can_be_named(sites):
    site = await sites(OPEN)
    assert (await site.create({"input": {"scenario": "hello"}})).status == 201


async def test_a_busy_session_refuses_and_names_its_run(sites):
    site = await sites(OPEN)
    first = await site.run({"input": "x", "session_id": "s"})
    answer = await site.create({"input": "x", "session_id": "s"})
    assert (answer.status, answer.code, answer.json["run_id"]) == (409, "session_busy", first["id"])
    assert first["session_id"] == "s"


async def test_on_active_cancel_supersedes(sites):
    """The old run has its settling event before the new one is created."""
    site = await sites(OPEN)
    first = await site.run({"input": "x", "session_id": "s"})
    second = await site.run({"input": "x", "session_id": "s", "on_active": "cancel"})
    blocks = await site.follow(first["id"])
    assert blocks[-1].json["type"] == "run.cancelled"
    assert blocks[-1].json["data"]["reason"] == "superseded"
    assert blocks[-1].json["time"] <= second["created_at"]
    assert second["session_id"] == "s"


async def test_who_saw_the_settling_event_finds_the_session_free(sites):
    """RS-91: a create sent on receipt of the last block is taken."""
    site = await sites(QUICK)
    for number in range(10):
        run = await site.run({"input": number, "session_id": "s"})
        await site.follow(run["id"])


async def test_a_new_run_lets_the_actions_of_a_paused_one_lapse(sites):
    site = await sites(PAUSES)
    paused = await site.settled({"input": "x", "session_id": "s"})
    before = await site.get(f"/v1/runs/{paused['id']}")
    assert (paused["status"], paused["required_actions"][0]["resolution"]) == ("requires_action", None)
    await site.run({"input": "y", "session_id": "s"})
    after = await site.get(f"/v1/runs/{paused['id']}")
    assert after.json["required_actions"][0]["resolution"] == "lapsed"
    assert after.headers["etag"] != before.headers["etag"]


async def test_the_limit_on_runs_is_a_clear_refusal(sites):
    site = await sites(OPEN, limits=Limits(runs_per_principal=1))
    await site.run()
    answer = await site.create()
    assert (answer.status, answer.code) == (429, "overloaded")
    assert int(answer.headers["retry-after"]) >= 1


async def test_a_create_may_ask_for_the_stream_itself(sites):
    """For curl: 201 and Location as ever, the body is the stream from the beginning."""
    site = await sites()
    headers = {"Idempotency-Key": "k", "Accept": "text/event-stream"}
    exchange = site.send("POST", "/v1/runs", headers, b'{"input":"x"}')
    status, received = await exchange.started()
    blocks = await exchange.blocks()
    assert (status, received["content-type"]) == (201, "text/event-stream")
    assert received["location"] == f"/v1/runs/{blocks[0].json['run_id']}"
    assert [block.json["sequence"] for block in blocks[1:]] == [1, 2, 3, 4, 5, 6, 7]


async def test_a_create_that_asks_for_the_stream_is_an_attach_too(sites):
    """Under a known key it is refused where an attach would be; by JSON the same create is answered, and nothing is made anew."""
    site = await sites(OPEN, limits=Limits(streams_per_principal=1))
    made = await site.create(key="k")
    held = site.attach(made.json["id"])
    await held.started()
    refused = await site.create(key="k", Accept="text/event-stream")
    assert (refused.status, refused.code) == (429, "overloaded")
    await held.close()
    site.engine.drain()
    refused = await site.create(key="k", Accept="text/event-stream")
    assert (refused.status, refused.code) == (503, "overloaded")
    assert (await site.create(key="k")).json["id"] == made.json["id"]
    assert (await site.engine.log.counts()).runs == 1


async def test_a_create_cut_at_any_byte_has_made_one_run(sites):
    """RS-41, B42: a stream that is the answer to a POST, broken off after each byte and sent again: one run, one play."""
    site = await sites()
    headers = {"Idempotency-Key": "k", "Accept": "text/event-stream"}
    whole = site.send("POST", "/v1/runs", headers, b'{"input":"x"}')
    full = len(await whole.rest())
    for length in range(0, full, 7):
        exchange = site.send("POST", "/v1/runs", headers, b'{"input":"x"}')
        status, _ = await exchange.started()
        read = b""
        while len(read) < length and (piece := await exchange.chunk()) is not None:
            read += piece
        await exchange.close()
        assert status == 200
    assert (await site.engine.log.counts()).runs == 1
    assert (await site.engine.log.counts()).events == 7


async def test_a_client_that_leaves_during_its_body_has_created_nothing(sites):
    site = await sites()
    exchange = site.send("POST", "/v1/runs", {"Idempotency-Key": "k"})
    exchange._sent = [{"type": "http.request", "body": b'{"input"', "more_body": True}, {"type": "http.disconnect"}]
    await exchange.rest()
    await asyncio.gather(exchange.task, return_exceptions=True)
    assert (await site.engine.log.counts()).runs == 0


async def test_the_in_flight_create_of_a_key_is_waited_for(sites):
    """The second create of a key answers with the first one's run, however long that takes."""
    site = await sites(OPEN)
    first = await site.run({"input": "x", "session_id": "s"})
    body = json.dumps({"input": "y", "session_id": "s", "on_active": "cancel"}).encode()
    pair = await asyncio.gather(*(site.call("POST", "/v1/runs", {"Idempotency-Key": "k"}, body) for _ in range(2)))
    assert sorted(answer.status for answer in pair) == [200, 201]
    assert len({answer.json["id"] for answer in pair} | {first["id"]}) == 2


async def test_a_create_in_flight_is_not_waited_for_for_ever(sites):
    """409 with `Retry-After`, and the key is not used up by it."""
    site = await sites(in_flight_wait=0.01)
    async with site.engine.turns.turn("anyone", "k", 1):
        answer = await site.create(key="k")
    assert (answer.status, answer.code) == (409, "idempotency_in_flight")
    assert int(answer.headers["retry-after"]) >= 1
    assert (await site.create(key="k")).status == 201


@pytest.mark.parametrize("depth", [500, 900, 100_000])
async def test_a_body_nested_beyond_sense_is_refused_or_kept_never_an_accident(sites, depth):
    """Between what the parser could read and what the digest could walk lay 500 `internal`."""
    site = await sites()
    body = b'{"input":' + b"[" * depth + b"]" * depth + b"}"
    answer = await site.call("POST", "/v1/runs", {"Idempotency-Key": "k"}, body)
    assert (answer.status, answer.json.get("code")) in [(201, None), (400, "invalid_request")]
    assert (await site.engine.log.counts()).runs == (answer.status == 201)
