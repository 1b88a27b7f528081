"""The engine of DBOS: a run's work as a workflow whose steps are recorded in a SQLite file of DBOS's own.

    agent = DbosEngine(my_agent, Path("workflows.db"))
    app = create_app(Settings(log=SqliteLog(Path("runs.db")), scripts={"agent": agent}, default="agent"))

Who owns what: DBOS owns progress (which steps are done, and what they came to), the event log owns what clients see. A step
publishes under its own name before DBOS records it, so one that was killed in between is done again and publishes
nothing twice. A workflow has the id of its run and of the incarnation of that run's log: a second start finds the first.

DBOS lives once in a process, in the event loop of the server, and begins with the first run. A workflow that was
left behind by a killed process is taken up again with its run, at the next of its steps that was not recorded.

Never here: what a step does (`seat.py`), the loop (`agent/flow.py`). Checked by tests/mockserver/engines/.
"""

import asyncio
import json
import secrets
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from reattach_mockserver.agent.flow import converse
from reattach_mockserver.engine.work import Desk, Outcome, RunCancelled
from reattach_mockserver.engines.seat import Left, Seat, Seats, workflow_id
from reattach_mockserver.engines.stepped import SteppedWork, Stepwise
from reattach_mockserver.logs.base import LogUnavailable, WriterLost

try:
    from dbos import (
        DBOS,
        DBOSConfig,
        DBOSPortableJSONSerializer,
        SetWorkflowID,
        WorkflowHandleAsync,
        WorkflowSerializationFormat,
        error,
    )
except ImportError as missing:
    raise ImportError(f"the engine of DBOS needs dbos ({missing}): pip install 'reattach[dbos]'") from missing

_LOOK_EVERY = 0.1  # seconds between two looks at a workflow that another task of this process executes
_UNFINISHED = ("PENDING", "ENQUEUED", "DELAYED")


class DbosEngine(SteppedWork):
    """The work of an agent, played by DBOS.

    Args:
        agent: What does the steps.
        path: DBOS's own SQLite file; not the event log's. All engines of one process have the same.
    """

    def __init__(self, agent: Stepwise, path: Path) -> None:
        super().__init__(agent)
        self._path = path

    async def __call__(self, desk: Desk) -> Outcome:
        """Play the run's workflow from where it was left; see `work.Work`."""
        self._hold()
        name, seat = workflow_id(desk), Seat(self._agent, desk)
        with _seats.taken(name, seat):
            try:
                handle = await _begin(name, desk.run.id)
                return await seat.outcome(_result(handle))
            except (WriterLost, LogUnavailable, asyncio.CancelledError):
                # The run is gone on with, elsewhere or later, and so is its workflow; unless it is being cancelled.
                if desk.cancelled.is_set():
                    await _cancel(name)
                raise
            except error.DBOSAwaitedWorkflowCancelledError:
                raise RunCancelled from None  # by DBOS's own means
            except Exception:
                await _cancel(name)
                raise
            finally:
                await seat.leave()
                await _end(_executing.pop(seat, set()))

    async def abandon(self, desk: Desk) -> None:
        """Have the workflow of a run that is to settle as cancelled end as well; see `work.abandon_work`."""
        self._hold()
        await _cancel(workflow_id(desk))

    async def close(self) -> None:
        """Let go of the file. Workflows that were not finished are gone on with when their runs are."""
        _holders.discard(self)
        if not _holders:
            await _close()

    def _hold(self) -> None:
        _launch(self._path)
        _holders.add(self)


_seats = Seats()
_executing: dict[Seat, set[asyncio.Task[Any]]] = {}
_holders: set[DbosEngine] = set()
_launched: Path | None = None


@DBOS.workflow(
    name="reattach.run",
    max_recovery_attempts=None,  # a run that a process was killed in a hundred times is still a run
    serialization_type=WorkflowSerializationFormat.PORTABLE,
)
async def _flow(run_id: str) -> str:
    seat, task = _seats.get(str(DBOS.workflow_id)), asyncio.current_task()
    assert task is not None, "DBOS executes a workflow in a task"
    if seat is None:
        raise asyncio.CancelledError  # its run has left in between; see _step
    _executing.setdefault(seat, set()).add(task)
    return json.dumps(await converse(partial(_do, seat)))


async def _do(seat: Seat, name: str) -> Any:
    # Preemptible: a step that waits ends with a workflow that somebody cancels by DBOS's own means.
    return json.loads(await DBOS.run_step_async({"name": name, "preemptible": True}, _step, seat, name))


async def _step(seat: Seat, name: str) -> str:
    try:
        # Text, of ASCII: half of a surrogate pair is legal in JSON, and nothing that SQLite takes.
        return json.dumps(await seat.step(name))
    except Left:
        # An exception would be recorded as what the step came to, for ever. This ends the execution and records nothing.
        raise asyncio.CancelledError from None


async def _result(handle: WorkflowHandleAsync[str]) -> Any:
    return json.loads(await handle.get_result(polling_interval_sec=_LOOK_EVERY))


async def _begin(name: str, run_id: str) -> WorkflowHandleAsync[str]:
    """Start the workflow, or take it up again after whoever executed it before."""
    known = await DBOS.get_workflow_status_async(name)
    if known is None:
        with SetWorkflowID(name):
            return await DBOS.start_workflow_async(_flow, run_id)
    if known.status in _UNFINISHED:
        return await DBOS.resume_workflow_async(name)
    return await DBOS.retrieve_workflow_async(name)


async def _cancel(name: str) -> None:
    await DBOS.cancel_workflow_async(name)


async def _end(tasks: set[asyncio.Task[Any]]) -> None:
    """End what executes a workflow for a run that has left, so that a later beginning finds nobody at it."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _launch(path: Path) -> None:
    global _launched
    if _launched is not None:
        if _launched != path:
            raise ValueError(f"DBOS lives once in a process, and has {_launched} already")
        return
    config: DBOSConfig = {
        "name": "reattach",
        "system_database_url": f"sqlite:///{path.absolute()}",
        "serializer": DBOSPortableJSONSerializer(),
        # Fixed, so that another version of the application goes on with the same workflows.
        "application_version": "reattach-1",
        # Another one each time: DBOS takes up by itself what an executor of this name left, but a run is taken up when the
        # server takes it over, and then once.
        "executor_id": f"reattach-{secrets.token_hex(4)}",
        "log_level": "ERROR",  # that an execution was cancelled is our doing
    }
    dbos = DBOS(config=config)
    if getattr(dbos, "_launched", False):  # it says so nowhere else; what is the application's is not ours to end
        raise ValueError("DBOS lives once in a process, and the application has launched it already")
    dbos.launch()  # in the event loop, which makes it the loop of its workflows
    _launched = path


async def _close() -> None:
    global _launched
    if _launched is not None:
        _launched = None
        # It has made its own threads those of the loop, and ends them: from now on the loop has others again.
        threads = ThreadPoolExecutor(thread_name_prefix="asyncio")
        asyncio.get_running_loop().set_default_executor(threads)
        await asyncio.to_thread(DBOS.destroy)
