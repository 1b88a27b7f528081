"""What the admin interface refuses, and to whom: no call of these changes anything."""

import json

import pytest

from mockserver_admin_stage import Hand
from mockserver_stage import OPEN
from reattach_mockserver.admin.calls import CALLS

pytestmark = pytest.mark.anyio

POSTS = sorted(path for path, methods in CALLS.items() if "POST" in methods)
OF_A_RUN = sorted((method, path) for path, methods in CALLS.items() if "{run_id}" in path for method in methods)
TYPE = {"Content-Type": "application/json"}
BODIES = {"events": {"type": "note"}, "release": {"release": "r2"}}


@pytest.fixture
async def hand(sites):
    site = await sites(OPEN)
    hand = Hand(site)
    hand.run_json = await site.run()
    await site.until_head(hand.run_json["id"], 3)
    return hand


def filled(hand, path):
    return path.replace("{run_id}", hand.run_json["id"])


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"{", "invalid_request"),
        (b"[]", "invalid_request"),
        (b'"x"', "invalid_request"),
        (b"\xff", "invalid_request"),
        (b'{"first": 1, "first": 2}', "invalid_request"),
        (b'{"no_such_member": 1}', "invalid_request"),
        (b"[" * 100_000, "invalid_request"),
        (b'{"x": 1e999}', "invalid_request"),
        (b" " * 1_048_577, "body_too_large"),
    ],
    ids=["broken", "list", "text", "latin", "twice", "unknown", "bomb", "infinite", "huge"],
)
async def test_a_body_that_means_nothing_is_refused(hand, body, code):
    """By every call that takes one, and by name; nothing has happened."""
    before = await hand.ask(f"/runs/{hand.run_json['id']}")
    for path in POSTS:
        answer = await hand.call("POST", filled(hand, path), TYPE, body)
        assert answer.code == code, path
    assert await hand.ask(f"/runs/{hand.run_json['id']}") == before


async def test_a_huge_body_that_says_so_is_not_read(hand):
    answer = await hand.call("POST", "/overload", {**TYPE, "Content-Length": "999999999"}, b"{}")
    assert answer.code == "body_too_large"


@pytest.mark.parametrize(
    ("path", "members"),
    [
        ("/runs/{run_id}/expire", {"first": 0}),
        ("/runs/{run_id}/expire", {"first": 5}),
        ("/runs/{run_id}/expire", {"first": "2"}),
        ("/runs/{run_id}/expire", {"first": True}),
        ("/runs/{run_id}/expire", {"first": 2.5}),
        ("/runs/{run_id}/trim", {}),
        ("/runs/{run_id}/trim", {"keep": -1}),
        ("/runs/{run_id}/trim", {"keep": 4}),
        ("/runs/{run_id}/epoch", {"keep": 0}),
        ("/runs/{run_id}/epoch", {"keep": 4}),
        ("/runs/{run_id}/epoch", {"keep": 10**30}),
        ("/runs/{run_id}/close_streams", {"reason": "because"}),
        ("/close_streams", {"reason": 1}),
        ("/overload", {}),
        ("/overload", {"ms": -1}),
        ("/overload", {"ms": 86_400_001}),
        ("/overload", {"ms": 5, "status": 500}),
        ("/advance", {}),
        ("/advance", {"ms": -1}),
        ("/advance", {"ms": 10**18}),
    ],
)
async def test_a_member_out_of_its_range_is_refused(hand, path, members):
    before = await hand.ask(f"/runs/{hand.run_json['id']}")
    assert (await hand.post(filled(hand, path), members)).code == "invalid_request"
    assert await hand.ask(f"/runs/{hand.run_json['id']}") == before


@pytest.mark.parametrize("run_id", ["run_nothing", "..", "%00", "a" * 5_000, "%f0%9f%99%82"])
async def test_a_run_that_is_unknown_is_refused_by_every_call(hand, run_id):
    for method, path in OF_A_RUN:
        body = json.dumps(BODIES.get(path.rpartition("/")[2], {})).encode()
        answer = await hand.call(method, path.replace("{run_id}", run_id), TYPE, body if method == "POST" else b"")
        assert (answer.status, answer.code) == (404, "run_not_found"), (method, path)


async def test_a_body_that_is_not_json_by_its_type_is_refused(hand):
    """A page from elsewhere can send text/plain without asking first."""
    answer = await hand.call("POST", "/overload", {"Content-Type": "text/plain"}, b'{"ms": 5}')
    assert answer.code == "unsupported_media_type"


async def test_paths_and_methods_that_are_not_there(hand):
    assert (await hand.get("/nothing")).code == "not_found"
    assert (await hand.get("/v1/runs")).code == "not_found"
    answer = await hand.call("DELETE", "/runs")
    assert (answer.code, answer.headers["allow"]) == ("method_not_allowed", "GET, HEAD")
    assert (await hand.call("HEAD", "/counts")).body == b""


@pytest.mark.parametrize(
    "query", ["after=-1", "after=x", "limit=0", "limit=1001", "after=1&after=2", "limit=" + "9" * 30]
)
async def test_a_page_that_cannot_be_is_refused(hand, query):
    for path in ("/runs", f"/runs/{hand.run_json['id']}/events"):
        assert (await hand.get(f"{path}?{query}")).code == "invalid_request"


@pytest.mark.parametrize("host", ["evil.example", "10.0.0.7:8701", "127.0.0.1.evil.example", "", "127.0.0.1, x"])
async def test_without_a_token_only_this_machines_own_names_are_answered(hand, host):
    """A foreign name that leads here is a page's way around the browser's same-origin rule."""
    answer = await hand.call("POST", "/restart", [("Host", host)])
    assert (answer.status, answer.code) == (403, "forbidden")


@pytest.mark.parametrize("host", ["127.0.0.1:1", "localhost", "[::1]:8701", "test.localhost:80"])
async def test_this_machines_own_names_are_answered(hand, host):
    assert (await hand.call("GET", "/counts", [("Host", host)])).status == 200


@pytest.mark.parametrize(
    ("origin", "status"), [("https://evil.example", 403), ("null", 403), ("http://localhost:3000", 200)]
)
async def test_a_page_from_elsewhere_can_do_nothing(hand, origin, status):
    """A post without a body needs no preflight, so it is the Origin that refuses it."""
    assert (await hand.call("POST", "/restart", {"Origin": origin})).status == status
    assert "access-control-allow-origin" not in (await hand.get("/counts")).headers


async def test_with_a_token_nobody_calls_without_it(sites):
    """By any name then, since a foreign page does not have it; a near miss is a miss."""
    hand = Hand(await sites(OPEN), token="s3cret")
    for headers in (
        {},
        {"Authorization": "Bearer s3cre"},
        {"Authorization": "s3cret"},
        {"Authorization": "Basic s3cret"},
    ):
        answer = await hand.get("/counts", headers)
        assert (answer.status, answer.code, answer.headers["www-authenticate"]) == (401, "unauthenticated", "Bearer")
    twice = [("Authorization", "Bearer s3cret"), ("Authorization", "Bearer s3cret")]
    assert (await hand.get("/counts", twice)).status == 401
    good = [("Authorization", "bearer s3cret"), ("Host", "test.example")]
    assert (await hand.get("/counts", good)).status == 200
    assert (await hand.get("/nothing")).status == 401, "nor learns what there is"


async def test_a_fault_inside_tells_nothing_of_itself(sites, caplog):
    """No path, no traceback: those are in the server's log."""
    site = await sites(OPEN)
    hand = Hand(site)
    site.engine.log.counts = lambda: 1 / 0
    answer = await hand.get("/counts")
    assert (answer.status, answer.code) == (500, "internal")
    assert "division" not in answer.body.decode()
    assert "division" in caplog.text


async def test_it_has_no_socket(hand):
    """A WebSocket at its port is closed, not answered by a fault."""
    sent = []

    async def receive():
        return {"type": "websocket.connect"}

    async def send(message):
        sent.append(message)

    await hand.app({"type": "websocket", "path": "/", "headers": []}, receive, send)
    assert [message["type"] for message in sent] == ["websocket.close"]
