"""Promise 9: polite for ever. What is not in test_reports.py (B10, B11, B24, B26, B27, B30, B32): in virtual time, both faces."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from email.utils import format_datetime
from itertools import pairwise

import anyio
import pytest

from client_stage import Facts, collected, held, in_memory, sequences
from reattach import Policy, errors
from reattach.profiles import Native
from reattach.runtime.calls import Calls, Limit
from reattach.testing import Beat, InlineWriter, Leg, Seams, Trip, VirtualClock, Wire, frames, told
from reattach.testing.answers import CallAnswer, as_stream
from reattach.testing.clock import BEGIN
from reattach.testing.memory_server import URL
from reattach.transports.base import Request
from reattach.transports.http import HttpWire

pytestmark = pytest.mark.anyio

ENDS = [Beat(after=1, do="end", data="ok")]


def gaps_between(server) -> list[float]:
    return [after.at - before.at for before, after in pairwise(server.wire.attaches())]


def ended_at(facts: Facts) -> float:
    """When the subscription failed, in seconds since the clock began."""
    (failed,) = [fact for fact in facts.told if fact.name == "failed"]
    return (failed.at - BEGIN).total_seconds()


@pytest.mark.parametrize("code", ["unauthenticated", None])
async def test_a_stream_that_refuses_every_token_ends_although_the_status_is_well(face, code: str | None) -> None:
    """Promise 9: the second 401 of the stream without an attach between is NotAuthorized; the run is untouched."""
    server, args = in_memory(legs=[Leg(refuse=401, code=code)] * 50)
    asked: list[int] = []

    def token() -> str:
        asked.append(len(server.wire.attaches()))
        return f"token-{len(asked)}"

    async with face.client(journal=":memory:", **args, token=token) as client:
        run = await client.start("work", key="k")
        with pytest.raises(errors.NotAuthorized):
            await collected(run)
    first, second = (sent.headers["authorization"] for sent in server.wire.attaches())
    assert first != second, "it was asked for again in between"


async def test_one_401_is_an_old_token(face) -> None:
    """Promise 9, B32: asked for at each attempt; after an attach the next 401 is the first again."""
    cut = Leg(cut=(2, 0), how="reset")
    server, args = in_memory(
        story=[Beat(after=5), Beat(after=5), *ENDS],
        legs=[Leg(refuse=401), Leg(cut=(3, 0), how="reset"), Leg(refuse=401), cut, Leg(refuse=401)],
    )
    async with face.client(journal=":memory:", **args, token=lambda: "t") as client:
        assert sequences(await collected(await client.start("work", key="k"))) == [1, 2, 3, 4]
    assert len(server.wire.attaches()) >= 5


async def test_a_run_that_the_stream_does_not_know_ends_although_the_status_does(face) -> None:
    """Promise 9: the same kind of fault as a 401: the second 404 of the stream is an answer."""
    server, args = in_memory(legs=[Leg(refuse=404, code="run_not_found")] * 50)
    async with face.client(journal=":memory:", **args) as client:
        run = await client.start("work", key="k")
        with pytest.raises(errors.NotFound):
            await collected(run)
    assert len(server.wire.attaches()) == 2


@pytest.mark.parametrize("wish", ["seconds", "date", "milliseconds"])
async def test_retry_after_is_a_floor_in_each_of_its_forms(face, wish: str) -> None:
    """Promise 9: also above the ceiling of thirty seconds, for the stream and for the status."""
    clock = VirtualClock(autojump=True)
    wire = Wire(clock=clock)
    until = format_datetime(BEGIN + timedelta(seconds=90), usegmt=True)
    headers = {
        "seconds": {"retry-after": "90"},
        "date": {"retry-after": until, "date": format_datetime(BEGIN, usegmt=True)},
        "milliseconds": {"retry-after": "1", "retry-after-ms": "90000"},
    }[wish]
    wire.on_call("POST", "/v1/runs", told(frames.run_json(), 201))
    wire.on_call("GET", "/v1/runs/run_1", told(frames.run_json(last=1)))
    wire.expect_attach(None, as_stream(CallAnswer(status=429, headers=headers)))
    wire.expect_attach(None).send(frames.attached(), frames.event(1), frames.end(2)).fin()
    async with face.client(URL, ":memory:", transport=wire, _seams=Seams(clock=lambda: clock)) as client:
        await collected(await client.start("work", key="k"))
    first, second = wire.attaches()
    assert 90.0 <= second.at - first.at <= 91.0


async def test_a_retry_after_beyond_the_budget_ends_it_at_once(face) -> None:
    """Promise 9: nobody waits for an hour that was not given."""
    server, args = in_memory(legs=[Leg(refuse=503, retry_after=3600)])
    facts = Facts()
    held(server, args)
    async with face.client(journal=":memory:", **args, observer=facts) as client:
        run = await client.start("work", key="k")
        with pytest.raises(errors.ReconnectExhausted, match="3600"):
            await collected(run)
    assert ended_at(facts) < 60
    assert len(server.wire.attaches()) == 1


@pytest.mark.parametrize("ask", ["status", "cancel", "operation", "session_runs"])
async def test_a_question_is_not_kept_waiting_for_an_hour_by_a_retry_after(face, ask: str) -> None:
    """Promise 9: who asks and waits is told at once, and how long the server wants; a wait within the budget is kept."""
    slow = [Trip(refuse=503, retry_after=3600)]
    quick = [Trip(refuse=503, retry_after=100)]
    _, args = in_memory(story=[Beat(after=1e9)], statuses=[*slow, *quick], cancels=[*slow, *quick], inline=True)
    clock = args["_seams"].clock()
    async with face.client(journal=":memory:", **args) as client:
        run = await client.start("work", key="k")
        asked = {
            "status": run.status,
            "cancel": lambda: run.cancel(timeout=1e6),
            "operation": lambda: client.operation("op"),
            "session_runs": lambda: client.session_runs("s"),
        }[ask]
        with pytest.raises(errors.AttachError, match=r"\(1 attempt, last: .*, asking to wait 3600 s\)"):
            await asked()
        began = clock.now()
        with suppress(errors.NotFound):
            await asked()
        assert clock.now() - began >= 100


async def test_at_once_only_after_a_connection_that_brought_something(face) -> None:
    """Promise 9: its unannounced loss; the next one, which brought nothing, waits."""
    server, args = in_memory(
        story=[Beat(), Beat(), Beat(after=30, do="end")],
        legs=[Leg(cut=(3, 0), how="reset"), Leg(cut=(1, 0), how="reset")],
    )
    async with face.client(journal=":memory:", **args) as client:
        await collected(await client.start("work", key="k"))
    first, second = gaps_between(server)[:2]
    assert first == 0.0
    assert second >= 0.25


async def test_a_server_that_opens_and_brings_nothing_is_asked_at_the_pace_of_the_poll(face) -> None:
    """Promise 9: ten attaches at one cursor: a notice, then one a poll interval."""
    server, args = in_memory(inline=True, story=[Beat(after=900, do="end")], legs=[Leg(cut=(1, 0), how="fin")] * 25)
    held(server, args)
    facts = Facts()
    async with face.client(journal=":memory:", **args, observer=facts) as client:
        await collected(await client.start("work", key="k"))
    waits = gaps_between(server)
    assert all(wait >= 30.0 for wait in waits[10:24])
    assert facts.count("fast_loop") == 1


async def test_a_status_read_is_one_request_and_two_repeats(face) -> None:
    """Promise 9: then the poll asks again, and not sooner than the server wants."""
    server, args = in_memory(
        story=[Beat(after=800, do="end")], statuses=[Trip(), *[Trip(refuse=503, retry_after=100.0)] * 3]
    )
    held(server, args)
    async with face.client(journal=":memory:", **args) as client:
        await collected(await client.start("work", key="k"))
    at = [sent.at for sent in server.wire.calls("GET", "/v1/runs/run_1")]
    assert len(at) >= 5
    assert all(after - before >= 100.0 for before, after in pairwise(at[1:5]))


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_is_never_followed(face, status: int) -> None:
    """Promise 9: neither a token nor a cursor goes to another origin; it is told as what it is."""
    clock = VirtualClock(autojump=True)
    wire = Wire(clock=clock)
    wire.on_call("POST", "/v1/runs", told(frames.run_json(), 201))
    wire.on_call("GET", "/v1/runs/run_1", told(frames.run_json(last=1)))
    for _ in range(3):
        wire.expect_attach(None, CallAnswer(status=status, headers={"location": "http://elsewhere.test/v1"}))
    async with face.client(
        URL, ":memory:", transport=wire, token="secret", _seams=Seams(clock=lambda: clock)
    ) as client:
        run = await client.start("work", key="k")
        with pytest.raises(errors.RemoteProtocolError, match=str(status)):
            await collected(run)
    assert len(wire.attaches()) == 3


async def test_every_request_of_a_followed_run_asks_for_no_coding() -> None:
    """Promise 9: whatever a proxy would compress comes late; the header says identity on stream, page and call alike."""
    wire = HttpWire()
    try:
        for accept in ("text/event-stream", "application/json"):
            sent = wire.headers(Request("GET", "http://127.0.0.1:1/", {"Accept": accept}))
            assert sent[b"accept-encoding"] == b"identity"
    finally:
        await wire.aclose()


@pytest.mark.parametrize("transport", ["longpoll", "poll"])
async def test_pages_are_as_polite_as_a_stream(face, transport: str) -> None:
    """Promise 9: what is refused in the middle waits as long as the server says; the token is asked for at each page."""

    class Paged(Native):
        ways = (transport,)

    server, args = in_memory(story=[Beat(after=100), *ENDS], pages=[Trip(), Trip(refuse=503, retry_after=50.0)])
    held(server, args)
    tokens: list[int] = []
    async with face.client(
        journal=":memory:", **args, profile=Paged(), token=lambda: tokens.append(1) or f"t{len(tokens)}"
    ) as client:
        assert sequences(await collected(await client.start("work", key="k"))) == [1, 2, 3]
    pages = [sent for sent in server.wire.requests if "/events?" in sent.path]
    assert pages[2].at - pages[1].at >= 50.0
    assert len({sent.headers["authorization"] for sent in pages}) == len(pages)


async def test_the_budget_runs_only_while_nobody_answers(face) -> None:
    """Promise 9: by polls, too: hours of answers spend nothing, ten minutes without one end it."""

    class Paged(Native):
        ways = ("poll",)

    dead = [Trip(lost="before")] * 400
    server, args = in_memory(story=[Beat(after=86_400, do="end")], statuses=[*[Trip()] * 200, *dead])
    facts = Facts()
    held(server, args)
    async with face.client(journal=":memory:", **args, profile=Paged(), observer=facts) as client:
        run = await client.start("work", key="k")
        with pytest.raises(errors.ReconnectExhausted):
            await collected(run)
    assert 195 * 30 <= ended_at(facts) <= 200 * 30 + 700


async def test_a_wish_to_wait_holds_for_whoever_asks_the_same(face) -> None:
    """Promise 9: found by the simulation: a loop that was entered again asked for the status at once.

    The one before had been told to wait, and was left meanwhile.
    """
    clock = VirtualClock(autojump=True)
    wire = Wire(clock=clock)
    wire.on_call("POST", "/v1/runs", told(frames.run_json(), 201))
    busy = CallAnswer(status=503, headers={"retry-after": "40"})
    wire.on_call("GET", "/v1/runs/run_1", busy, told(frames.run_json(last=3)))
    wire.expect_attach(None).send(frames.attached(), frames.event(1))
    wire.expect_attach("e1.1").send(frames.attached(1), frames.event(2)).reset()
    wire.expect_attach("e1.2").send(frames.attached(2), frames.end(3)).fin()
    seams = Seams(clock=lambda: clock, writer=InlineWriter)
    async with face.client(URL, ":memory:", transport=wire, _seams=seams) as client:
        run = await client.start("work", key="k")
        await collected(run, 1)
        await collected(run)
    first, *later = [sent.at for sent in wire.calls("GET", "/v1/runs/run_1")]
    assert all(at >= first + 40 for at in later), (first, later)


async def test_two_questions_at_once_keep_each_others_wishes() -> None:
    """Promise 9: found by the simulation: while one waited to ask again, the other was told to wait longer."""
    clock = VirtualClock(autojump=True)
    wire = Wire(clock=clock)
    waits = iter(["2", "1", "50"])
    wire.on_call(
        "GET",
        "/v1/runs/run_1",
        *[lambda _: CallAnswer(status=503, headers={"retry-after": next(waits)})] * 3,
        told(frames.run_json(last=3)),
    )

    async def headers() -> dict[str, str | bytes]:
        return {}

    native = Native()
    calls = Calls(wire, native, URL, headers, Policy(retry_floor=0.5, retry_base=0.5), clock)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(clock.run)
        async with anyio.create_task_group() as both:
            for _ in range(2):
                both.start_soon(calls.make, native.status("run_1"), Limit(attempts=3))
        tasks.cancel_scope.cancel()
    asked = [sent.at for sent in wire.calls("GET", "/v1/runs/run_1")]
    assert len(asked) == 5
    assert all(at >= asked[2] + 50 for at in asked[3:]), asked
