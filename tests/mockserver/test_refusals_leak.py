"""What a refusal may say: never a path of the server, a stack trace or a token; and never more than a few lines. Every code."""

import json
import re

import pytest

from mockserver_dialogue import Dialogue
from mockserver_stage import OPEN, QUICK
from reattach_mockserver.bearer import parse_tokens
from reattach_mockserver.faces.problem import CODES
from reattach_mockserver.logs.base import LogUnavailable
from reattach_mockserver.logs.sqlite import SqliteLog
from reattach_mockserver.scenarios.ready import load_ready
from reattach_mockserver.settings import Limits

pytestmark = pytest.mark.anyio

TOKENS = parse_tokens(["alice secret-token-a1", "carol secret-token-c1 none"])
ALICE, CAROL = ({"Authorization": f"Bearer secret-token-{token}"} for token in ("a1", "c1"))
SSE = {"Accept": "text/event-stream"}
LEAKS = re.compile(r"Traceback|File \"|\.py\b|secret-token|sqlite|/tmp|/home|/root|/usr|site-packages|0x[0-9a-f]{6}")
ELSEWHERE = {"idempotency_in_flight", "approval_stale", "request_timeout"}
"""Codes that need a stage of their own (test_create.py, test_continue.py, test_guard.py); their texts are fixed words."""


async def provoked(site, tmp_path):
    """Yield an answer to everything that is refused."""

    async def create(body, **headers):
        return await site.create(body, **{**ALICE, **headers})

    run = (await create({"input": {"scenario": "quick"}})).json
    run = await site.until_settled(run["id"], ALICE)
    other = await site.until_settled((await create({"input": {"scenario": "quick"}})).json["id"], ALICE)
    busy = (await create({"input": {"scenario": "open"}, "session_id": "busy"})).json
    paused = (await create({"input": {"scenario": "approval"}})).json
    paused = await site.until_settled(paused["id"], ALICE)
    actions = [action["id"] for action in paused["required_actions"]]
    approve = [{"action_id": action, "decision": "approve"} for action in actions]
    events = f"/v1/runs/{run['id']}/events"
    yield await site.get("/v1/runs/x")
    yield await site.get("/v1/runs/x", {"Authorization": "Bearer secret-token-wrong"})
    yield await site.get("/v1/runs/x", {"Authorization": "Basic secret-token-wrong"})
    yield await site.get("/v1/runs/x", CAROL)
    yield await site.get("/v1/runs/" + "x" * 5_000, ALICE)
    for cursor in ("abc", "-1", "x" * 3_000, f"{run['epoch']}.99", other["cursor"], "e-1.0"):
        yield await site.get(f"{events}?after={cursor}", {**SSE, **ALICE})
        yield await site.get(f"{events}?after={cursor}", ALICE)
    await site.engine.expire(run["id"], 5)
    yield await site.get(events, ALICE)
    for query in ("limit=0", "wait_ms=" + "9" * 5_000, "limit=1&limit=2", "limit=%ff"):
        yield await site.get(f"{events}?{query}", ALICE)
    yield await site.get(f"{events}?names=secret", {**SSE, **ALICE})
    for path in ("/v1/runs", "/v1/sessions/x", "/v1/operations/x", "/nowhere", "/../../etc/passwd", "/v1/socket"):
        yield await site.get(path, ALICE)
    yield await site.call("DELETE", events, ALICE)
    yield await site.get(events, {"Accept": "image/png", **ALICE})
    yield await site.get(events, {"X": "x" * 40_000, **ALICE})
    yield await site.call("POST", "/v1/runs", ALICE, b"{}")
    for body in (b"{", b"\xff", b'{"a":1,"a":2}', b"[" * 100_000, b'{"input":1e999}', b"x" * 2_000_001, b"[]", b"{}"):
        yield await site.call("POST", "/v1/runs", {"Idempotency-Key": "bad", **ALICE}, body)
    yield await site.call("POST", "/v1/runs", {"Idempotency-Key": "t", "Content-Type": "text/plain", **ALICE}, b"{}")
    yield await site.call("POST", "/v1/runs", {"Idempotency-Key": "k k", **ALICE}, b"{}")
    yield await create({"input": {"scenario": "/etc/passwd" + "x" * 9_000}})
    yield await create({"input": "x", "metadata": {"x": "y" * 60_000}})
    yield await create({"input": "x", "session_id": "../../x"})
    yield await create({"input": "x", "session_id": "busy"})
    await site.create({"input": {"scenario": "quick"}}, key="used", **ALICE)
    yield await site.create({"input": {"scenario": "open"}}, key="used", **ALICE)
    yield await create({"continues": run["id"], "responses": []})
    yield await create({"continues": "\ud800", "responses": []})
    yield await create({"continues": paused["id"], "responses": []})
    yield await create({"continues": paused["id"], "responses": [*approve, {"action_id": "x" * 9_000, "result": 1}]})
    yield await create({"continues": paused["id"], "responses": [{"action_id": "x"}]})
    await create({"continues": paused["id"], "responses": approve})
    yield await create({"continues": paused["id"], "responses": [{**each, "decision": "reject"} for each in approve]})
    expiring = (await create({"input": {"scenario": "approval"}})).json
    expiring = await site.until_settled(expiring["id"], ALICE)
    await site.engine.log.resolve(expiring["id"], "expired", 1)
    answers = [{"action_id": each["id"], "decision": "approve"} for each in expiring["required_actions"]]
    yield await create({"continues": expiring["id"], "responses": answers})
    await site.engine.new_epoch(run["id"])
    yield await site.get(f"{events}?after={run['cursor']}", ALICE)
    log = site.engine.log
    create_in_log, read = log.create, log.read
    log.create = failing(LogUnavailable(f"{tmp_path}/log.db: disk I/O error"))
    yield await create({"input": "x"})
    log.create, log.read = create_in_log, failing(OSError(f"{tmp_path}/log.db"))
    yield await site.get(f"/v1/runs/{busy['id']}/events", ALICE)
    log.read = read


def failing(error):
    async def fail(*_given, **_named):
        raise error

    return fail


async def test_no_refusal_tells_of_the_server_or_of_a_token(sites, tmp_path, caplog):
    """RS-37: every code that there is was provoked; each is a problem of its status, short, and speaks of the request only."""
    scripts = (QUICK, OPEN, load_ready("approval"))
    site = await sites(*scripts, log=SqliteLog(tmp_path / "log.db"), tokens=TOKENS, limits=Limits(event_bytes=50_000))
    codes = []
    async for answer in provoked(site, tmp_path):
        assert answer.status >= 400
        assert not LEAKS.search(answer.body.decode()), answer.body
        assert not LEAKS.search(json.dumps(answer.headers)), answer.headers
        assert len(answer.body) < 12_000, answer.body[:300]
        assert answer.status == CODES[answer.code] or answer.code == "overloaded"
        codes.append(answer.code)
    assert set(codes) == set(CODES) - ELSEWHERE
    assert codes.count("internal") == 1, "where a log fails as none may, and nowhere else"
    assert "secret-token" not in caplog.text, "nor does the operator's log have it"


@pytest.mark.parametrize(
    "text",
    ["{", "[]", '{"type":"start"}', '{"type":"auth","token":"secret-token-wrong"}', '{"type":"resume","run_id":"\\ud800"}',
     '{"type":"start","idempotency_key":"\\ud800","input":"x"}', '{"type":"start","idempotency_key":"k"}',
     '{"type":"resume","run_id":"x","cursor":{"a":1}}', '{"type":"x' + "x" * 9_000 + '"}', "[" * 50_000],
)  # fmt: skip
@pytest.mark.parametrize("headers", [ALICE, {}])
async def test_no_refusal_on_the_socket_tells_of_the_server_or_of_a_token(sites, text, headers, tmp_path, caplog):
    """As by HTTP, with a code that HTTP knows; and the socket is closed."""
    site = await sites(log=SqliteLog(tmp_path / "log.db"), tokens=TOKENS)
    dialogue = await Dialogue(site, headers).opened()
    dialogue.send({"text": text})
    (said,) = await dialogue.messages()
    assert said["code"] in CODES
    assert not LEAKS.search(json.dumps(said))
    assert len(json.dumps(said)) < 2_000
    assert dialogue.code in (1000, 1008, 4400)
    assert caplog.text == ""
