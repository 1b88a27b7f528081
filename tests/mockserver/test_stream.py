"""The event stream: its beginning, its seam, its end, and what keeps it alive."""

import asyncio

import pytest

from mockserver_stage import OPEN, QUICK, quiet
from reattach_mockserver.hooks import Hooks
from reattach_mockserver.scenarios.script import Blob, RawEvent, Repeat, Say, Script, Wait
from reattach_mockserver.settings import Limits

pytestmark = pytest.mark.anyio

LONG = Script(
    name="long", clock="virtual", steps=(Repeat(times=1200, steps=(RawEvent(type="note", data={"n": "{i}"}),)),)
)


async def test_a_stream_begins_with_retry_and_the_attached_frame_in_one_block(sites):
    site = await sites()
    run = await site.settled()
    exchange = site.attach(run["id"])
    status, headers = await exchange.started()
    first = await exchange.block()
    assert status == 200
    assert headers["content-type"] == "text/event-stream"
    assert headers["cache-control"] == "no-store, no-transform"
    assert headers["x-accel-buffering"] == "no"
    assert "content-encoding" not in headers
    assert (first.name, first.retry, first.id) == ("stream.attached", "1000", None)
    assert first.json == {
        "protocol": 1,
        "run_id": run["id"],
        "epoch": run["epoch"],
        "cursor": f"{run['epoch']}.0",
        "cursor_id": None,
        "last_sequence": 7,
        "status": "completed",
        "heartbeat_ms": 15_000,
    }


async def test_a_stream_replays_the_log_and_ends_after_the_settling_event(sites):
    """RS-33: id, name and data of each event, in order; then the response is over."""
    site = await sites()
    run = await site.settled()
    _, *events = await site.follow(run["id"])
    assert [block.id for block in events] == [f"{run['epoch']}.{n}" for n in range(1, 8)]
    assert [block.name for block in events] == [block.json["type"] for block in events]
    assert events[-1].name == "run.completed"


async def test_the_bytes_of_an_event_are_those_of_the_log(sites):
    """RS-04: live, replayed and in a page: one text."""
    site = await sites()
    run = await site.run()
    live = [block.data.encode() for block in (await site.follow(run["id"]))[1:]]
    replay = [block.data.encode() for block in (await site.follow(run["id"]))[1:]]
    log = [event.body for event in await site.engine.log.read(run["id"], 0, 100, 1 << 20)]
    page = (await site.get(f"/v1/runs/{run['id']}/events")).body
    assert live == replay == log
    assert page.startswith(b'{"events":[' + b",".join(log) + b"],")


@pytest.mark.parametrize("after", range(7))
async def test_a_resume_begins_strictly_after_its_cursor(sites, after):
    """RS-12, RS-69, B50: the event at the cursor does not come again, the next one is not skipped; at every position."""
    site = await sites()
    run = await site.settled()
    cursor = f"{run['epoch']}.{after}"
    for blocks in (
        await site.follow(run["id"], f"?after={cursor}"),
        await site.follow(run["id"], Last_Event_ID=cursor),
        await site.follow(run["id"], "?after=garbage", Last_Event_ID=cursor),
    ):
        assert blocks[0].json["cursor"] == cursor
        assert [block.json["sequence"] for block in blocks[1:]] == list(range(after + 1, 8))
        assert blocks[0].json["cursor_id"] == blocks[1].json["prev_id"]


async def test_an_event_between_replay_and_subscription_comes_once_in_order(sites):
    """RS-18, RS-19, B51: published exactly after the log was read and before the reader waits, at every such moment."""
    held: list[int] = []
    site = None

    async def between(run_id: str, sequence: int) -> None:
        held.append(sequence)
        if len(held) <= 5:
            await site.append(run_id, f"between-{len(held)}")

    site = await sites(OPEN, hooks=Hooks(replayed=between))
    run = await site.run()
    await site.until_head(run["id"], 3)
    exchange = site.attach(run["id"])
    seen = [(await exchange.block()).json for _ in range(9)][1:]
    assert [event["sequence"] for event in seen] == list(range(1, 9))
    assert [event["data"].get("name") for event in seen[3:]] == [f"between-{n}" for n in range(1, 6)]
    assert held[0] == 3, "the moment was after the whole log had been read"


async def test_an_event_in_the_gap_wakes_a_long_poll_too(sites):
    """B51: the same moment, on the long poll."""
    site = None

    async def between(run_id: str, sequence: int) -> None:
        if sequence == 3:
            await site.append(run_id, "between")

    site = await sites(OPEN, hooks=Hooks(replayed=between))
    run = await site.run()
    await site.until_head(run["id"], 3)
    answer = await site.get(f"/v1/runs/{run['id']}/events?after={run['epoch']}.3&wait_ms=9000")
    assert [event["data"]["name"] for event in answer.json["events"]] == ["between"]


async def test_no_event_is_lost_or_doubled_under_many_reconnects_in_a_burst(sites):
    """RS-18, RS-19: attach after each event while producers run."""
    site = await sites(OPEN)
    run = await site.run()
    await site.until_head(run["id"], 3)

    async def produce() -> None:
        for number in range(150):
            await site.append(run["id"], f"n{number}")
            await asyncio.sleep(0)

    producing = asyncio.create_task(produce())
    seen: list[int] = []
    while len(seen) < 153:
        after = f"?after={run['epoch']}.{len(seen)}"
        exchange = site.attach(run["id"], after)
        await exchange.block()
        for _ in range(1 + len(seen) % 3):
            if len(seen) < 153:
                seen.append((await exchange.block()).json["sequence"])
        await exchange.close()
    await producing
    assert seen == list(range(1, 154))


async def test_events_are_sent_as_they_are_appended(sites):
    """RS-75: each append reaches a live reader without anything after it."""
    site = await sites(OPEN)
    run = await site.run()
    await site.until_head(run["id"], 3)
    exchange = site.attach(run["id"], "?after=tail")
    assert (await exchange.block()).json["cursor"] == f"{run['epoch']}.3"
    for number in range(4, 10):
        await site.append(run["id"], f"n{number}")
        assert (await exchange.block()).json["sequence"] == number


async def test_a_long_replay_is_whole(sites):
    """RS-13: over all page edges, from several starts."""
    site = await sites(LONG)
    run = await site.settled()
    for after in (0, 31, 32, 33, 543, 544, 545, 1201):
        blocks = await site.follow(run["id"], f"?after={run['epoch']}.{after}")
        assert [block.json["sequence"] for block in blocks[1:]] == list(range(after + 1, 1204))


async def test_ready_events_share_one_send(sites):
    """A replay goes out page-wise: far fewer chunks than events."""
    site = await sites(LONG)
    run = await site.settled()
    exchange = site.attach(run["id"])
    await exchange.rest()
    assert len(exchange.chunks) < 20


async def test_the_tail_of_a_settled_run_is_204(sites):
    site = await sites()
    run = await site.settled()
    end = f"{run['epoch']}.{run['last_sequence']}"
    for answer in (
        await site.get(f"/v1/runs/{run['id']}/events?after=tail", {"Accept": "text/event-stream"}),
        await site.get(f"/v1/runs/{run['id']}/events", {"Accept": "text/event-stream", "Last-Event-ID": end}),
    ):
        assert (answer.status, answer.body) == (204, b"")
        assert answer.headers["cache-control"] == "no-store"
        assert "content-type" not in answer.headers


async def test_earliest_reads_from_the_oldest_kept(sites):
    site = await sites()
    run = await site.settled()
    await site.engine.expire(run["id"], 4)
    blocks = await site.follow(run["id"], "?after=earliest")
    assert [block.json["sequence"] for block in blocks[1:]] == [4, 5, 6, 7]
    assert blocks[0].json["cursor_id"] == blocks[1].json["prev_id"]


async def test_names_off_leaves_the_type_out_of_events_only(sites):
    site = await sites()
    run = await site.settled()
    attached, *events = await site.follow(run["id"], "?names=off")
    assert attached.name == "stream.attached"
    assert {block.name for block in events} == {None}
    assert all(block.id and block.data for block in events)


@pytest.mark.parametrize("kind", ["open", "error"])
async def test_an_event_source_does_not_take_an_event_for_its_own(sites, kind):
    script = Script(name="own", clock="virtual", steps=(RawEvent(type=kind, data={}),))
    site = await sites(script)
    run = await site.settled()
    named = {block.json["type"]: block.name for block in (await site.follow(run["id"]))[1:]}
    assert named[kind] is None
    assert named["run.created"] == "run.created"


@pytest.mark.parametrize(("line_end", "byte"), [("lf", b"\n"), ("crlf", b"\r\n"), ("cr", b"\r")])
async def test_a_script_chooses_the_line_end(sites, line_end, byte):
    """B04: the same blocks under all three line ends; heartbeats too."""
    site = await sites(quiet(line_end=line_end, heartbeat_ms=30))
    run = await site.run()
    await site.until_head(run["id"], 3)
    exchange = site.attach(run["id"])
    body = b""
    while not body.endswith(b": still here" + byte):
        body += await exchange.chunk()
    others = {b"\n": (b"\r",), b"\r\n": (b"\r", b"\n"), b"\r": (b"\n",)}[byte]
    stripped = body.replace(byte, b"")
    assert not any(other in stripped for other in others)
    head, _, rest = body.partition(byte * 2)
    assert head.startswith(b"retry: 1000" + byte + b"event: stream.attached" + byte)
    assert rest.startswith(b"id: " + f"{run['epoch']}.1".encode() + byte)


async def test_a_quiet_stream_beats(sites):
    """RS-76, B18: one comment line, no blank line after it, no id; at two thirds of the stated interval."""
    site = await sites(quiet(heartbeat_ms=60))
    run = await site.run()
    await site.until_head(run["id"], 3)
    exchange = site.attach(run["id"], "?after=tail")
    attached = await exchange.block()
    assert attached.json["heartbeat_ms"] == 60
    clock = asyncio.get_running_loop().time
    began = clock()
    lines = [await exchange.line() for _ in range(4)]
    assert lines == [": still here"] * 4
    assert clock() - began >= 3 * 0.040
    await site.append(run["id"], "after")
    block = await exchange.block()
    assert (block.id, block.comments[:0]) == (f"{run['epoch']}.4", [])


async def test_the_default_heartbeat_is_below_20_s(sites):
    """B18: common proxies cut a quiet connection at 60 s, some at 30."""
    site = await sites()
    assert (await site.get("/.well-known/reattach")).json["limits"]["heartbeat_ms"] < 20_000


async def test_a_planned_close_comes_between_events_and_says_why(sites):
    """RS-49, RS-79: `retry:` and `stream.closing` in one block, the last; a resume goes on."""
    site = await sites(quiet(stream_age_ms=30))
    run = await site.run()
    await site.until_head(run["id"], 3)
    blocks = await site.follow(run["id"])
    assert [block.name for block in blocks[-2:]] == ["note", "stream.closing"]
    assert (blocks[-1].json, blocks[-1].retry, blocks[-1].id) == ({"reason": "max_age"}, "1000", None)
    assert (await site.get(f"/v1/runs/{run['id']}")).json["status"] == "running"


async def test_a_replay_that_trimming_overtakes_is_closed(sites):
    """RS-90: it never goes on at the oldest kept."""
    site = await sites(LONG)
    run = await site.settled()
    exchange = site.attach(run["id"])
    await exchange.started()
    assert (await exchange.block()).name == "stream.attached"
    await site.engine.expire(run["id"], 1_000)
    blocks = await exchange.blocks()
    sequences = [block.json["sequence"] for block in blocks[:-1]]
    assert sequences == list(range(1, len(sequences) + 1))
    assert len(sequences) < 1_000
    assert (blocks[-1].name, blocks[-1].json["reason"]) == ("stream.closing", "cursor_expired")
    assert exchange.complete


async def test_a_new_epoch_closes_the_streams_of_the_old(sites):
    """RS-35: between events, with the reason."""
    site = await sites(OPEN)
    run = await site.run()
    await site.until_head(run["id"], 3)
    exchange = site.attach(run["id"], "?after=tail")
    await exchange.block()
    await site.engine.new_epoch(run["id"])
    last = await exchange.block()
    assert (last.name, last.json) == ("stream.closing", {"reason": "epoch_changed"})
    assert await exchange.block() is None


async def test_a_draining_server_closes_streams_and_refuses_new_ones(sites):
    """RS-64: at a boundary, with a hint; reads by id are still answered."""
    site = await sites(OPEN)
    run = await site.run()
    await site.until_head(run["id"], 3)
    exchange = site.attach(run["id"], "?after=tail")
    await exchange.block()
    site.engine.drain()
    last = await exchange.block()
    assert (last.name, last.json["reason"], last.retry) == ("stream.closing", "draining", "1000")
    refused = await site.get(f"/v1/runs/{run['id']}/events", {"Accept": "text/event-stream"})
    assert (refused.status, refused.code) == (503, "overloaded")
    assert "retry-after" in refused.headers
    assert (await site.get(f"/v1/runs/{run['id']}")).status == 200
    assert (await site.get(f"/v1/runs/{run['id']}/events")).status == 200
    polled = await site.get(f"/v1/runs/{run['id']}/events?after=tail&wait_ms=30000")
    assert polled.json["events"] == [], "at once: a server that goes down holds nobody"


async def test_a_restart_cuts_streams_without_their_end(sites):
    """RS-78: a cut can be told from an end, and the same cursor resumes."""
    site = await sites(OPEN)
    run = await site.run()
    await site.until_head(run["id"], 3)
    exchange = site.attach(run["id"], "?after=tail")
    await exchange.block()
    await site.engine.restart()
    assert await exchange.block() is None
    assert not exchange.complete
    again = site.attach(run["id"], f"?after={run['epoch']}.2")
    assert [(await again.block()).name for _ in range(2)] == ["stream.attached", "note"]


async def test_a_stalled_reader_delays_nobody(sites):
    """RS-23, RS-80: it holds one page; the others, and the run, are done long before it."""
    blobs = Script(name="blobs", clock="virtual", steps=(Repeat(times=40, steps=(Blob(bytes=65_536),)),))
    site = await sites(blobs)
    run = await site.run()
    stalled = site.attach(run["id"])
    await stalled.started()
    blocks = await site.follow(run["id"])
    assert len(blocks) == 1 + 43
    assert (await site.get(f"/v1/runs/{run['id']}")).json["status"] == "completed"
    assert len(await stalled.blocks()) == 44, "nothing was thinned"


async def test_ten_readers_see_the_same(sites):
    """RS-22: readers do not compete."""
    site = await sites()
    run = await site.run()
    seen = await asyncio.gather(*(site.follow(run["id"]) for _ in range(10)))
    bodies = [[block.data for block in blocks[1:]] for blocks in seen]
    assert bodies == [bodies[0]] * 10


async def test_a_reader_that_left_frees_its_place_at_once(sites):
    """Streams per principal: a clear refusal at the limit, a place again as soon as one leaves."""
    site = await sites(OPEN, limits=Limits(streams_per_principal=1))
    run = await site.run()
    first = site.attach(run["id"])
    await first.block()
    refused = await site.get(f"/v1/runs/{run['id']}/events", {"Accept": "text/event-stream"})
    assert (refused.status, refused.code) == (429, "overloaded")
    assert "retry-after" in refused.headers
    await first.close()
    assert site.engine.hub.readers(run["id"]) == 0
    status, _ = await site.attach(run["id"]).started()
    assert status == 200


async def test_head_answers_at_once_and_is_no_subscriber(sites):
    site = await sites(OPEN)
    run = await site.run()
    answer = await site.call("HEAD", f"/v1/runs/{run['id']}/events", {"Accept": "text/event-stream"})
    assert (answer.status, answer.headers["content-type"], answer.body) == (200, "text/event-stream", b"")
    assert site.engine.hub.readers(run["id"]) == 0


async def test_a_run_completes_with_nobody_watching(sites):
    """RS-40."""
    site = await sites(QUICK)
    assert (await site.settled())["status"] == "completed"


async def test_leaving_neither_cancels_nor_repeats_anything(sites):
    """RS-38, RS-39: events are the same with many readers that come and go as with none."""
    site = await sites(QUICK)
    alone = await site.settled()
    run = await site.run()
    for _ in range(5):
        exchange = site.attach(run["id"])
        await exchange.started()
        await exchange.close()
    run = await site.until_settled(run["id"])
    assert (run["last_sequence"], run["status"]) == (alone["last_sequence"], "completed")


async def test_nothing_is_compressed_whatever_is_accepted(sites):
    """B20: compression would hold small writes back, heartbeats too: not on the stream, nor on any other answer."""
    site = await sites(OPEN)
    run = await site.run()
    await site.until_head(run["id"], 3)
    accepting = {"Accept-Encoding": "gzip, br, zstd, *;q=1"}
    exchange = site.attach(run["id"], **{"Accept-Encoding": accepting["Accept-Encoding"]})
    _, headers = await exchange.started()
    assert (await exchange.block()).name == "stream.attached"
    assert "content-encoding" not in headers
    await exchange.close()
    for path in ("", "/events", "/snapshot"):
        answer = await site.get(f"/v1/runs/{run['id']}{path}", accepting)
        assert "content-encoding" not in answer.headers
        assert answer.json


async def test_a_run_whose_only_reader_left_goes_on_to_its_end(sites):
    """RS-39, B47: the reader goes after the first event; the run ends as it would have, and can be read from where it was left."""
    site = await sites(Script(name="s", steps=(RawEvent(type="note"), Wait(ms=30), Say(text="one two"))))
    run = await site.run()
    exchange = site.attach(run["id"])
    assert [(await exchange.block()).name for _ in range(2)] == ["stream.attached", "run.created"]
    await exchange.close()
    assert site.engine.hub.readers(run["id"]) == 0
    assert (await site.until_settled(run["id"]))["status"] == "completed"
    rest = await site.follow(run["id"], f"?after={run['epoch']}.1")
    assert [block.json["sequence"] for block in rest[1:]] == list(range(2, 8))
