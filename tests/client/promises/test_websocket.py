"""The promises hold over WebSocket too: against the reference server, on real sockets, in both faces."""

import asyncio
import http.server
import importlib.util
import json
import threading

import anyio
import httpx
import pytest

import reattach
from client_stage import Facts, collected
from mockserver_stage import OPEN, Site
from reattach import Policy, errors
from reattach.profiles import Native
from reattach_mockserver.bearer import digest, parse_tokens
from reattach_mockserver.library import Library
from reattach_mockserver.live import LiveServer
from reattach_mockserver.scenarios.script import Blob, Limits, RawEvent, Say, Script, Wait
from reattach_mockserver.settings import Settings

pytestmark = pytest.mark.anyio

HASTY = Policy(retry_floor=0.01, retry_base=0.01, retry_ceiling=0.05)
STEPPED = Script(name="stepped", steps=(*(RawEvent(type="note", data={"n": n}) for n in range(40)), Wait(ms=3_600_000)))
SHORT = Script(name="short", limits=Limits(stream_age_ms=40), steps=(Say(text="a b c d e f g h", every_ms=30),))
HUGE = Script(name="huge", steps=(Say(text="before", split="whole"), Blob(type="report", bytes=300_000)))


def ws(server: LiveServer) -> str:
    return server.url.replace("http", "ws")


def logged(server: LiveServer, run_id: str) -> list[str]:
    return [json.loads(body)["id"] for body in server.log(run_id)]


def ids(events: list[reattach.Event]) -> list[str]:
    return [event.id for event in events]


@pytest.fixture
def scripts():
    with LiveServer(scripts={each.name: each for each in (STEPPED, SHORT, HUGE, OPEN)}) as server:
        yield server


@pytest.mark.parametrize("how", ["address", "transport"])
async def test_the_address_or_the_transport_says_it_and_the_journal_knows_one_server(face, live, journal, how):
    """Promises 1 to 3. ws is http to the journal: the same key over both is the same run."""
    facts = Facts()
    chosen = {"url": ws(live)} if how == "address" else {"url": live.url, "transport": "websocket"}
    async with face.client(journal=journal, observer=facts, **chosen) as client:
        run = await client.start({"scenario": "words"}, key=f"ws-{face.name}-{how}")
        assert ids(await collected(run)) == logged(live, run.id)
        assert await run.result() == {"ok": True}
    assert facts.count("first_message") == facts.count("attached") == 1
    async with face.client(live.url, journal) as client:
        again = await client.start({"scenario": "words"}, key=f"ws-{face.name}-{how}")
        assert again.id == run.id


def test_it_runs_on_trio_as_well(live, journal):
    """`websockets`' own client does not; its framing without I/O does."""

    async def follow() -> tuple[str, list[str]]:
        async with reattach.AsyncClient(ws(live), journal) as client:
            run = await client.start({"scenario": "words"}, key="ws-trio")
            return run.id, [event.id async for event in run]

    run_id, shown = anyio.run(follow, backend="trio")
    assert shown == logged(live, run_id)


async def test_a_callers_own_client_carries_the_socket_too(live, journal):
    """Its headers and hooks are in force, and it stays the caller's."""
    seen = []

    async def hook(request):
        seen.append(request.headers.get("upgrade"))

    async with httpx.AsyncClient(event_hooks={"request": [hook]}, trust_env=False) as mine:
        async with reattach.AsyncClient(ws(live), journal, http_client=mine) as client:
            run = await client.start({"scenario": "words"}, key="ws-own")
            assert ids([event async for event in run]) == logged(live, run.id)
        assert not mine.is_closed
    assert seen.count("websocket") == 1


async def test_a_socket_that_breaks_is_a_lost_connection_and_said_so(face, scripts, journal):
    """Promise 9, and what an observer can see: the first message and an unclean end of each socket."""
    facts = Facts()
    async with face.client(ws(scripts), journal, policy=HASTY, observer=facts) as client:
        run = await client.start({"scenario": "stepped"}, key="k")
        shown = await collected(run, 10)
        for times in (1, 2):
            scripts.restart()
            await face.until(lambda: facts.count("attached") == times + 1)  # noqa: B023 (awaited here)
            shown += await collected(run, 10)
        assert ids(event for event in shown if not event.redelivered) == logged(scripts, run.id)[: shown[-1].sequence]
    closed = [fact.detail for fact in facts.told if fact.name == "closed"]
    assert all(detail.startswith("1006, unclean: ") for detail in closed[:2]), closed
    assert closed[2:] == ["by us"]
    assert {fact.detail for fact in facts.told if fact.name == "first_message"} == {"resume_ok"}
    assert facts.count("first_message") == 3
    assert scripts.counts.runs == 1


async def test_planned_closes_are_no_failures(face, scripts, journal):
    """Promise 9: `closing` is a jittered wait, never a failure."""
    facts = Facts()
    async with face.client(ws(scripts), journal, policy=HASTY, observer=facts) as client:
        run = await client.start({"scenario": "short"}, key="k")
        assert ids(await collected(run)) == logged(scripts, run.id)
    reasons = {fact.detail for fact in facts.told if fact.name == "waiting"}
    assert reasons == {"the server closed the stream (max_age)"}


@pytest.mark.parametrize("on_gap", ["raise", "snapshot", "continue"])
async def test_a_refused_resume_is_a_gap_and_never_a_start(face, scripts, journal, on_gap):
    """Promises 5 and 8."""
    facts = Facts()
    async with face.client(ws(scripts), journal, policy=HASTY, on_gap=on_gap, observer=facts) as client:
        run = await client.start({"scenario": "open"}, key="k")
        await collected(run, 3)
        await run.detach()
        await face.until(lambda: scripts.readers(run.id) == 0)
        scripts.call(lambda: Site(scripts.app).append(run.id, "a", "b", "c"))
        scripts.expire(run.id, 6)
        if on_gap == "raise":
            with pytest.raises(errors.CursorExpired):
                await collected(client.attach(run.id), 100)
        else:
            events = []
            async for event in client.attach(run.id):
                events.append(event)
                if event.gap is not None:
                    break
            assert events[-1].gap.reason == "expired"
    firsts = [fact.detail for fact in facts.told if fact.name == "first_message"]
    assert firsts[:2] == ["resume_ok", "resume_rejected"]
    assert scripts.counts.runs == 1


async def test_another_epoch_is_found_out(face, scripts, journal):
    """Promise 8."""
    async with face.client(ws(scripts), journal, policy=HASTY) as client:
        run = await client.start({"scenario": "stepped"}, key="k")
        await collected(run, 5)
        scripts.new_epoch(run.id)
        with pytest.raises(errors.EpochChanged):
            await collected(run)
    assert scripts.counts.runs == 1


async def test_a_message_above_the_limit_is_an_error_at_once_and_the_cursor_stays(face, scripts, journal):
    """Promise 12; `Policy.max_event_bytes`. With a higher limit the rest comes, from where it stood."""
    facts = Facts()
    seen: list[reattach.Event] = []
    async with face.client(ws(scripts), journal, policy=Policy(max_event_bytes=100_000), observer=facts) as client:
        run = await client.start({"scenario": "huge"}, key="k")
        with pytest.raises(errors.RemoteProtocolError, match="larger than 100000 bytes"):
            await collected(run, into=seen)
    assert facts.count("attach") == 1
    async with face.client(ws(scripts), journal) as client:
        events = await collected(client.attach(run.id))
        # The small ones before it may have been handed out by the first client, the last of them not confirmed.
        assert list(dict.fromkeys(ids([*seen, *events]))) == logged(scripts, run.id)
        assert [event.type for event in events][-2:] == ["report", "run.completed"]


async def test_the_token_is_asked_for_at_each_attempt_and_once_per_401(face, journal):
    """Promise 9."""
    settings = Settings(
        scripts=Library({"stepped": STEPPED}), default="stepped", tokens=parse_tokens(["alice a1", "alice a2"])
    )
    asked, tokens = [], ["a1"]

    def token():
        asked.append(tokens[0])
        return tokens[0]

    with LiveServer(settings) as server:
        async with face.client(ws(server), journal, policy=HASTY, token=token) as client:
            run = await client.start("x", key="k")
            shown = await collected(run, 10)
            server.call(lambda: server.engine.revoke(digest("a1")))
            tokens[0] = "a2"
            server.restart()
            shown += await collected(run, 10)
            await face.until(lambda: asked.count("a2") >= 2)
            server.call(lambda: server.engine.revoke(digest("a2")))
            server.restart()
            with pytest.raises(errors.NotAuthorized):
                await collected(run)
    assert ids(event for event in shown if not event.redelivered) == ids(shown[:10]) + ids(shown[11:])
    assert {"a1", "a2"} == set(asked)


async def test_where_there_is_no_socket_it_is_an_error_and_nothing_else_is_tried(face, journal, nowhere):
    """Never a silent fall back: no stream is asked for, no second run is made."""
    async with face.client(nowhere.url.replace("http", "ws"), journal, policy=HASTY) as client:
        with pytest.raises(errors.RemoteProtocolError, match="no WebSocket at /v1/socket"):
            await collected(client.attach("run_1"))
    assert {path for path in nowhere.paths if "events" in path} == set()
    assert nowhere.paths.count("/v1/socket") == 3


@pytest.fixture
def nowhere():
    """A server that answers reads, and has no WebSocket."""

    class Server(http.server.ThreadingHTTPServer):
        daemon_threads = True

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.server.paths.append(self.path)
            run = {"id": "run_1", "status": "running", "epoch": "e1", "last_sequence": 3}
            body = json.dumps(run).encode() if self.path == "/v1/runs/run_1" else b"not here"
            self.send_response(200 if self.path == "/v1/runs/run_1" else 404)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args):
            pass

    with Server(("127.0.0.1", 0), Handler) as server:
        server.url = f"http://127.0.0.1:{server.server_address[1]}"
        server.paths = []
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


async def test_without_the_extra_the_install_line_is_named_and_nothing_was_opened(face, journal, monkeypatch):
    """Promise 12."""
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *rest: None if name == "websockets" else find(name))
    for args in ({"url": "ws://127.0.0.1:1"}, {"url": "http://127.0.0.1:1", "transport": "websocket"}):
        with pytest.raises(errors.UsageError, match=r"pip install 'reattach\[ws\]'"):
            async with face.client(journal=journal, **args):
                pass
    assert not journal.exists()
    async with face.client("http://127.0.0.1:1", journal):
        pass


class Streams(Native):
    """A profile that has no WebSocket."""

    name = "streams"
    sockets = None


@pytest.mark.parametrize(
    ("args", "told"),
    [
        ({"url": "ws://h:1", "transport": "sse"}, "asks for WebSocket and transport='sse' for something else"),
        ({"url": "ws://h:1", "profile": Streams()}, "profile='streams' has no WebSocket"),
        ({"url": "http://h:1", "transport": "websocket", "profile": Streams()}, "profile='streams' has no WebSocket"),
        ({"url": "ws://"}, "is no address"),
        ({"url": "ws://u:p@h"}, "give secrets by token="),
    ],
)
async def test_arguments_that_contradict_each_other_are_refused(face, journal, args, told):
    with pytest.raises(errors.UsageError, match=told):
        async with face.client(journal=journal, **args):
            pass


@pytest.mark.parametrize("cycles", [60, pytest.param(1_000, marks=pytest.mark.slow)])
async def test_after_many_cuts_and_cancels_nothing_is_left(face, scripts, tmp_path, cycles):
    """Promise 11."""
    from client.promises.test_leaks import held, read_and_leave

    async with face.client(ws(scripts), tmp_path / "runs.db", policy=HASTY) as client:
        run_id = (await client.start({"scenario": "stepped"}, key="k")).id
        await read_and_leave(face, client, run_id, 0)
        await face.until(lambda: scripts.readers(run_id) == 0)
        tasks, before = len(asyncio.all_tasks()), held()
        for number in range(cycles):
            await read_and_leave(face, client, run_id, number)
            if number % 10 == 9:
                scripts.restart()
        await face.until(lambda: held()[0] <= before[0] + 1)
        await face.until(lambda: scripts.readers(run_id) == 0)
        await face.until(lambda: len(asyncio.all_tasks()) <= tasks)
