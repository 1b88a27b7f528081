"""The workflow of Temporal: the agent's loop, with each step an activity in the process that has the run at the time.

It runs in Temporal's sandbox, again and again from its history, so it does nothing but wait and decide. Its one signal
names the task queue of the process that has the run; a step that was begun elsewhere is given up and asked for there,
at once and without waiting for a limit.

Checked by tests/mockserver/engines/.
"""

from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import Any

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError, ApplicationError

with workflow.unsafe.imports_passed_through():
    from reattach_mockserver.agent.flow import TURN, converse

WORKFLOW = "reattach.run"
STEP = "reattach.step"
LEFT = "reattach.left"  # the type of failure of a step that was not done because its process does this run no longer

HEARTBEAT = timedelta(seconds=10)
_STEP_LIMIT = timedelta(days=7)
_PLACE_LIMIT = timedelta(days=1)


# What another version of this loop did may not fit: such a workflow fails, and is begun anew by whoever has the run.
@workflow.defn(name=WORKFLOW, failure_exception_types=[workflow.NondeterminismError])
class RunFlow:
    """One incarnation of one run."""

    def __init__(self) -> None:
        self._run_id = ""
        self._place = ""
        self._moves = 0

    @workflow.signal
    def placed(self, queue: str) -> None:
        """Take note that a process has taken the run, and does its steps from now on."""
        self._place = queue
        self._moves += 1

    @workflow.run
    async def run(self, run_id: str, place: str = "") -> Any:
        """Play it. `run_id` is for those who look at the list of workflows; `place`: where its steps were done so far."""
        self._run_id = run_id
        if place and not self._moves:
            self.placed(place)
        return await converse(self._do)

    async def _do(self, name: str) -> Any:
        if name.startswith(TURN) and workflow.info().is_continue_as_new_suggested():
            # No history grows for ever. The next one begins at the first turn by name, and its steps find in the log what is done.
            workflow.continue_as_new(args=[self._run_id, self._place])
        moves = 0  # the first place is a move as well
        while True:
            await self._placed_after(moves)
            moves = self._moves
            doing = workflow.start_activity(
                STEP,
                name,
                task_queue=self._place,
                activity_id=f"{name}@{moves}",
                start_to_close_timeout=_STEP_LIMIT,
                heartbeat_timeout=HEARTBEAT,
                retry_policy=RetryPolicy(initial_interval=timedelta(milliseconds=200)),
                # What becomes of a step that was given up nobody asks: its process is dead, or has lost the run.
                cancellation_type=workflow.ActivityCancellationType.ABANDON,
            )
            await workflow.wait_condition(partial(self._over, doing, moves))
            if not doing.done():
                doing.cancel()
                with suppress(ActivityError):
                    await doing
                continue
            try:
                return await doing
            except ActivityError as failed:
                if not (isinstance(failed.cause, ApplicationError) and failed.cause.type == LEFT):
                    raise

    def _over(self, doing: workflow.ActivityHandle[Any], moves: int) -> bool:
        return doing.done() or self._moves > moves

    async def _placed_after(self, moves: int) -> None:
        # Bounded: a run that was settled without its workflow, or lost, leaves nothing behind for ever.
        try:
            await workflow.wait_condition(lambda: self._moves > moves, timeout=_PLACE_LIMIT)
        except TimeoutError:
            raise ApplicationError("no process has this run", type=LEFT, non_retryable=True) from None
