"""A seat: where a workflow's steps are done, whatever its engine asks for twice, gives up or lets go of."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from reattach_mockserver.agent.flow import converse
from reattach_mockserver.agent.plan import json_of, outcome_of
from reattach_mockserver.engine.work import Completed, Failed, Paused, RunCancelled
from reattach_mockserver.engines.seat import Left, Seat, Seats, workflow_id

pytestmark = pytest.mark.anyio


class Agent:
    """Its steps wait for `go`, are counted, and end as `ends` says."""

    def __init__(self, ends: Any = "done") -> None:
        self.began: list[str] = []
        self.gone: list[str] = []
        self.beginning = asyncio.Event()
        self.go = asyncio.Event()
        self._ends = ends

    def steps(self, desk: Any) -> "Agent":
        return self

    async def step(self, name: str) -> Any:
        self.began.append(name)
        self.beginning.set()
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.gone.append(name)
            raise
        if isinstance(self._ends, Exception):
            raise self._ends
        return self._ends


async def passed(point: str) -> None:
    pass


def seat_of(agent: Agent) -> tuple[Seat, asyncio.Event]:
    cancelled = asyncio.Event()
    return Seat(agent, SimpleNamespace(cancelled=cancelled, reached=passed)), cancelled


async def test_a_step_that_is_asked_for_while_it_is_being_done_is_done_once():
    """An engine that lost the answer of a step, or its heartbeats, asks again; both get the one answer."""
    agent = Agent()
    seat, _ = seat_of(agent)
    first = asyncio.create_task(seat.step("turn.0"))
    await agent.beginning.wait()
    second = asyncio.create_task(seat.step("turn.0"))
    await asyncio.sleep(0)
    agent.go.set()
    assert (await first, await second) == ("done", "done")
    assert agent.began == ["turn.0"]


async def test_a_step_outlives_whoever_waits_for_it():
    """An attempt that its engine gives up is not the step: the next attempt finds it going on."""
    agent = Agent()
    seat, _ = seat_of(agent)
    first = asyncio.create_task(seat.step("turn.0"))
    await agent.beginning.wait()
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    agent.go.set()
    assert await seat.step("turn.0") == "done"
    assert (agent.began, agent.gone) == (["turn.0"], [])


async def test_what_a_step_raises_is_the_works_and_not_the_workflows():
    """The engine hears only that nothing more is done here, so it records no error that would come back for ever."""
    agent = Agent(ends=ValueError("the log is broken"))
    agent.go.set()
    seat, _ = seat_of(agent)
    outcome = asyncio.create_task(seat.outcome(asyncio.Event().wait()))
    with pytest.raises(Left):
        await seat.step("turn.0")
    with pytest.raises(ValueError, match="the log is broken"):
        await outcome
    with pytest.raises(Left):
        await seat.step("turn.1")


async def test_a_cancel_lets_the_steps_that_are_being_done_end_and_begins_no_other():
    """Promise of a cancel: what was begun is known to its end where that comes in time."""
    agent = Agent()
    seat, cancelled = seat_of(agent)
    outcome = asyncio.create_task(seat.outcome(asyncio.Event().wait()))
    step = asyncio.create_task(seat.step("call.1"))
    await agent.beginning.wait()
    cancelled.set()
    for _ in range(5):  # turns of the loop in which it notices
        await asyncio.sleep(0)
    with pytest.raises(Left):
        await seat.step("call.2")
    assert not outcome.done()
    agent.go.set()
    assert await step == "done"
    with pytest.raises(RunCancelled):
        await outcome
    assert agent.began == ["call.1"]


async def test_a_cancel_needs_no_engine_that_answers():
    """Where no step is being done, the work ends at once, though its workflow is out of reach."""
    seat, cancelled = seat_of(Agent())
    cancelled.set()
    with pytest.raises(RunCancelled):
        await seat.outcome(asyncio.Event().wait())


async def test_an_execution_that_is_ended_from_outside_is_a_failure_and_no_cancellation():
    """Taken for the end of our own task, it would leave the run as running, played by nobody."""
    seat, _ = seat_of(Agent())
    result = asyncio.get_running_loop().create_future()
    outcome = asyncio.create_task(seat.outcome(result))
    await asyncio.sleep(0)
    result.cancel()
    with pytest.raises(RuntimeError, match="ended from outside"):
        await outcome


async def test_a_cancel_wins_over_an_execution_that_ends_with_it():
    seat, cancelled = seat_of(Agent())
    result = asyncio.get_running_loop().create_future()
    outcome = asyncio.create_task(seat.outcome(result))
    await asyncio.sleep(0)
    cancelled.set()
    result.cancel()
    with pytest.raises(RunCancelled):
        await outcome


async def test_who_leaves_has_ended_all_that_was_being_done():
    agent = Agent()
    seat, _ = seat_of(agent)
    step = asyncio.create_task(seat.step("call.1"))
    await agent.beginning.wait()
    await seat.leave()
    assert agent.gone == ["call.1"]
    with pytest.raises(Left):
        await step
    with pytest.raises(Left):
        await seat.step("call.2")


async def test_a_seat_is_found_only_while_it_is_taken():
    """And the one that comes after it is not lost when the earlier one goes."""
    (first, _), (second, _) = seat_of(Agent()), seat_of(Agent())
    seats = Seats()
    with seats.taken("run_1-1", first):
        with seats.taken("run_1-1", second):
            assert seats.get("run_1-1") is second
        assert seats.get("run_1-1") is None
    assert seats.get("run_1-1") is None


def test_a_workflow_is_of_one_incarnation_of_a_log():
    """What was done for a log that is no more does not count for the next one."""
    run = SimpleNamespace(id="run_7f3a", incarnation=2)
    assert workflow_id(SimpleNamespace(run=run)) == "run_7f3a-2"


@pytest.mark.parametrize(
    "outcome",
    [
        Completed({"a": [1]}),
        Completed(None),
        Failed("code", "text"),
        Failed("code", "text", {"b": 2}),
        Paused([{"id": "a"}]),
    ],
)
def test_an_outcome_outlives_its_process_as_json(outcome):
    assert outcome_of(json_of(outcome)) == outcome


@pytest.mark.parametrize("value", [None, {}, "completed", {"paused": "x"}, {"failed": {}}])
def test_what_is_no_outcome_is_refused(value):
    with pytest.raises(ValueError, match="cannot come to"):
        outcome_of(value)


async def test_the_loop_takes_turns_and_does_the_calls_of_each_side_by_side():
    """It decides by what the steps came to and nothing else, so a second going-through finds the same steps."""
    begun: list[str] = []
    together = asyncio.Event()

    async def do(name: str) -> Any:
        begun.append(name)
        match name:
            case "turn.0":
                return {"calls": ["a", "b"]}
            case "call.a":
                await asyncio.wait_for(together.wait(), 10)
                return None
            case "call.b":
                together.set()
                return None
            case "turn.1":
                return {"calls": []}
            case _:
                return {"outcome": {"completed": 3}}

    assert await converse(do) == {"completed": 3}
    assert begun == ["turn.0", "call.a", "call.b", "turn.1", "turn.2"]
