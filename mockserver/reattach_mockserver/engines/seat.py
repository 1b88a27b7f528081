"""Where the steps of a workflow are done: in the process that has the run, at the desk of its work, each once at a time.

A workflow engine decides which step is next and remembers what each came to; the event log decides what a client sees. A
seat is where the two meet: steps arrive here by name, from whatever thread of retries the engine spins, and are done by
the agent at the run's desk. A step that arrives while it is being done is the same step: it is waited for, not repeated.

What a step raises is not the workflow's to keep or to repeat: it ends the work as it would without a workflow, and the
engine is told only that nothing more is done here (`Left`). So a run settles alike on every engine.

Never here: an engine, a queue, a model. Checked by tests/mockserver/engines/test_seat.py.
"""

import asyncio
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from reattach_mockserver.agent.plan import outcome_of
from reattach_mockserver.engine.work import Desk, Outcome, RunCancelled
from reattach_mockserver.engines.stepped import Steps, Stepwise


class Left(Exception):
    """Nothing more of this run is done in this process, or not now."""


class Seat:
    """One run's, from when its work begins in this process until it leaves."""

    def __init__(self, agent: Stepwise, desk: Desk) -> None:
        self._agent = agent
        self._desk = desk
        self._steps: Steps | None = None
        self._tasks: dict[str, asyncio.Task[Any]] = {}
        self._broken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._leaving = False

    async def step(self, name: str) -> Any:
        """Do a step, or wait for the one of this name that is being done.

        Raises:
            Left: It was not done, or it raised something; the work comes to know what.
        """
        task = self._tasks.get(name)
        if task is None:
            if self._leaving:
                raise Left(name)
            task = self._tasks[name] = asyncio.create_task(self._do(name), name=name)
            task.add_done_callback(partial(self._done, name))
        try:
            # Who waits may be given up by its engine; the step goes on, and the next to ask for it gets its answer.
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if task.cancelled():
                raise Left(name) from None
            raise
        except Exception:
            raise Left(name) from None

    async def _do(self, name: str) -> Any:
        if self._steps is None:
            self._steps = self._agent.steps(self._desk)
        await self._desk.reached(f"begin {name}")
        value = await self._steps.step(name)
        # Here all of it is in the log, and the engine has yet to hear of it.
        await self._desk.reached(f"done {name}")
        return value

    def _done(self, name: str, task: asyncio.Task[Any]) -> None:
        del self._tasks[name]
        error = None if task.cancelled() else task.exception()
        if error is not None and not self._broken.done():
            self._leaving = True
            self._broken.set_exception(error)
            self._broken.exception()  # it may be that nobody asks

    async def outcome(self, result: Awaitable[Any]) -> Outcome:
        """Wait for what the workflow comes to.

        Raises:
            Exception: What a step raised.
            RunCancelled: The run is to be cancelled; steps that were being done have ended.
        """
        came = asyncio.ensure_future(result)
        came.add_done_callback(lambda done: done.cancelled() or done.exception())  # it may be that nobody asks
        cancelled = asyncio.create_task(self._desk.cancelled.wait())
        try:
            await asyncio.wait({came, cancelled, self._broken}, return_when=asyncio.FIRST_COMPLETED)
            if cancelled.done() and not came.done():
                self._leaving = True
                if self._tasks:
                    await asyncio.wait(set(self._tasks.values()))
            if self._broken.done():
                self._broken.result()
            if came.done() and not came.cancelled():
                return outcome_of(came.result())
            if cancelled.done():
                raise RunCancelled
            # Not a cancellation of ours, and the run must not be taken for one that goes on elsewhere.
            raise RuntimeError("the execution of the workflow was ended from outside")
        finally:
            came.cancel()
            cancelled.cancel()
            await asyncio.wait({came, cancelled})

    async def leave(self) -> None:
        """Do nothing more: steps that are being done are cancelled, and have ended when this returns."""
        self._leaving = True
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class Seats:
    """Those of this process, by the workflow's id."""

    def __init__(self) -> None:
        self._seats: dict[str, Seat] = {}

    @contextmanager
    def taken(self, workflow_id: str, seat: Seat) -> Iterator[None]:
        """Let a seat be found while this lasts."""
        self._seats[workflow_id] = seat
        try:
            yield
        finally:
            if self._seats.get(workflow_id) is seat:
                del self._seats[workflow_id]

    def get(self, workflow_id: str) -> Seat | None:
        """Return the seat, if it is here."""
        return self._seats.get(workflow_id)


def workflow_id(desk: Desk) -> str:
    """Return the id of the workflow that plays this run: one for each incarnation of its log."""
    run = desk.run
    return f"{run.id}-{run.incarnation}"
