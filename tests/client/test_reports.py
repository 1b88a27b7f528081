"""Public reports of other clients' faults, each as a test of this one; the docstring names the report and what was seen there.

Through the public door, against a model server in memory and in virtual time. What the decoder does is in `wire/`, what the
backoff's numbers are in `core/`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path

import pytest

import reattach
from reattach import errors
from reattach.observe import Fact
from reattach.policy import Policy
from reattach.stores.memory import MemoryStore
from reattach.testing import Beat, InlineWriter, Leg, MemoryServer, Seams, Trip, VirtualClock, Wire, frames, told
from reattach.testing.memory_server import URL

pytestmark = pytest.mark.anyio

THREE = (Beat(), Beat(), Beat())
END = Beat(do="end", data={"n": 3})


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(autojump=True)


@asynccontextmanager
async def following(
    clock: VirtualClock, transport: Wire, facts: list[Fact] | None = None, **options: object
) -> AsyncIterator[reattach.AsyncClient]:
    """A client on a new journal in memory."""
    async with reattach.AsyncClient(
        URL,
        MemoryStore(wall=clock.time),
        transport=transport,
        observer=None if facts is None else facts.append,
        _seams=Seams(clock=lambda: clock, writer=InlineWriter),
        **options,  # type: ignore[arg-type]  # whatever a client takes
    ) as client:
        yield client


async def shown(client: reattach.AsyncClient) -> list[str]:
    """Start the work and return the ids of all events."""
    run = await client.start("work", key="k1")
    return [event.id async for event in run]


def log_of(server: MemoryServer) -> list[str]:
    return [event.id for event in server.run.log]


def afters(server: MemoryServer) -> list[str | None]:
    return [sent.after for sent in server.wire.attaches()]


def open_descriptors() -> int:
    """How many files and sockets this process has open; 0 where that cannot be seen."""
    return len(list(Path("/proc/self/fd").iterdir())) if Path("/proc/self/fd").exists() else 0


# A. what a server sends ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "bad", ["é€", "7 ", "x" * 70_000, "7\x01", "e1.2\t"], ids=["utf8", "space", "70 KB", "control", "tab"]
)
async def test_an_id_that_no_header_can_carry_is_never_asked_after(clock: VirtualClock, bad: str) -> None:
    """B10: every reconnect failed locally, for ever. Here the cursor is made of epoch and sequence, never of the frame's id."""
    wire = Wire(clock=clock)
    wire.on_call("POST", "/v1/runs", told(frames.run_json(), 201))
    wire.on_call("GET", "/v1/runs/run_1", told(frames.run_json(last=2)))
    odd = frames.block(frames.event_json(2), id=bad, event="message.delta")
    wire.expect_attach(None).send(frames.attached(), frames.event(1), odd).reset()
    wire.expect_attach("e1.2").send(frames.attached(2), frames.end(3)).fin()
    async with following(clock, wire) as client:
        assert await shown(client) == ["evt_e1_1", "evt_e1_2", "evt_e1_3"]
    assert wire.faults == []


@pytest.mark.parametrize("epoch", ["é€", "7 ", "x" * 70_000, "7\x01"], ids=["utf8", "space", "70 KB", "control"])
async def test_an_epoch_that_no_header_can_carry_has_a_typed_error(clock: VirtualClock, epoch: str) -> None:
    """B10: where the server's own words would be the cursor they are refused, not sent for ever."""
    wire = Wire(clock=clock)
    wire.on_call("POST", "/v1/runs", told(frames.run_json(epoch=epoch), 201))
    wire.on_call("GET", "/v1/runs/run_1", told(frames.run_json(epoch=epoch, last=2)))
    bare = frames.block(frames.event_json(1), event="message.delta")
    for _ in range(20):
        wire.expect_attach().send(frames.attached(epoch=epoch), bare).reset()
    async with following(clock, wire) as client:
        with pytest.raises(errors.RemoteProtocolError):
            await shown(client)
    assert [sent.after for sent in wire.attaches()] == [None, None, None], "it never became the cursor"


@pytest.mark.parametrize(
    ("wish", "least", "most"),
    [
        (b"0", 0.25, 1.0),
        (b"-5", 0.25, 1.0),
        (b"1000", 0.25, 1.0),
        (b"4000", 3.9, 4.0),
        (b"1e3", 0.25, 1.0),
        (b"99999999999", 29.9, 30.0),
        ("٥٠٠٠".encode(), 0.25, 1.0),
    ],
)
async def test_a_wish_for_the_pace_is_clamped(wish: bytes, least: float, most: float) -> None:
    """B11: `retry: 0` made a hot loop. Only ASCII digits count, between the policy's floor and ceiling."""
    clock = VirtualClock(autojump=True, jitter=1.0)
    wire = Wire(clock=clock)
    wire.on_call("POST", "/v1/runs", told(frames.run_json(), 201))
    wire.on_call("GET", "/v1/runs/run_1", told(frames.run_json(last=1)))
    wire.expect_attach().send(b"retry: " + wish + b"\n\n", frames.attached(retry=None)).fin()
    wire.expect_attach().send(frames.attached(retry=None), frames.end(1)).fin()
    async with following(clock, wire) as client:
        await shown(client)
    first, second = wire.attaches()
    assert least <= second.at - first.at <= most


# B. liveness -----------------------------------------------------------------------------------------------------------


async def test_an_idle_stream_that_a_proxy_ends_is_no_failed_run(clock: VirtualClock) -> None:
    """B18: silent for 60 s, cut with a clean FIN, and reported as failed while the run went on."""
    beats = (*THREE, Beat(after=30), END)
    server = MemoryServer(clock, beats=beats, legs=[Leg(cut=(5, 0), how="fin")])
    async with following(clock, server.wire) as client:
        run = await client.start("work", key="k1")
        assert [event.id async for event in run] == log_of(server)
        assert (await run.wait()).status is reattach.Status.COMPLETED
    assert afters(server) == [None, "e1.4"]
    assert len(server.wire.calls("GET", f"/v1/runs/{server.run.id}")) >= 2, "the status was asked after the cut"


# C. reconnect policy ---------------------------------------------------------------------------------------------------


async def test_two_hundred_clients_give_up_at_the_budget_and_never_in_step() -> None:
    """B24: retries for ever, all clients in step. Here: a typed error when the budget is over, and starts that are spread."""
    policy = Policy(give_up_after=20.0)
    second: list[float] = []
    ends: list[float] = []
    for number in range(200):
        clock = VirtualClock(autojump=True, seed=number)
        server = MemoryServer(clock, legs=[Leg(refuse=503)] * 99, statuses=[Trip(refuse=503)] * 99)
        async with following(clock, server.wire, policy=policy) as client:
            with pytest.raises(errors.ReconnectExhausted):
                await shown(client)
        ends.append(clock.now())
        second.append(server.wire.attaches()[2].at)
        assert len(server.wire.attaches()) < 20
    assert all(20.0 <= end <= 21.0 for end in ends)
    assert len({round(at, 3) for at in second}) > 170
    assert max(second) - min(second) > 1.5


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 410, 422])
async def test_a_definite_no_is_not_asked_again(clock: VirtualClock, status: int) -> None:
    """B26: an endless loop on 401, 403, 404. Here no second request; 401 has one, with the token asked for again."""
    tokens: list[int] = []

    def token() -> str:
        tokens.append(1)
        return f"t{len(tokens)}"

    statuses = [Trip(refuse=401)] * 9 if status == 401 else []
    server = MemoryServer(clock, beats=THREE, legs=[Leg(refuse=status)] * 9, statuses=statuses)
    server.create("elsewhere")
    async with following(clock, server.wire, token=token) as client:
        with pytest.raises(errors.ReattachError) as caught:
            async for _ in client.attach(server.run.id):
                pass
    assert not isinstance(caught.value, errors.ReconnectExhausted)
    assert len(server.wire.attaches()) == (2 if status == 401 else 1)
    if status == 401:
        first, again = (sent.headers["authorization"] for sent in server.wire.attaches())
        assert first != again


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504])
async def test_a_busy_server_is_asked_again(clock: VirtualClock, status: int) -> None:
    """B26, the other half: these pass."""
    server = MemoryServer(clock, beats=(*THREE, END), legs=[Leg(refuse=status)] * 3)
    async with following(clock, server.wire) as client:
        assert await shown(client) == log_of(server)
    assert len(server.wire.attaches()) == 4


async def test_a_204_stops_the_stream_and_not_the_following(clock: VirtualClock) -> None:
    """B27: 204 was polled for ever. Here the status is asked, a notice says it, and the stream is tried at the poll's pace."""
    facts: list[Fact] = []
    server = MemoryServer(clock, beats=(*THREE, Beat(after=70), END), legs=[Leg(refuse=204)] * 2)
    async with following(clock, server.wire, facts) as client:
        assert await shown(client) == log_of(server)
    times = [sent.at for sent in server.wire.attaches()]
    assert all(later - earlier >= 30.0 for earlier, later in pairwise(times))
    assert "declined" in {fact.name for fact in facts}


async def test_waits_are_still_jittered_at_the_ceiling() -> None:
    """B29: the cap was applied after the jitter; 2,000 draws were all 60.0."""
    clock = VirtualClock(autojump=True, seed=7)
    server = MemoryServer(clock, legs=[Leg(lost=True)] * 60, beats=(Beat(after=2000), END))
    async with following(clock, server.wire) as client:
        await shown(client)
    times = [sent.at for sent in server.wire.attaches()][10:60]
    waits = {round(later - earlier, 6) for earlier, later in pairwise(times)}
    assert len(waits) > 45
    assert max(waits) <= 30.0


@pytest.mark.parametrize("cut", [(0, 0), (1, 0)])
async def test_connections_that_close_at_once_make_no_storm(cut: tuple[int, int]) -> None:
    """B30: a 200 with an empty body reset the backoff. Here waits grow, then the guard keeps to one attach a poll."""
    clock = VirtualClock(autojump=True, jitter=1.0)
    facts: list[Fact] = []
    server = MemoryServer(clock, legs=[Leg(cut=cut)] * 40, beats=(Beat(after=1500), END))
    async with following(clock, server.wire, facts) as client:
        run = await client.start("work", key="k1")
        assert [event.id async for event in run] == log_of(server), "the status answers, so nobody gives up"
    times = [sent.at for sent in server.wire.attaches()]
    waits = [round(later - earlier, 3) for earlier, later in pairwise(times)]
    assert waits[:5] == [1.0, 2.0, 4.0, 8.0, 16.0]
    assert min(waits[11:40]) >= (30.0 if cut == (1, 0) else 29.9)
    if cut == (1, 0):
        assert [fact.name for fact in facts].count("fast_loop") == 1


async def test_storms_end_at_the_budget_only_if_the_status_does_not_answer_either() -> None:
    """B30: 200 with an empty body for ever, and no status."""
    clock = VirtualClock(autojump=True)
    server = MemoryServer(clock, legs=[Leg(cut=(0, 0))] * 900, statuses=[Trip(refuse=503)] * 3000)
    async with following(clock, server.wire) as client:
        with pytest.raises(errors.ReconnectExhausted):
            await shown(client)
    assert 600.0 <= clock.now() <= 640.0


# D. pools and leaks ----------------------------------------------------------------------------------------------------


async def test_sixty_interrupted_followers_leave_nothing_behind(clock: VirtualClock) -> None:
    """B36, B37: cancelled requests ate pool slots, a second cancel interrupted the cleanup. The wire's own test is beside it."""
    server = MemoryServer(clock, beats=(*THREE, Beat(after=100_000), END))
    journal = MemoryStore(wall=clock.time)
    descriptors = open_descriptors()
    seams = Seams(clock=lambda: clock, writer=InlineWriter)
    tasks = asyncio.all_tasks()
    for number in range(60):
        async with reattach.AsyncClient(URL, journal, transport=server.wire, _seams=seams) as client:
            run = await client.start("work", key="k1")

            async def follow(run: reattach.AsyncRun = run) -> None:
                async for _ in run:
                    pass

            follower = asyncio.create_task(follow())
            for _ in range(number):
                await asyncio.sleep(0)
            follower.cancel()
            await asyncio.sleep(0)
            follower.cancel()
            await asyncio.wait([follower])
    assert server.wire.open_streams == 0
    assert server.wire.most_streams == 1
    assert asyncio.all_tasks() == tasks
    row = journal.rows()[0]
    assert [journal.holder(row.run, consumer) for consumer in ("", "main")] == [None, None]
    assert open_descriptors() <= descriptors
    assert len(server.runs) == 1


# E, F. restarts and cursors --------------------------------------------------------------------------------------------


async def test_a_stream_cut_at_every_byte_creates_one_run() -> None:
    """B42: a drop sent the POST again and paid for the run again."""
    whole = sum(len(block) for block in (frames.attached(), frames.event(1), frames.event(2), frames.end(3)))
    for at in range(0, whole, 7):
        clock = VirtualClock(autojump=True)
        server = MemoryServer(clock, beats=(Beat(), END), legs=[Leg(cut=(at // 200, at % 200), how="reset")])
        async with following(clock, server.wire) as client:
            assert await shown(client) == log_of(server)
        assert len(server.wire.calls("POST", "/v1/runs")) == 1
        assert len(server.runs) == 1


async def test_a_resumed_stream_that_drops_before_its_first_id_resumes_where_it_was(clock: VirtualClock) -> None:
    """B49: the tracker was not seeded with the cursor it was opened with. Here all four requests say 41."""
    first = Leg(cut=(42, 0), how="reset")
    drops = [Leg(cut=(0, 0)), Leg(cut=(1, 0)), Leg(cut=(1, 30), how="reset")]
    server = MemoryServer(clock, beats=(*[Beat()] * 40, Beat(after=60), END), legs=[first, *drops])
    async with following(clock, server.wire) as client:
        assert await shown(client) == log_of(server)
    assert afters(server) == [None, "e1.41", "e1.41", "e1.41", "e1.41"]


async def test_an_inclusive_server_is_deduplicated(clock: VirtualClock) -> None:
    """B50: the event at the cursor came again."""
    server = MemoryServer(clock, beats=(*THREE, END), legs=[Leg(cut=(3, 0), how="reset"), Leg(again=1)])
    async with following(clock, server.wire) as client:
        run = await client.start("work", key="k1")
        events = [event async for event in run]
    assert [event.id for event in events] == log_of(server)
    assert not any(event.redelivered for event in events)


async def test_a_server_that_skips_is_reported_as_a_gap(clock: VirtualClock) -> None:
    """B50, the other half: the first time the same is asked again, the second time it is a hole, and it has a name."""
    server = MemoryServer(clock, beats=(*THREE, END), legs=[Leg(cut=(3, 0), how="reset"), Leg(skip=1), Leg(skip=1)])
    async with following(clock, server.wire) as client:
        with pytest.raises(errors.GapUnfillable) as caught:
            await shown(client)
    assert caught.value.gap is not None
    assert caught.value.gap.reason == "hole"
    assert afters(server) == [None, "e1.2", "e1.2"]


async def evicted(clock: VirtualClock, on_gap: str) -> tuple[MemoryServer, list[reattach.Event], Exception | None]:
    """The cursor that a follower has is evicted while it is away."""
    beats = (*THREE, Beat(do="trim", count=3), Beat(), Beat(after=60), END)
    server = MemoryServer(
        clock, beats=(Beat(), Beat(after=1), *beats), legs=[Leg(cut=(2, 0), how="reset"), Leg(delay=None)]
    )
    events: list[reattach.Event] = []
    async with following(clock, server.wire, on_gap=on_gap) as client:
        run = await client.start("work", key="k1")
        try:
            events.extend([event async for event in run])
        except errors.ReattachError as error:
            return server, events, error
    return server, events, None


async def test_an_evicted_cursor_is_refused_and_never_sent_again(clock: VirtualClock) -> None:
    """B13, B65: 410 is an answer of its own, neither an end nor a retry; the error names what is missing."""
    server, _, error = await evicted(clock, "raise")
    assert isinstance(error, errors.CursorExpired)
    assert error.gap is not None
    assert (error.gap.reason, error.gap.after) == ("expired", "e1.1")
    assert afters(server)[-1] == "e1.1"
    assert afters(server).count("e1.1") <= 2, "one attempt got no answer, one was refused"


async def test_an_evicted_cursor_goes_on_from_a_snapshot_where_that_is_chosen(clock: VirtualClock) -> None:
    """B65: a labelled gap in its place, and after it exactly the rest."""
    server, events, error = await evicted(clock, "snapshot")
    assert error is None
    (at,) = [number for number, event in enumerate(events) if event.gap]
    gap = events[at].gap
    assert gap is not None
    assert (gap.reason, gap.after) == ("expired", "e1.1")
    assert [event.id for event in events[at + 1 :]] == log_of(server)[-len(events[at + 1 :]) :]
    assert gap.missing == (events[at + 1].sequence or 0) - 1 - 1
