"""What an answer looks like on the wire: its headers, its bytes, whatever is in an event, and how it refuses."""

import json
import re

import pytest

from mockserver_stage import OPEN, QUICK, quiet
from reattach_mockserver.bearer import parse_tokens
from reattach_mockserver.logs.base import LogUnavailable
from reattach_mockserver.logs.memory import MemoryLog
from reattach_mockserver.scenarios.script import Blob, RawEvent, Script
from reattach_mockserver.settings import Limits

pytestmark = pytest.mark.anyio

SSE = {"Accept": "text/event-stream"}
CORPUS = [
    "", "x", " ", "\x00", "\r", "\n", "\r\n", "a\rb\nc\r\n\r\nid: 7\ndata: x", "\u2028\u2029\x85\x0b\x0c\x1c", "\ufeff",
    "é", "漢字", "👩‍👩‍👧‍👦", "\U0010ffff", "\ud800", "\udc00\ud800", "data: x", "\\u2028", '"', "😀" * 50_000, "x" * 1_048_000,
]  # fmt: skip
UNICODE = Script(
    name="unicode", clock="virtual", steps=tuple(RawEvent(type="note", data={"text": text}) for text in CORPUS)
)


async def test_any_text_arrives_as_it_was_live_on_replay_and_in_a_page(sites):
    """RS-72: one byte, a megabyte, all line ends, halves of pairs, four-byte characters, nothing at all: one block each, intact."""
    site = await sites(UNICODE)
    run = await site.run()
    live = await site.follow(run["id"])
    replay = await site.follow(run["id"])
    page = await site.get(f"/v1/runs/{run['id']}/events?limit=1000")
    texts = [block.json["data"]["text"] for block in live if block.name == "note"]
    assert texts == CORPUS
    assert [block.data for block in live[1:]] == [block.data for block in replay[1:]]
    assert [event["data"].get("text") for event in page.json["events"] if event["type"] == "note"] == CORPUS
    log = [event.body for event in await site.engine.log.read(run["id"], 0, 100, 1 << 26)]
    assert [block.data.encode() for block in live[1:]] == log
    assert not any(b"\n" in body or b"\r" in body for body in log)


REFUSED = [
    ("401", {}, "/v1/runs/{id}/events"),
    ("403", {"Authorization": "Bearer e1"}, "/v1/runs/{id}/events"),
    ("404", {"Authorization": "Bearer a1"}, "/v1/runs/none/events"),
    ("400", {"Authorization": "Bearer a1"}, "/v1/runs/{id}/events?after=x"),
    ("400", {"Authorization": "Bearer a1"}, "/v1/runs/{id}/events?names=x"),
    ("400", {"Authorization": "Bearer a1"}, "/v1/runs/{id}/events?after={other}.1"),
    ("410", {"Authorization": "Bearer a1"}, "/v1/runs/{id}/events?after=other.1"),
    ("410", {"Authorization": "Bearer a1"}, "/v1/runs/{id}/events"),
    ("409", {"Authorization": "Bearer a1"}, "/v1/runs/{id}/events?after={e}.99"),
    ("503", {"Authorization": "Bearer a1"}, "/v1/runs/{id}/events"),
]


async def test_a_refused_stream_is_an_error_and_no_stream(sites):
    """RS-37, RS-68, RS-81: never 200, never `text/event-stream`; each situation has a stable code of its own."""
    site = await sites(QUICK, tokens=parse_tokens(["alice a1", "eve e1 none"]))
    alice = {"Authorization": "Bearer a1"}
    run, other = await site.settled(**alice), await site.settled(**alice)
    await site.engine.expire(run["id"], 4)
    codes = []
    for status, headers, path in REFUSED:
        if status == "503":
            site.engine.overload(60_000, 503)
        names = {"id": run["id"], "e": run["epoch"], "other": other["epoch"]}
        answer = await site.get(path.format(**names), {**SSE, **headers})
        assert str(answer.status) == status, path
        assert answer.headers["content-type"] == "application/problem+json"
        codes.append(answer.code)
    assert codes == [
        "unauthenticated", "forbidden", "run_not_found", "cursor_malformed", "invalid_request", "cursor_foreign",
        "epoch_changed", "cursor_expired", "cursor_ahead", "overloaded",
    ]  # fmt: skip


@pytest.mark.parametrize("created", [True, False])
async def test_every_stream_declines_to_be_kept_changed_or_held_back(sites, created):
    """RS-73, RS-74: the stream that a create answers with, live and replayed, and one that resumes: the same headers."""
    site = await sites(OPEN)
    body = {"Idempotency-Key": "k", **SSE}
    if created:
        exchanges = [site.send("POST", "/v1/runs", body, b'{"input":"x"}') for _ in range(2)]
    else:
        run = await site.run()
        await site.until_head(run["id"], 3)
        exchanges = [site.attach(run["id"], query) for query in ("", "?after=tail", f"?after={run['epoch']}.2")]
    for exchange in exchanges:
        status, headers = await exchange.started()
        assert status in (200, 201)
        assert headers["content-type"] == "text/event-stream"
        assert headers["cache-control"] == "no-store, no-transform"
        assert headers["x-accel-buffering"] == "no"
        assert "content-encoding" not in headers
        assert "content-length" not in headers


async def test_no_answer_of_any_face_may_be_kept(sites):
    """RS-73: reads, pages, refusals, 204, 304, a preflight, discovery: all `no-store`."""
    site = await sites(QUICK)
    run = await site.settled({"input": "x", "session_id": "s"})
    tag = (await site.get(f"/v1/runs/{run['id']}")).headers["etag"]
    answers = [
        await site.create(),
        await site.get(f"/v1/runs/{run['id']}"),
        await site.get(f"/v1/runs/{run['id']}", {"If-None-Match": tag}),
        await site.get(f"/v1/runs/{run['id']}/snapshot"),
        await site.get(f"/v1/runs/{run['id']}/events"),
        await site.get(f"/v1/runs/{run['id']}/events?after=tail", SSE),
        await site.get("/v1/sessions/s"),
        await site.get("/v1/sessions/s/runs"),
        await site.get("/v1/runs?idempotency_key=k"),
        await site.get("/v1/operations/none"),
        await site.get("/.well-known/reattach"),
        await site.get("/nowhere"),
        await site.call("POST", f"/v1/runs/{run['id']}/cancel"),
        await site.call("OPTIONS", "/v1/runs"),
        await site.call("HEAD", f"/v1/runs/{run['id']}/events", SSE),
    ]
    assert {answer.status for answer in answers} == {200, 201, 204, 304, 404}
    assert all(answer.headers["cache-control"].startswith("no-store") for answer in answers)


async def test_header_and_parameter_are_each_honoured_and_the_header_wins(sites):
    """RS-69: each alone, in any case of letters, both; only the winner is looked at."""
    site = await sites()
    run = await site.settled()
    two, five = (f"{run['epoch']}.{number}" for number in (2, 5))
    for query, headers, first in [
        (f"?after={two}", {}, 3),
        ("", {"Last-Event-ID": two}, 3),
        ("", {"last-event-id": two}, 3),
        ("", {"LAST-EVENT-ID": two}, 3),
        (f"?after={two}", {"Last-Event-ID": five}, 6),
        ("?after=nonsense", {"Last-Event-ID": five}, 6),
        (f"?after={two}&after={two}", {"Last-Event-ID": five}, 6),
    ]:
        blocks = await site.follow(run["id"], query, **headers)
        assert blocks[1].json["sequence"] == first, (query, headers)
    refused = await site.get(f"/v1/runs/{run['id']}/events?after={two}", {**SSE, "Last-Event-ID": "nonsense"})
    assert refused.code == "cursor_malformed"


async def test_the_pause_before_a_reconnect_is_hinted_in_sane_bounds(sites):
    """RS-77: `retry:` in ms in the first block of every stream, `Retry-After` in seconds in every refusal of load."""
    site = await sites(OPEN, limits=Limits(runs_per_principal=1))
    run = await site.run()
    first = await site.attach(run["id"]).block()
    assert 100 <= int(first.retry) <= 30_000
    site.engine.overload(60_000, 503)
    for answer in (await site.get(f"/v1/runs/{run['id']}/events", SSE), await site.create()):
        assert answer.status in (429, 503)
        assert re.fullmatch(r"[0-9]+", answer.headers["retry-after"])
        assert 1 <= int(answer.headers["retry-after"]) <= 60


@pytest.mark.parametrize("size", [1, 10_000])
async def test_an_event_goes_out_when_it_is_appended_however_small(sites, size):
    """RS-75: nothing comes after it that could push it out of a buffer, and it is there."""
    site = await sites(OPEN)
    run = await site.run()
    await site.until_head(run["id"], 3)
    exchange = site.attach(run["id"], "?after=tail")
    await exchange.block()
    for number in range(4, 8):
        await site.append(run["id"], "x" * size + str(number))
        assert (await exchange.block()).json["sequence"] == number


async def test_a_heartbeat_is_a_comment_without_an_id_and_without_a_blank_line(sites):
    """RS-76, B18, B01: what keeps a quiet stream alive is no event, to nobody; before the first event as well."""
    site = await sites(quiet(heartbeat_ms=30))
    run = await site.run()
    await site.until_head(run["id"], 3)
    exchange = site.attach(run["id"], "?after=tail")
    await exchange.block()
    assert [await exchange.line() for _ in range(3)] == [": still here"] * 3


async def test_a_replay_of_large_events_to_a_slow_reader_is_whole(sites):
    """RS-80: a reader that stands still between two pieces costs a page, is not thinned, and loses nothing."""
    steps = tuple(Blob(bytes=200_000) for _ in range(12))
    site = await sites(Script(name="s", clock="virtual", steps=steps))
    run = await site.settled()
    slow = site.attach(run["id"])
    pieces = []
    while (piece := await slow.chunk()) is not None:
        pieces.append(len(piece))
        assert len(await site.follow(run["id"])) == 1 + run["last_sequence"]
    assert max(pieces) < 600_000, "one page at most is made ready"
    assert sum(pieces) > 12 * 200_000


async def test_the_answer_to_a_create_says_all_that_a_client_needs(sites):
    """RS-14, RS-83: the run with its cursor; and what the server can do is to be read by a machine, without a token."""
    site = await sites(QUICK, tokens=parse_tokens(["alice a1"]))
    made = await site.create(Authorization="Bearer a1")
    assert made.json["cursor"].endswith(f".{made.json['last_sequence']}")
    told = await site.get("/.well-known/reattach")
    assert (told.status, told.headers["content-type"]) == (200, "application/json")
    assert "resumable" in json.loads(told.body)["levels"]


class Away(MemoryLog):
    """A log that cannot be reached while `away`."""

    away = False

    def _reach(self) -> None:
        if self.away:
            raise LogUnavailable("no answer")

    async def run(self, run_id):
        self._reach()
        return await super().run(run_id)

    async def read(self, *args):
        self._reach()
        return await super().read(*args)

    async def by_key(self, *args):
        self._reach()
        return await super().by_key(*args)


async def test_while_the_log_is_away_streams_stay_and_calls_are_told_to_come_again(sites):
    """RS-59, RS-81: a stream is kept alive and goes on with the next event; every call is 503 with a time, and nothing is made."""
    log = Away()
    site = await sites(quiet(heartbeat_ms=30), log=log)
    run = await site.run(key="k")
    await site.until_head(run["id"], 3)
    exchange = site.attach(run["id"], "?after=tail")
    await exchange.block()
    log.away = True
    assert [await exchange.line() for _ in range(3)] == [": still here"] * 3
    for path, form in (("", {}), ("/events", {}), ("/events", SSE), ("/snapshot", {})):
        answer = await site.get(f"/v1/runs/{run['id']}{path}", form)
        assert (answer.status, answer.code) == (503, "overloaded"), path
        assert int(answer.headers["retry-after"]) >= 1
    refused = await site.create(key="other")
    assert (refused.status, refused.code) == (503, "overloaded")
    log.away = False
    await site.append(run["id"], "next")
    assert (await exchange.block()).json["data"]["name"] == "next"
    assert (await site.create(key="k")).json["id"] == run["id"]
    assert (await log.counts()).runs == 1
