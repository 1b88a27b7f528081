"""Every refusal: its status, its code, what it carries, and the order in which they are found."""

import re

import pytest

from mockserver_stage import OPEN, QUICK, quiet
from reattach_mockserver.bearer import parse_tokens
from reattach_mockserver.faces.problem import CODES
from reattach_mockserver.scenarios.script import ExpireTokens, Script, Wait
from reattach_mockserver.settings import Limits

pytestmark = pytest.mark.anyio

SSE = {"Accept": "text/event-stream"}
TOKENS = parse_tokens(["alice a1", "alice a2", "bob b1", "eve e1 none"])


def bearer(token: str, **more: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}", **more}


@pytest.mark.parametrize("form", [SSE, {}])
@pytest.mark.parametrize(
    "cursor",
    ["abc", "", "{e}.-3", "{e}.01", "{e}.", ".3", "{e}", "{e}.3 ", " {e}.3", "{e}.1e3", "{e}.+3", "{e}.٣",
     "{e}." + "9" * 20, "x" * 65 + ".1", "3", "null", "{e}.3.3", "é.1", "TAIL", "{e}.3%00", "{e}.3%0A"],
)  # fmt: skip
async def test_what_is_no_cursor_is_refused(sites, form, cursor):
    """RS-29, B57: malformed is an answer of its own, never "no cursor"; on the stream and on the page."""
    site = await sites()
    run = await site.settled()
    text = cursor.replace("{e}", run["epoch"]).replace(" ", "%20").replace("+", "%2B")
    answer = await site.get(f"/v1/runs/{run['id']}/events?after={text}", form)
    assert (answer.status, answer.code) == (400, "cursor_malformed")


@pytest.mark.parametrize("cursor", ["", "abc", "tail", "earliest", "-1", "é.1", "1" * 200])
async def test_what_is_no_cursor_in_the_header_is_refused(sites, cursor):
    """RS-29, B57: an empty header is not an absent one, and words are for the parameter only."""
    site = await sites()
    run = await site.settled()
    answer = await site.get(f"/v1/runs/{run['id']}/events?after=tail", {**SSE, "Last-Event-ID": cursor})
    assert (answer.status, answer.code) == (400, "cursor_malformed")


async def test_a_cursor_that_comes_twice_is_malformed(sites):
    site = await sites()
    run = await site.settled()
    good = f"{run['epoch']}.1"
    twice = await site.get(f"/v1/runs/{run['id']}/events?after={good}&after={good}", SSE)
    headers = [("Accept", "text/event-stream"), ("Last-Event-ID", good), ("last-event-id", good)]
    assert twice.code == (await site.get(f"/v1/runs/{run['id']}/events", headers)).code == "cursor_malformed"


@pytest.mark.parametrize("form", [SSE, {}])
@pytest.mark.parametrize("sequence", [8, 1_007, 2**63 - 1, 2**63, 10**19 - 1])
async def test_a_cursor_beyond_the_end_is_ahead(sites, form, sequence):
    """RS-30, B57: up to 2^63 and beyond; it says where the log ends, and later events are not hidden from anybody."""
    site = await sites()
    run = await site.settled()
    answer = await site.get(f"/v1/runs/{run['id']}/events?after={run['epoch']}.{sequence}", form)
    assert (answer.status, answer.code, answer.json["last_sequence"]) == (409, "cursor_ahead", 7)


@pytest.mark.parametrize("form", [SSE, {}])
async def test_a_cursor_of_another_run_is_foreign(sites, form):
    """RS-07, B56, B57: refused, without any data."""
    site = await sites()
    mine, other = await site.settled(), await site.settled()
    answer = await site.get(f"/v1/runs/{mine['id']}/events?after={other['cursor']}", form)
    assert (answer.status, answer.code) == (400, "cursor_foreign")
    assert other["id"] not in answer.body.decode()


async def test_another_principals_cursor_says_nothing_of_its_run(sites):
    """B56: it is as strange as one that nobody ever had."""
    site = await sites(tokens=TOKENS)
    alices = await site.settled(**bearer("a1"))
    bobs = await site.settled(**bearer("b1"))
    for cursor in (alices["cursor"], "0" * 20 + "-1.3"):
        answer = await site.get(f"/v1/runs/{bobs['id']}/events?after={cursor}", {**SSE, **bearer("b1")})
        assert (answer.status, answer.code) == (410, "epoch_changed")


@pytest.mark.parametrize("path", ["", "/events", "/snapshot", "/events?after=nonsense", "/events?limit=0"])
async def test_another_principals_run_is_as_absent_as_none(sites, path):
    """B56, RS-65: the two answers differ in the id that was asked for and in nothing else."""
    site = await sites(tokens=TOKENS)
    alices = await site.settled(**bearer("a1"))
    unknown = "run_" + "0" * 20
    theirs = await site.get(f"/v1/runs/{alices['id']}{path}", bearer("b1"))
    none = await site.get(f"/v1/runs/{unknown}{path}", bearer("b1"))
    assert (theirs.status, theirs.code) == (404, "run_not_found")
    assert theirs.body.replace(alices["id"].encode(), unknown.encode()) == none.body
    cancelled = await site.call("POST", f"/v1/runs/{alices['id']}/cancel", bearer("b1"))
    assert cancelled.code == "run_not_found"


async def test_a_run_of_another_servers_log_is_refused_not_an_empty_stream(sites):
    """B87: two servers with a log each: the second one does not know the run, and says so on every face."""
    first, second = await sites(OPEN), await sites(OPEN)
    run = await first.run()
    for path, form in (("/events", SSE), ("/events?after=tail", SSE), ("/events", {}), ("/snapshot", {}), ("", {})):
        answer = await second.get(f"/v1/runs/{run['id']}{path}", form)
        assert (answer.status, answer.code) == (404, "run_not_found")
    assert (await second.engine.log.counts()).runs == 0


async def test_another_epoch_is_refused_with_the_way_out(sites):
    """RS-35."""
    site = await sites(root_path="/agent")
    run = await site.settled()
    renewed = await site.engine.new_epoch(run["id"])
    answer = await site.get(f"/v1/runs/{run['id']}/events?after={run['epoch']}.3", SSE)
    assert (answer.status, answer.code) == (410, "epoch_changed")
    assert answer.json["epoch"] == renewed.epoch
    assert answer.json["snapshot"] == f"/agent/v1/runs/{run['id']}/snapshot"


async def test_a_log_that_lost_its_tail_is_told_by_its_epoch(sites):
    """RS-87, B63: the old cursor is within the new log's range, and is refused all the same."""
    site = await sites(OPEN)
    run = await site.run()
    await site.until_head(run["id"], 3)
    await site.append(run["id"], "four", "five")
    await site.engine.new_epoch(run["id"], keep=2)
    await site.until_head(run["id"], 3)
    await site.append(run["id"], *"abcdefg")
    answer = await site.get(f"/v1/runs/{run['id']}/events?after={run['epoch']}.5", SSE)
    assert (answer.status, answer.code) == (410, "epoch_changed")


@pytest.mark.parametrize("asked", ["?after={e}.0", "?after={e}.2", ""])
@pytest.mark.parametrize("form", [SSE, {}])
async def test_an_expired_cursor_is_refused_with_what_is_kept(sites, form, asked):
    """RS-31, B13, B65: 410 with oldest, newest and the way out; asking for the beginning is asking for what is gone."""
    site = await sites()
    run = await site.settled()
    await site.engine.expire(run["id"], 4)
    answer = await site.get(f"/v1/runs/{run['id']}/events{asked.replace('{e}', run['epoch'])}", form)
    assert (answer.status, answer.code) == (410, "cursor_expired")
    assert (answer.json["first_sequence"], answer.json["last_sequence"]) == (4, 7)
    assert answer.json["snapshot"] == f"/v1/runs/{run['id']}/snapshot"


async def test_a_ring_of_two_refuses_the_cursor_of_the_first_of_three(sites):
    """RS-31, B65: the exact report: never a silent jump to the oldest kept; the last good cursor is first - 1."""
    site = await sites(quiet(retention_events=2))
    run = await site.run()
    await site.until_head(run["id"], 3)
    await site.append(run["id"], "four")
    refused = await site.get(f"/v1/runs/{run['id']}/events?after={run['epoch']}.1", SSE)
    assert (refused.status, refused.code, refused.json["first_sequence"]) == (410, "cursor_expired", 3)
    answer = await site.get(f"/v1/runs/{run['id']}/events?after={run['epoch']}.2")
    assert [event["sequence"] for event in answer.json["events"]] == [3, 4]
    assert answer.json["cursor_id"] == answer.json["events"][0]["prev_id"]


@pytest.mark.parametrize("authorization", [None, "", "Bearer", "Bearer nobody", "Basic a1", "a1", "Bearer a1 x"])
async def test_without_a_good_token_every_call_is_401(sites, authorization):
    """RS-65."""
    site = await sites(tokens=TOKENS)
    headers = {} if authorization is None else {"Authorization": authorization}
    for method, path in [
        ("GET", "/v1/runs/x"), ("GET", "/v1/runs/x/events"), ("GET", "/v1/runs/x/snapshot"), ("GET", "/v1/sessions/x"),
        ("GET", "/v1/sessions/x/runs"), ("GET", "/v1/runs?idempotency_key=k"), ("POST", "/v1/runs"),
        ("POST", "/v1/runs/x/cancel"), ("GET", "/v1/operations/x"),
    ]:  # fmt: skip
        answer = await site.call(method, path, headers)
        assert (answer.status, answer.code) == (401, "unauthenticated"), path
        assert answer.headers["www-authenticate"] == "Bearer"


async def test_a_token_without_rights_is_forbidden_whatever_the_id(sites):
    site = await sites(tokens=TOKENS)
    run = await site.settled(**bearer("a1"))
    for run_id in (run["id"], "nonsense"):
        answer = await site.get(f"/v1/runs/{run_id}", bearer("e1"))
        assert (answer.status, answer.code) == (403, "forbidden")
    assert (await site.create(**bearer("e1"))).code == "forbidden"


async def test_a_renewed_token_resumes(sites):
    """RS-66: the run belongs to the principal; the token that made it can expire."""
    site = await sites(Script(name="s", steps=(ExpireTokens(), Wait(ms=3_600_000))), tokens=TOKENS)
    run = await site.run(**bearer("a1"))
    await site.until_head(run["id"], 2)
    await site.until(lambda: site.engine.revoked)
    assert (await site.get(f"/v1/runs/{run['id']}", bearer("a1"))).code == "unauthenticated"
    blocks = site.attach(run["id"], f"?after={run['epoch']}.1", **bearer("a2"))
    assert [(await blocks.block()).name for _ in range(2)] == ["stream.attached", "run.started"]
    await site.engine.restart()
    assert (await site.get(f"/v1/runs/{run['id']}", bearer("a1"))).code == "unauthenticated"


async def test_an_overloaded_server_says_so_on_attaches_and_creates(sites):
    """RS-81."""
    site = await sites(OPEN)
    run = await site.run()
    site.engine.overload(60_000, 429)
    attach = await site.get(f"/v1/runs/{run['id']}/events", SSE)
    assert (attach.status, attach.code) == (429, "overloaded")
    assert int(attach.headers["retry-after"]) >= 1
    assert (await site.create()).status == 429
    assert (await site.get(f"/v1/runs/{run['id']}")).status == 200


async def test_refusals_come_in_the_order_of_the_table(sites):
    """Each call below has all the faults of those after it; the first in the table answers."""
    site = await sites(tokens=TOKENS, limits=Limits(header_bytes=400, body_bytes=20))
    run = await site.settled(**bearer("a1"))
    expired, busy = f"/v1/runs/{run['id']}/events", {"Accept": "application/xml"}
    long_body, big = b"x" * 21, {"Content-Length": "21"}
    site.engine.overload(60_000, 503)
    answers = [
        await site.call("PUT", "/nowhere", {"X": "x" * 400}),
        await site.call("PUT", "/nowhere"),
        await site.call("PUT", "/v1/runs", big, long_body),
        await site.call("POST", "/v1/runs", big, long_body),
        await site.call("POST", "/v1/runs", {"Content-Type": "text/plain"}),
        await site.call("POST", "/v1/runs", {"Content-Type": "text/plain", **bearer("e1")}),
        await site.call("POST", "/v1/runs", {"Content-Type": "text/plain", **busy, **bearer("a1")}),
        await site.call("POST", "/v1/runs", {**busy, **bearer("a1")}),
        await site.call("POST", "/v1/runs", bearer("a1"), long_body),
        await site.call("POST", "/v1/runs", bearer("a1", **{"Idempotency-Key": "k"}), long_body),
        await site.call("POST", "/v1/runs", bearer("a1", **{"Idempotency-Key": "k"}), b"{"),
        await site.call("POST", "/v1/runs", bearer("a1", **{"Idempotency-Key": "k"}), b"{}"),
        await site.get("/v1/runs/none/events", {**busy, **bearer("a1")}),
        await site.get("/v1/runs/none/events?names=7", {**SSE, **bearer("a1")}),
        await site.get("/v1/runs/none/events?limit=0&after=x", bearer("a1")),
        await site.get(expired + "?limit=0&after=x", bearer("a1")),
        await site.get(expired + "?after=x", bearer("a1")),
    ]
    assert [answer.code for answer in answers] == [
        "headers_too_large", "not_found", "method_not_allowed", "body_too_large", "unauthenticated", "forbidden",
        "unsupported_media_type", "not_acceptable", "idempotency_key_missing", "body_too_large", "invalid_request",
        "overloaded", "not_acceptable", "overloaded", "run_not_found", "invalid_request", "cursor_malformed",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "query",
    ["limit=0", "limit=1001", "limit=", "limit=x", "limit=1.5", "limit=-1", "limit=1&limit=1", "wait_ms=-1",
     "wait_ms=x", "limit=" + "9" * 400],
)  # fmt: skip
async def test_a_bad_parameter_of_a_page_is_refused(sites, query):
    site = await sites()
    run = await site.settled()
    answer = await site.get(f"/v1/runs/{run['id']}/events?{query}")
    assert (answer.status, answer.code) == (400, "invalid_request")


async def test_an_unknown_method_is_told_what_is_allowed(sites):
    site = await sites()
    answer = await site.call("DELETE", "/v1/runs")
    assert (answer.status, answer.code) == (405, "method_not_allowed")
    assert answer.headers["allow"] == "GET, HEAD, OPTIONS, POST"


@pytest.mark.parametrize("path", ["/", "/v1", "/v1/", "/v1/runs/", "/v1/runs/x/", "/v1/runs/x/events/y", "/v2/runs"])
async def test_an_unknown_path_is_not_found_with_and_without_a_token(sites, path):
    site = await sites(tokens=TOKENS)
    assert (await site.get(path)).code == "not_found"
    assert (await site.get(path, bearer("a1"))).code == "not_found"


async def test_a_failed_resume_creates_nothing(sites):
    """RS-36: an unknown run stays unknown."""
    site = await sites()
    await site.get("/v1/runs/run_1/events", SSE)
    await site.get("/v1/sessions/s/runs")
    assert (await site.engine.log.counts()).runs == 0
    assert (await site.get("/v1/sessions/s")).code == "session_not_found"


async def test_every_refusal_is_a_problem_and_is_not_stored(sites):
    site = await sites()
    answer = await site.get("/v1/runs/none")
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.headers["cache-control"] == "no-store"
    assert set(answer.json) >= {"type", "title", "status", "code", "detail"}


async def test_an_error_inside_is_500_and_tells_nothing(sites, monkeypatch, caplog):
    site = await sites()
    monkeypatch.setattr(site.engine.log, "by_key", lambda *_: 1 / 0)
    answer = await site.create()
    assert (answer.status, answer.code) == (500, "internal")
    assert "division" not in answer.body.decode()
    assert "division" in caplog.text, "the operator's log has it"


def test_codes_are_stable_words():
    assert all(re.fullmatch(r"[a-z_]+", code) for code in CODES)


async def test_the_streams_limit_is_looked_at_before_the_run(sites):
    site = await sites(QUICK, limits=Limits(streams_per_principal=0))
    assert (await site.get("/v1/runs/none/events", SSE)).code == "overloaded"
