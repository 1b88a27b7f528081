"""What surrounds every call: CORS, HEAD, OPTIONS, discovery, being mounted elsewhere."""

import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

from mockserver_stage import OPEN, QUICK, Site, quiet
from reattach_mockserver.app import _PATHS, create_app
from reattach_mockserver.bearer import parse_tokens
from reattach_mockserver.library import Library
from reattach_mockserver.logs.sqlite import SqliteLog
from reattach_mockserver.scenarios.script import Script, Tool
from reattach_mockserver.settings import Limits, Settings

pytestmark = pytest.mark.anyio

ALLOWED = {"authorization", "content-type", "idempotency-key", "if-none-match", "last-event-id"}
EXPOSED = {"etag", "idempotency-replayed", "location", "retry-after"}


def words(text: str) -> set[str]:
    return {word.strip().lower() for word in text.split(",")}


async def test_a_preflight_needs_no_token_and_allows_what_a_resume_needs(sites):
    """RS-82."""
    site = await sites(tokens=parse_tokens(["alice a1"]))
    preflight = {"Origin": "https://shop.example", "Access-Control-Request-Method": "GET",
                 "Access-Control-Request-Headers": "last-event-id, authorization"}  # fmt: skip
    answer = await site.call("OPTIONS", "/v1/runs/x/events", preflight)
    assert answer.status == 204
    assert answer.headers["access-control-allow-origin"] in ("*", "https://shop.example")
    assert words(answer.headers["access-control-allow-headers"]) >= ALLOWED
    assert {"get", "head"} <= words(answer.headers["access-control-allow-methods"])


@pytest.mark.parametrize("path", ["/v1/runs/none", "/nowhere", "/.well-known/reattach"])
async def test_every_answer_may_be_read_across_origins_where_tokens_are_in_use(sites, path):
    site = await sites(tokens=parse_tokens(["alice a1"]))
    answer = await site.get(path, {"Origin": "https://shop.example", "Authorization": "Bearer a1"})
    assert answer.headers["access-control-allow-origin"] in ("*", "https://shop.example")
    assert words(answer.headers["access-control-expose-headers"]) >= EXPOSED


@pytest.mark.parametrize(
    ("origin", "allowed"),
    [
        ("http://localhost:3000", True),
        ("http://127.0.0.1:5173", True),
        ("http://[::1]:8080", True),
        ("http://app.localhost", True),
        ("https://shop.example", False),
        ("http://localhost.evil.example", False),
        ("http://127.0.0.1.evil.example", False),
        ("null", False),
        ("http://[", False),
    ],
)
async def test_without_tokens_only_pages_of_this_machine_may_read(sites, origin, allowed):
    site = await sites()
    run = await site.settled()
    answer = await site.get(f"/v1/runs/{run['id']}/events", {"Origin": origin, "Accept": "text/event-stream"})
    assert (answer.headers.get("access-control-allow-origin") == origin) is allowed
    assert answer.headers["vary"] == "Origin"


@pytest.mark.parametrize("path", sorted(_PATHS))
async def test_options_says_what_a_path_takes_and_nothing_else_is_taken(sites, path):
    site = await sites()
    answer = await site.call("OPTIONS", path)
    taken = set(_PATHS[path]) | {"OPTIONS"} | ({"HEAD"} if "GET" in _PATHS[path] else set())
    assert (answer.status, set(answer.headers["allow"].split(", "))) == (204, taken)
    for method in {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "TRACE"} - taken:
        refused = await site.call(method, path)
        assert (refused.status, set(refused.headers["allow"].split(", "))) == (405, taken)


GETS = sorted(path for path, faces in _PATHS.items() if "GET" in faces)


@pytest.mark.parametrize("path", GETS)
@pytest.mark.parametrize("found", [True, False])
async def test_head_is_get_without_a_body(sites, path, found):
    """On every path that can be read, and where the answer is a refusal: status and headers are those of the GET."""
    site = await sites(QUICK, Script(name="tool", clock="virtual", steps=(Tool(tool="t", operation_id="op"),)))
    run = await site.settled({"input": {"scenario": "tool"}, "session_id": "s"}, key="k")
    names = {"run_id": run["id"], "session_id": "s", "operation_id": "op"}
    path = path.format(**(names if found else dict.fromkeys(names, "none")))
    if path == "/v1/runs":
        path += "?idempotency_key=k" if found else "?idempotency_key=k&idempotency_key=k"
    got = await site.get(path)
    head = await site.call("HEAD", path)
    assert got.status == 200 or not found
    assert (head.status, head.body, head.headers) == (got.status, b"", got.headers)


async def test_a_head_of_a_long_poll_does_not_wait(sites):
    site = await sites(OPEN)
    run = await site.run()
    answer = await site.call("HEAD", f"/v1/runs/{run['id']}/events?after=tail&wait_ms=30000")
    assert (answer.status, answer.body) == (200, b"")


@pytest.mark.parametrize(
    ("accept", "form"),
    [
        (None, "application/json"),
        ("*/*", "application/json"),
        ("application/json", "application/json"),
        ("application/*;q=0.5", "application/json"),
        ("text/event-stream", "text/event-stream"),
        ("Text/Event-Stream", "text/event-stream"),
        ("application/json, text/event-stream", "text/event-stream"),
        ("text/event-stream;q=0.5, application/json;q=0.6", "application/json"),
        ("text/event-stream;q=0.6, application/json;q=0.6", "text/event-stream"),
        ("text/event-stream, */*;q=0.1", "text/event-stream"),
        ("text/event-stream;q=0, */*", "application/json"),
        ("text/html", None),
        ("application/json;q=0", None),
        ("text/event-stream;q=0", None),
    ],
)
async def test_accept_chooses_the_form(sites, accept, form):
    site = await sites()
    run = await site.settled()
    answer = await site.get(f"/v1/runs/{run['id']}/events", {} if accept is None else {"Accept": accept})
    if form is None:
        assert (answer.status, answer.code) == (406, "not_acceptable")
    else:
        assert (answer.status, answer.headers["content-type"]) == (200, form)


@pytest.mark.parametrize(
    ("kind", "status"),
    [("application/json", 201), ("application/json; charset=utf-8", 201), ("application/x+json", 201),
     ("text/plain", 415), ("application/x-www-form-urlencoded", 415)],
)  # fmt: skip
async def test_a_create_takes_json_only(sites, kind, status):
    site = await sites()
    assert (await site.create(Content_Type=kind)).status == status


async def test_discovery_says_what_is_so(sites, tmp_path):
    """RS-83, RS-84: Each claim against what the server does: levels, durability, limits, endpoints."""
    plain = (await (await sites()).get("/.well-known/reattach")).json
    assert (plain["protocol"], plain["durability"], plain["deterministic"]) == (1, "memory", False)
    assert plain["levels"] == ["pollable", "resumable"]
    site = await sites(
        log=SqliteLog(tmp_path / "log.db"), limits=Limits(event_bytes=5_000), tokens=parse_tokens(["alice a1"])
    )
    told = (await site.get("/.well-known/reattach")).json
    assert told["durability"] == "power"
    assert told["levels"] == ["pollable", "resumable", "durable", "effect_safe"]
    assert told["limits"]["event_bytes"] == 5_000
    assert set(told["limits"]) == {
        "heartbeat_ms", "stream_age_ms", "retention_ms", "retention_events", "key_retention_ms", "event_bytes",
        "body_bytes", "streams_per_principal", "runs_per_principal",
    }  # fmt: skip
    assert (told["endpoints"]["operations"], told["endpoints"]["socket"]) == ("/v1/operations", "/v1/socket")
    assert (await site.get(told["endpoints"]["runs"])).status == 401


async def test_the_limits_stated_are_those_of_the_default_scenario_and_of_no_other(sites):
    """A script's limits hold for its own runs; what another one asks for stands in its stream."""
    site = await sites(quiet(heartbeat_ms=7_000), OPEN)
    told = (await site.get("/.well-known/reattach")).json
    assert told["limits"]["heartbeat_ms"] == 7_000
    for name, heartbeat_ms in (("quiet", 7_000), ("open", 15_000)):
        run = await site.run({"input": {"scenario": name}})
        exchange = site.attach(run["id"])
        attached = await exchange.block()
        assert attached.json["heartbeat_ms"] == heartbeat_ms, name
        await exchange.close()


async def test_it_can_be_mounted_in_another_application():
    """Paths in answers are those that a client must write; the engine starts without a lifespan of its own."""
    app = create_app(Settings(scripts=Library({"quick": QUICK}), default="quick"))
    site = Site(app)
    site.app = Starlette(routes=[Mount("/agent", app=app)])
    answer = await site.call("POST", "/agent/v1/runs", {"Idempotency-Key": "k"}, b'{"input":"x"}')
    assert answer.status == 201
    assert answer.headers["location"] == f"/agent/v1/runs/{answer.json['id']}"
    told = (await site.get("/agent/.well-known/reattach")).json
    assert told["endpoints"]["runs"] == "/agent/v1/runs"
    assert (await site.get(answer.headers["location"])).json["id"] == answer.json["id"]
    await site.close()


async def test_its_lifespan_starts_and_stops_the_engine():
    app = create_app(Settings(scripts=Library({"quiet": quiet()}), default="quiet"))
    messages = [{"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}]
    sent = []

    async def receive():
        return messages.pop(0)

    async def send(message):
        sent.append(message["type"])

    await app({"type": "lifespan"}, receive, send)
    assert sent == ["lifespan.startup.complete", "lifespan.shutdown.complete"]
