"""The virtual clock: time moves only when it is told, or when nothing else is left to do; and in the order of the alarms."""

from __future__ import annotations

import threading

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest

from reattach.runtime.clock import sleep
from reattach.runtime.portal import portal
from reattach.testing import VirtualClock

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


async def test_time_stands_until_it_is_moved() -> None:
    clock = VirtualClock()
    rang: list[float] = []
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(clock.run)
        clock.call_at(5.0, lambda: rang.append(clock.now()))
        await clock.elapse(4.9)
        assert rang == []
        await clock.elapse(0.2)
        assert rang == [5.0]
        assert clock.now() == pytest.approx(5.1)
        tasks.cancel_scope.cancel()


async def test_what_an_alarm_sets_off_is_done_before_the_next_one_rings() -> None:
    """Two sleepers, one of whom sleeps again: each wakes at its own time, in order."""
    clock = VirtualClock()
    woke: list[tuple[str, float]] = []

    async def sleeper(name: str, *naps: float) -> None:
        for nap in naps:
            await sleep(clock, nap)
            woke.append((name, clock.now()))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(clock.run)
        tasks.start_soon(sleeper, "a", 1.0, 1.0)
        tasks.start_soon(sleeper, "b", 1.5, 1.0)
        await clock.elapse(10.0)
        tasks.cancel_scope.cancel()
    assert woke == [("a", 1.0), ("b", 1.5), ("a", 2.0), ("b", 2.5)]


async def test_autojump_moves_to_the_next_alarm_when_all_are_waiting() -> None:
    """A day is over at once, and threads that anyio runs are waited for."""
    clock = VirtualClock(autojump=True)
    gate = threading.Event()
    seen: list[float] = []

    async def in_a_thread() -> None:
        await anyio.to_thread.run_sync(gate.wait, 10.0)
        seen.append(clock.now())

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(clock.run)
        tasks.start_soon(in_a_thread)
        with anyio.fail_after(10):
            while anyio.to_thread.current_default_thread_limiter().borrowed_tokens == 0:  # no event says it
                await anyio.lowlevel.checkpoint()
        gate.set()
        await sleep(clock, 86_400.0)
        tasks.cancel_scope.cancel()
    assert seen == [0.0]
    assert clock.now() == 86_400.0


async def test_an_alarm_that_was_cancelled_moves_nothing() -> None:
    clock = VirtualClock(autojump=True)
    clock.call_at(50.0, lambda: pytest.fail("cancelled")).cancel()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(clock.run)
        await sleep(clock, 60.0)
        tasks.cancel_scope.cancel()
    assert clock.now() == 60.0


async def test_the_next_runner_takes_over() -> None:
    """Two clients on one clock: when the first is closed, the second's alarms go on."""
    clock = VirtualClock(autojump=True)
    async with anyio.create_task_group() as second:
        async with anyio.create_task_group() as first:
            first.start_soon(clock.run)
            await sleep(clock, 1.0)
            second.start_soon(clock.run)
            await sleep(clock, 1.0)
            first.cancel_scope.cancel()
        await sleep(clock, 1.0)
        second.cancel_scope.cancel()
    assert clock.now() == 3.0


async def test_advancing_in_the_loop_itself_is_refused() -> None:
    """It would wait for itself."""
    clock = VirtualClock()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(clock.run)
        await clock.elapse(0)
        with pytest.raises(RuntimeError, match="elapse"):
            clock.advance(1.0)
        tasks.cancel_scope.cancel()


def test_a_thread_moves_the_time_of_the_portals_loop() -> None:
    """`advance` returns when what it set off is done."""
    clock = VirtualClock()
    rang: list[float] = []
    runner = portal().submit(clock.run)
    clock.advance(0)
    portal().call(_alarm, clock, rang)
    try:
        clock.advance(7.0)
        assert rang == [3.0, 6.0]
    finally:
        runner.cancel()


async def _alarm(clock: VirtualClock, rang: list[float]) -> None:
    def ring() -> None:
        rang.append(clock.now())
        clock.call_at(clock.now() + 3.0, ring)

    clock.call_at(3.0, ring)


def test_chance_is_the_seeds() -> None:
    """The same seed, the same numbers; a jitter instead names the place."""
    one, two = VirtualClock(seed=4), VirtualClock(seed=4)
    assert [one.draw(0, 9) for _ in range(5)] == [two.draw(0, 9) for _ in range(5)]
    assert VirtualClock(jitter=1.0).draw(2.0, 8.0) == 8.0
    assert VirtualClock(jitter=0.5).draw(2.0, 8.0) == 5.0


def test_the_wall_goes_with_the_clock() -> None:
    clock = VirtualClock()
    before, seconds = clock.wall(), clock.time()
    clock.advance(90.0)
    assert (clock.wall() - before).total_seconds() == 90.0
    assert clock.time() - seconds == 90.0
