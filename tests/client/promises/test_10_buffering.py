"""Promises 7 and 10: a path that buffers is found out; events come by long polls, and by a stream once it lets them through."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import pytest

import reattach
from client_stage import Facts, collected, held, in_memory, sequences
from reattach.policy import Policy
from reattach.testing import Beat, Leg

pytestmark = pytest.mark.anyio

TICKS = [Beat(after=20, data={"message_id": "m1", "text": f"{n} "}) for n in range(120)]
STORY = [*TICKS, Beat(after=1, do="end", data="ok")]
HELD = Leg(cut=(0, 40), how="hold")
"""The head passes, and heartbeats; of the blocks nothing that is whole."""
SILENT = Leg(delay=None)
"""Not even the head passes."""


def bys(server) -> list[str]:
    """How each attach was made: "stream", or "pages" of which the first of a connection counts."""
    return [
        "stream" if sent.stream else "pages"
        for sent in server.wire.requests
        if sent.stream or ("/events?" in sent.path and "wait_ms=0" in sent.path)
    ]


@pytest.mark.parametrize("leg", [HELD, SILENT], ids=["body", "head"])
async def test_a_path_that_holds_a_stream_back_gives_way_to_long_polls(face, leg: Leg) -> None:
    """Promise 10: twice connected and nothing came while the status knows more; told once, and nothing is lost or doubled."""
    server, args = in_memory(inline=True, story=STORY, legs=[leg] * 100)
    held(server, args)
    facts = Facts()
    async with face.client(journal=":memory:", **args, observer=facts) as client:
        run = await client.start("work", key="k")
        events = await collected(run)
        assert await run.result() == "ok"
    assert sequences(events) == list(range(1, len(STORY) + 2))
    assert bys(server)[:3] == ["stream", "stream", "pages"]
    assert facts.count("buffered") >= 1
    assert server.wire.most_streams == 1


async def test_the_stream_is_tried_again_and_kept_once_it_is_good(face) -> None:
    """Promise 10: the laptop left that network; after five minutes of long polls the stream is asked again, later each time."""
    server, args = in_memory(inline=True, story=STORY, legs=[HELD, HELD, HELD])
    held(server, args)
    async with face.client(journal=":memory:", **args) as client:
        run = await client.start("work", key="k")
        await collected(run)
        assert await run.result() == "ok"
    made = bys(server)
    assert made[:4] == ["stream", "stream", "pages", "stream"]
    assert made[4:6] == ["pages", "stream"], "once was enough this time"
    assert "pages" not in made[6:]
    tried = [sent.at for sent in server.wire.attaches()]
    assert 300 <= tried[2] - tried[1] <= 420
    assert 600 <= tried[3] - tried[2] <= 800


async def test_one_lost_wake_up_is_no_buffering_path(face) -> None:
    """Promise 10: a server that forgot to send once is asked again by a stream."""
    server, args = in_memory(inline=True, story=STORY[-5:], legs=[HELD])
    held(server, args)
    facts = Facts()
    async with face.client(journal=":memory:", **args, observer=facts) as client:
        await collected(await client.start("work", key="k"))
    assert set(bys(server)) == {"stream"}
    assert facts.count("buffered") == 0


# a real proxy that buffers ------------------------------------------------------------------------------------------------


@asynccontextmanager
async def buffering_proxy(upstream: str) -> AsyncIterator[str]:
    """A small proxy on loopback that hands an answer on when it is whole; it ends what it began. Yields its address."""
    at = urlsplit(upstream)
    serving: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        out: asyncio.StreamWriter | None = None
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            lines = [line for line in head.split(b"\r\n") if not line.lower().startswith(b"connection:")]
            size = next((int(line[15:]) for line in lines if line.lower().startswith(b"content-length:")), 0)
            body = await reader.readexactly(size)
            back, out = await asyncio.open_connection(at.hostname, at.port)
            out.write(b"\r\n".join([lines[0], b"Connection: close", *lines[1:]]) + body)
            gone = asyncio.ensure_future(reader.read(1))
            answer = asyncio.ensure_future(back.read())
            await asyncio.wait({gone, answer}, return_when=asyncio.FIRST_COMPLETED)
            gone.cancel()
            if answer.done():
                writer.write(answer.result())
                await writer.drain()
            answer.cancel()
        except (OSError, asyncio.IncompleteReadError):
            return
        finally:
            for each in (writer, out):
                if each is not None:
                    each.transport.abort() if each is out else each.close()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(serve(reader, writer))
        serving.add(task)
        task.add_done_callback(serving.discard)

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        for task in list(serving):
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)


HASTY = Policy(
    connect_timeout=0.3, poll_interval=0.2, retry_floor=0.01, retry_base=0.02, retry_ceiling=0.05, idle_timeout=3.0
)


async def test_through_a_real_proxy_that_buffers(live, journal) -> None:
    """Promise 10, B20: such a proxy hands a stream on when it ends, which may be in an hour; here the text comes meanwhile."""
    facts = Facts()
    async with (
        buffering_proxy(live.url) as url,
        reattach.AsyncClient(url, journal, policy=HASTY, observer=facts) as client,
    ):
        run = await client.start({"scenario": "slow"}, key="buffered")
        async with asyncio.timeout(20):
            async for event in run:
                if event.text == "three":
                    break
        assert facts.count("buffered") == 1
        await run.cancel()
    assert "attached" in facts.names()


@pytest.mark.parametrize("transport", ["longpoll", "poll"])
async def test_asked_for_by_name_pages_need_no_stream(face, live, journal, transport: str) -> None:
    """Promises 3 and 7: the whole log, once, in order, by either kind of page; the view is the same as by a stream."""
    async with face.client(live.url, ":memory:") as client:
        plain = await client.start({"scenario": "words"}, key=f"pages-{transport}-{face.name}")
        expected = [(event.id, event.data) for event in await collected(plain)]
    facts = Facts()
    policy = Policy(poll_interval=0.05)
    async with face.client(live.url, journal, transport=transport, policy=policy, observer=facts) as client:
        run = client.attach(plain.id)
        assert [(event.id, event.data) for event in await collected(run)] == expected
        assert (await run.wait()).evidence == "event"
        assert (await run.view()).text == (await plain_view(face, live, plain.id)).text


async def plain_view(face, live, run_id: str):
    async with face.client(live.url, ":memory:") as client:
        run = client.attach(run_id)
        await collected(run)
        return await run.view()


@pytest.mark.parametrize("transport", ["longpoll", "poll"])
async def test_a_run_that_is_slow_is_followed_by_pages(face, transport: str) -> None:
    """Promise 9: long polls wait on the server; polls ask for pages only when the status has news."""
    from reattach.profiles import Native

    class Paged(Native):
        ways = (transport,)

    server, args = in_memory(story=STORY)
    async with face.client(journal=":memory:", **args, profile=Paged()) as client:
        run = await client.start("work", key="k")
        events = await collected(run)
    assert sequences(events) == list(range(1, len(STORY) + 2))
    assert server.wire.attaches() == []
    pages = [sent for sent in server.wire.requests if "/events?" in sent.path]
    if transport == "poll":
        assert all("wait_ms=0" in sent.path for sent in pages)
        assert len(pages) <= 2400 / 30 + 2, "one an interval, and only with news"
    else:
        assert [sent.path for sent in pages if "wait_ms=0" in sent.path] == [pages[0].path], "one connection"
