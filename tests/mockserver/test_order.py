"""The order of a run's events, and that a resume begins at the right one wherever the connection broke."""

import asyncio

import pytest

from mockserver_stage import OPEN, QUICK
from reattach_mockserver.scenarios.script import Parallel, RawEvent, Say, Script, Tool, Wait

pytestmark = pytest.mark.anyio

SSE = {"Accept": "text/event-stream"}
RACE = Script(
    name="race",
    steps=(
        Parallel(
            branches=tuple(
                (*(RawEvent(type="note", data={"b": b, "n": n}) for n in range(6)), Wait(ms=5 + b), Tool(tool="t"))
                for b in range(4)
            )
        ),
        Say(text="one two three four"),
    ),
)


def whole(body: bytes) -> list[str]:
    """Return the data of the events that came whole."""
    blocks = body.decode(errors="replace").split("\n\n")[:-1]
    texts = [line for block in blocks for line in block.split("\n") if line.startswith("data: ")]
    return [text for text in texts if '"sequence"' in text and '"prev_id"' in text]


async def test_a_run_has_one_order_live_and_ever_after(sites):
    """RS-10, RS-11: producers race; sequences grow on every connection, and what was live is what is replayed, in that order."""
    site = await sites(RACE)
    run = await site.run()
    live = [block.data for block in (await site.follow(run["id"]))[1:]]
    sequences = [block.json["sequence"] for block in (await site.follow(run["id"]))[1:]]
    assert sequences == sorted(set(sequences))
    assert live == [block.data for block in (await site.follow(run["id"]))[1:]]
    page = (await site.get(f"/v1/runs/{run['id']}/events?limit=1000")).json["events"]
    assert [event["sequence"] for event in page] == sequences


async def test_what_a_reader_saw_live_under_parallel_producers_is_the_final_log(sites):
    """RS-21: no sequence becomes visible after a later one; readers that came at any moment saw the same list."""
    site = await sites(OPEN)
    run = await site.run()
    await site.until_head(run["id"], 3)
    readers = []

    async def produce(letter: str) -> None:
        for number in range(20):
            await site.append(run["id"], f"{letter}{number}")
            await asyncio.sleep(0)
            if letter == "a" and number % 5 == 0:
                readers.append(site.attach(run["id"]))

    await asyncio.gather(*(produce(letter) for letter in "abcd"))
    seen = []
    for reader in readers:
        await reader.block()
        seen.append([(await reader.block()).data.encode() for _ in range(83)])
    log = [event.body for event in await site.engine.log.read(run["id"], 0, 1_000, 1 << 24)]
    assert len(readers) == 4
    assert seen == [log] * 4


async def test_without_a_cursor_a_stream_begins_at_the_beginning_as_it_does_when_asked_to(sites):
    """RS-14: absent, and `<epoch>.0`, by header and by parameter: the same answer."""
    site = await sites()
    run = await site.settled()
    beginning = f"{run['epoch']}.0"
    expected = await site.follow(run["id"])
    assert (expected[0].json["cursor"], expected[1].json["sequence"]) == (beginning, 1)
    assert await site.follow(run["id"], f"?after={beginning}") == expected
    assert await site.follow(run["id"], Last_Event_ID=beginning) == expected


async def test_a_reader_can_prove_that_nothing_is_missing(sites):
    """RS-15: on the wire, sequences without holes, and each event names the one before it."""
    site = await sites(RACE)
    run = await site.settled()
    attached, *blocks = await site.follow(run["id"])
    events = [block.json for block in blocks]
    assert [event["sequence"] for event in events] == list(range(1, len(events) + 1))
    assert [event["prev_id"] for event in events] == [
        attached.json["cursor_id"],
        *(event["id"] for event in events[:-1]),
    ]


async def test_cut_at_any_byte_an_event_that_did_not_come_whole_comes_again_whole(sites):
    """RS-12, RS-16: at every byte of a live stream: what came whole and what a resume brings are the log, once."""
    site = await sites(QUICK)
    run = await site.run()
    body = await site.attach(run["id"]).rest()
    log = whole(body)
    rests = [whole(await site.attach(run["id"], f"?after={run['epoch']}.{after}").rest()) for after in range(len(log))]
    for cut in range(len(body)):
        came = whole(body[:cut])
        if len(came) < len(log):
            assert came + rests[len(came)] == log, cut


async def test_an_event_that_was_sent_and_not_taken_is_there_for_the_next_connection(sites):
    """RS-16: the reader leaves while an event is on its way to it; nothing is taken out of the log by sending it."""
    site = await sites(OPEN)
    run = await site.run()
    await site.until_head(run["id"], 3)
    for number in range(4, 10):
        exchange = site.attach(run["id"], f"?after={run['epoch']}.{number - 1}")
        await exchange.started()
        assert (await exchange.block()).name == "stream.attached"
        await site.append(run["id"], f"n{number}")
        await exchange.close()
        again = site.attach(run["id"], f"?after={run['epoch']}.{number - 1}")
        assert [(await again.block()).id for _ in range(2)] == [None, f"{run['epoch']}.{number}"]
        await again.close()


async def test_at_every_position_of_a_run_longer_than_a_page_the_next_event_follows(sites):
    """RS-12, RS-13: none, first, last, settling, the edges of what is read at once: the successor, and nothing before it."""
    notes = tuple(RawEvent(type="note", data={"n": n}) for n in range(600))
    site = await sites(Script(name="notes", clock="virtual", steps=notes))
    run = await site.settled()
    last = run["last_sequence"]
    for after in range(last + 1):
        page = (await site.get(f"/v1/runs/{run['id']}/events?limit=2&after={run['epoch']}.{after}")).json
        assert [event["sequence"] for event in page["events"]] == [n for n in (after + 1, after + 2) if n <= last]
    for after in (0, 1, 31, 32, 33, 63, 64, 65, 511, 512, 513, 543, 544, 545, last - 1):
        blocks = await site.follow(run["id"], f"?after={run['epoch']}.{after}")
        assert [block.json["sequence"] for block in blocks[1:]] == list(range(after + 1, last + 1))


@pytest.mark.parametrize("every", [1, 3])
async def test_however_often_a_connection_breaks_it_gets_on(sites, every):
    """RS-17: cut after so many whole events each time, a run of n is read in n / m connections."""
    site = await sites(RACE)
    run = await site.settled()
    seen: list[int] = []
    connections = 0
    while len(seen) < run["last_sequence"]:
        exchange = site.attach(run["id"], f"?after={run['epoch']}.{len(seen)}")
        connections += 1
        await exchange.block()
        wanted = min(every, run["last_sequence"] - len(seen))
        seen += [(await exchange.block()).json["sequence"] for _ in range(wanted)]
        await exchange.close()
    assert seen == list(range(1, run["last_sequence"] + 1))
    assert connections == -(-run["last_sequence"] // every)


async def test_what_was_seen_live_can_be_read_again_at_once(sites):
    """RS-20: on receipt of each event another stream, a page and a socket's worth of log after the one before begin with it."""
    site = await sites(OPEN)
    run = await site.run()
    await site.until_head(run["id"], 3)
    live = site.attach(run["id"], "?after=tail")
    await live.block()
    for number in range(4, 24):
        await site.append(run["id"], f"n{number}")
        block = await live.block()
        before = f"?after={run['epoch']}.{number - 1}"
        second = site.attach(run["id"], before)
        assert [(await second.block()).data, (await second.block()).data][1] == block.data
        await second.close()
        page = (await site.get(f"/v1/runs/{run['id']}/events{before}")).json
        assert page["events"][0] == block.json


@pytest.mark.parametrize("after", range(2, 6))
async def test_each_piece_of_a_message_has_a_cursor_that_stays_good(sites, after):
    """RS-28: a replay merges nothing, so a resume between two pieces brings the rest of them, as they were live."""
    site = await sites()
    run = await site.run()
    live = [block.data for block in (await site.follow(run["id"]))[1:]]
    blocks = (await site.follow(run["id"], f"?after={run['epoch']}.{after}"))[1:]
    assert [block.data for block in blocks] == live[after:]
    assert sum('"message.delta"' in text for text in live) == 3


async def test_a_cursor_beyond_the_end_is_refused_and_hides_nothing_that_comes_later(sites):
    """RS-30: one ahead and a thousand ahead are refused; what is appended then is read from where the log really was."""
    site = await sites(OPEN)
    run = await site.run()
    await site.until_head(run["id"], 3)
    for beyond in (4, 1_003):
        for form in (SSE, {}):
            answer = await site.get(f"/v1/runs/{run['id']}/events?after={run['epoch']}.{beyond}", form)
            assert (answer.status, answer.code, answer.json["last_sequence"]) == (409, "cursor_ahead", 3)
    await site.append(run["id"], "four", "five")
    page = (await site.get(f"/v1/runs/{run['id']}/events?after={run['epoch']}.3")).json
    assert [event["data"]["name"] for event in page["events"]] == ["four", "five"]
