"""Section 8 of the protocol: each limit is a setting, holds at its number, and refuses clearly beyond it."""

import json

import pytest

from mockserver_stage import OPEN, QUICK
from reattach_mockserver.bearer import parse_tokens
from reattach_mockserver.scenarios.script import Blob, RawEvent, Script, Wait
from reattach_mockserver.settings import Limits

pytestmark = pytest.mark.anyio

ALICE, BOB = {"Authorization": "Bearer a1"}, {"Authorization": "Bearer b1"}
OTHER_ALICE = {"Authorization": "Bearer a2"}
TOKENS = parse_tokens(["alice a1", "alice a2", "bob b1"])
SSE = {"Accept": "text/event-stream"}


@pytest.mark.parametrize(("more", "status"), [(0, 201), (1, 413)])
@pytest.mark.parametrize("declared", [True, False])
async def test_a_body_may_have_as_many_bytes_as_the_limit_says(sites, more, status, declared):
    """Counted as they come, where `Content-Length` does not say so before; nothing is created beyond it."""
    site = await sites(limits=Limits(body_bytes=100))
    body = b'{"input":"' + b"x" * (100 + more - 12) + b'"}'
    headers = {"Idempotency-Key": "k", **({"Content-Length": str(len(body))} if declared else {})}
    answer = await site.call("POST", "/v1/runs", headers, body)
    assert (answer.status, answer.json.get("code")) == (status, None if status == 201 else "body_too_large")
    assert (await site.engine.log.counts()).runs == (status == 201)


async def test_a_body_that_goes_on_for_ever_is_refused_at_the_limit(sites):
    """Not read to its end first: a client that never stops sending costs no more than the limit."""
    site = await sites(limits=Limits(body_bytes=100))
    exchange = site.send("POST", "/v1/runs", {"Idempotency-Key": "k"})
    exchange._sent = [{"type": "http.request", "body": b"x" * 60, "more_body": True}] * 1_000
    status, _ = await exchange.started()
    assert (status, json.loads(await exchange.rest())["code"]) == (413, "body_too_large")
    assert len(exchange._sent) == 998


@pytest.mark.parametrize(("more", "status"), [(0, 200), (1, 431)])
async def test_headers_may_have_as_many_bytes_as_the_limit_says(sites, more, status):
    """The path, and names and values of all of them; 32 KiB unless set otherwise."""
    assert Limits().header_bytes == 32 * 1024
    site = await sites(limits=Limits(header_bytes=1_000))
    run = await site.settled()
    path = f"/v1/runs/{run['id']}"
    answer = await site.get(path, {"x-a": "x" * 500, "x-b": "x" * (494 - len(path) + more)})
    assert answer.status == status


@pytest.mark.parametrize(("more", "outcome"), [(0, "completed"), (1, "failed")])
async def test_an_event_may_have_as_many_bytes_as_the_limit_says(sites, more, outcome):
    """Of its data; the default is 1 MiB. Beyond it the run fails by an event that says so, and keeps what it had."""
    assert Limits().event_bytes == 1024 * 1024
    size = 1_000 - len('{"text":""}') + more
    script = Script(name="s", clock="virtual", steps=(RawEvent(type="note"), Blob(bytes=size), RawEvent(type="note")))
    site = await sites(script, limits=Limits(event_bytes=1_000))
    run = await site.settled()
    kinds = [event["type"] for event in (await site.get(f"/v1/runs/{run['id']}/events")).json["events"]]
    assert run["status"] == outcome
    assert kinds[2:] == (["note", "run.failed"] if more else ["note", "blob", "note", "run.completed"])


async def test_metadata_that_would_be_too_large_an_event_is_refused(sites):
    """The create's own event cannot fail a run that is not there yet: 413, the key unused."""
    site = await sites(limits=Limits(event_bytes=1_000))
    answer = await site.create({"input": "x", "metadata": {"x": "y" * 1_000}}, key="k")
    assert (answer.status, answer.code) == (413, "event_too_large")
    assert (await site.engine.log.counts()).runs == 0
    assert (await site.create({"input": "x"}, key="k")).status == 201


async def test_open_streams_are_counted_for_each_principal(sites):
    """By principal, not by token; another's are not touched, pages and long polls are not streams."""
    site = await sites(OPEN, limits=Limits(streams_per_principal=2), tokens=TOKENS)
    mine, theirs = await site.run(**ALICE), await site.run(**BOB)
    path = f"/v1/runs/{mine['id']}/events"
    held = [site.attach(mine["id"], **headers) for headers in (ALICE, OTHER_ALICE)]
    for exchange in held:
        await exchange.started()
    refused = await site.get(path, {**SSE, **ALICE})
    assert (refused.status, refused.code) == (429, "overloaded")
    assert int(refused.headers["retry-after"]) >= 1
    assert (await site.get(path, ALICE)).status == 200
    other = site.attach(theirs["id"], **BOB)
    assert (await other.started())[0] == 200
    await held[0].close()
    again = site.attach(mine["id"], **ALICE)
    assert (await again.started())[0] == 200


async def test_unsettled_runs_are_counted_for_each_principal(sites):
    """A run that has settled makes room; another principal's never took any."""
    site = await sites(OPEN, limits=Limits(runs_per_principal=1), tokens=TOKENS)
    mine = await site.run(**ALICE)
    refused = await site.create(**OTHER_ALICE)
    assert (refused.status, refused.code) == (429, "overloaded")
    await site.run(**BOB)
    await site.call("POST", f"/v1/runs/{mine['id']}/cancel", ALICE)
    await site.until_settled(mine["id"], ALICE)
    assert (await site.create(**ALICE)).status == 201


async def test_a_create_that_supersedes_is_not_one_run_more(sites):
    """At the limit, in the session of the run that it cancels."""
    site = await sites(OPEN, limits=Limits(runs_per_principal=1))
    await site.run({"input": "x", "session_id": "s"})
    second = await site.create({"input": "y", "session_id": "s", "on_active": "cancel"})
    assert second.status == 201
    assert (await site.create({"input": "z", "session_id": "other", "on_active": "cancel"})).code == "overloaded"


async def test_no_limit_is_none_in_discovery_and_in_deed(sites):
    """RS-84: null there, and nothing is refused here."""
    site = await sites(OPEN, limits=Limits(streams_per_principal=None, runs_per_principal=None))
    told = (await site.get("/.well-known/reattach")).json["limits"]
    assert (told["streams_per_principal"], told["runs_per_principal"], told["retention_events"]) == (None, None, None)
    runs = [await site.run() for _ in range(20)]
    opened = [site.attach(run["id"]) for run in runs]
    assert {(await exchange.started())[0] for exchange in opened} == {200}


async def test_a_stated_retention_is_kept(sites):
    """RS-32: the last so many events are always there; what is before them is refused, not skipped."""
    script = Script(name="s", clock="virtual", steps=(*(RawEvent(type="note") for _ in range(30)), Wait(ms=1)))
    site = await sites(script, limits=Limits(retention_events=10))
    stated = (await site.get("/.well-known/reattach")).json["limits"]["retention_events"]
    run = await site.settled()
    inside, outside = (f"{run['epoch']}.{run['last_sequence'] - count}" for count in (stated, stated + 1))
    kept = await site.get(f"/v1/runs/{run['id']}/events?after={inside}")
    assert len(kept.json["events"]) == stated == 10
    assert (await site.get(f"/v1/runs/{run['id']}/events?after={outside}")).code == "cursor_expired"


async def test_a_key_is_remembered_as_long_as_its_run(sites):
    """RS-44: `key_retention_ms` null: however late, and when the run's events are long gone."""
    clock = [1_000_000_000_000]
    site = await sites(QUICK, now=lambda: clock[0], limits=Limits(retention_ms=1_000))
    assert (await site.get("/.well-known/reattach")).json["limits"]["key_retention_ms"] is None
    made = await site.create(key="k")
    await site.until_settled(made.json["id"])
    clock[0] += 365 * 24 * 3_600_000
    again = await site.create(key="k")
    assert (again.status, again.json["id"]) == (200, made.json["id"])
    assert (await site.get(f"/v1/runs/{made.json['id']}")).json["first_sequence"] == 8
