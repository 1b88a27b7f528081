"""The engine of Temporal: a run's work as a workflow on a Temporal server, whose steps this process does.

    agent = TemporalEngine(my_agent, "127.0.0.1:7233")
    app = create_app(Settings(log=SqliteLog(Path("runs.db")), scripts={"agent": agent}, default="agent"))

Who owns what: Temporal owns progress (which steps are done, and what they came to), the event log owns what clients see. A
step publishes under its own name before Temporal hears of it, so one that was killed in between is done again and
publishes nothing twice. A workflow has the id of its run and of the incarnation of that run's log: a second start finds
the first, and tells it where the run's steps are done from now on.

Each process has a task queue of its own for the steps, since only the process that has the run may write its log; the
workflows' own queue is shared by all. A server that is away is waited for: nothing is lost, nothing is repeated.

Never here: what a step does (`seat.py`), the loop (`agent/flow.py`), the workflow (`temporal_flow.py`). Checked by
tests/mockserver/engines/.
"""

import asyncio
import logging
import secrets
from collections.abc import Callable
from contextvars import Context, copy_context
from datetime import timedelta
from typing import Any

from reattach_mockserver.engine.work import Desk, Outcome, RunCancelled
from reattach_mockserver.engines.seat import Left, Seat, Seats, workflow_id
from reattach_mockserver.engines.stepped import SteppedWork, Stepwise
from reattach_mockserver.logs.base import LogUnavailable, WriterLost

try:
    from temporalio import activity
    from temporalio.client import Client, WorkflowFailureError, WorkflowHandle
    from temporalio.common import WorkerDeploymentVersion, WorkflowIDConflictPolicy, WorkflowIDReusePolicy
    from temporalio.exceptions import (
        ApplicationError,
        ApplicationErrorCategory,
        CancelledError,
        TerminatedError,
        WorkflowAlreadyStartedError,
    )
    from temporalio.service import RPCError, RPCStatusCode
    from temporalio.worker import Worker, WorkerDeploymentConfig
except ImportError as missing:
    raise ImportError(
        f"the engine of Temporal needs temporalio ({missing}): pip install 'reattach[temporal]'"
    ) from missing

from reattach_mockserver.engines.temporal_flow import HEARTBEAT, LEFT, STEP, WORKFLOW, RunFlow

_FIRST_PAUSE, _LAST_PAUSE = 0.1, 5.0  # seconds between two attempts to reach a server; doubled after each
_STICKY = timedelta(
    seconds=1
)  # how long a workflow waits for the worker that knew it: with its default a death costs 10 s
_GOODBYE = timedelta(seconds=2)  # what telling a server that a workflow is over may take
# Told, since a worker that is not told reads all code of the process to make one, in the event loop.
_BUILD = WorkerDeploymentConfig(WorkerDeploymentVersion("reattach", "1"), use_worker_versioning=False)
_WRONG = frozenset(
    {
        RPCStatusCode.INVALID_ARGUMENT,
        RPCStatusCode.PERMISSION_DENIED,
        RPCStatusCode.UNAUTHENTICATED,
        RPCStatusCode.UNIMPLEMENTED,
        RPCStatusCode.FAILED_PRECONDITION,
    }
)
"""What a server will answer tomorrow as well."""
_AGAIN = (LEFT, "NondeterminismError")
"""Why a workflow failed that is begun anew: nobody had its run for long, or it was of another version of the loop."""

_logger = logging.getLogger(__name__)


class TemporalEngine(SteppedWork):
    """The work of an agent, played by Temporal.

    Args:
        agent: What does the steps.
        address: The server's, `host:port`.
        namespace: Where its workflows are.
        task_queue: The workflows' queue, the same in all processes that may have each other's runs.
        concurrency: How many steps this process does at a time; more of them wait.
    """

    def __init__(
        self,
        agent: Stepwise,
        address: str = "127.0.0.1:7233",
        *,
        namespace: str = "default",
        task_queue: str = "reattach",
        concurrency: int = 1000,
    ) -> None:
        super().__init__(agent)
        self._address = address
        self._namespace = namespace
        self._flows = task_queue
        self._steps = f"{task_queue}-{secrets.token_hex(8)}"
        self._concurrency = concurrency
        self._seats = Seats()
        self._beating: dict[int, Context] = {}
        self._opening = asyncio.Lock()
        self._client: Client | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._over: set[str] = set()
        self._parting: asyncio.Task[None] | None = None

    async def __call__(self, desk: Desk) -> Outcome:
        """Play the run's workflow from where it was left; see `work.Work`."""
        name, seat = workflow_id(desk), Seat(self._agent, desk)
        with self._seats.taken(name, seat):
            try:
                return await seat.outcome(self._result(name, desk.run.id))
            except (WriterLost, LogUnavailable, asyncio.CancelledError):
                # The run is gone on with, elsewhere or later, and so is its workflow; unless it is being cancelled.
                if desk.cancelled.is_set():
                    self._part(name)
                raise
            except WorkflowFailureError as failed:
                if isinstance(failed.cause, CancelledError | TerminatedError):
                    raise RunCancelled from None  # by Temporal's own means
                raise
            except Exception:
                self._part(name)
                raise
            finally:
                await seat.leave()

    async def abandon(self, desk: Desk) -> None:
        """Have the workflow of a run that is to settle as cancelled end as well; see `work.abandon_work`."""
        self._part(workflow_id(desk))

    async def close(self) -> None:
        """Let go of the server. Workflows that were not finished are gone on with when their runs are."""
        if self._parting:
            await asyncio.wait({self._parting}, timeout=_GOODBYE.total_seconds())
            self._tasks.append(self._parting)
        tasks, self._tasks, self._client, self._parting = self._tasks, [], None, None
        self._opening = asyncio.Lock()  # the next loop's
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # One run

    async def _result(self, name: str, run_id: str) -> Any:
        """Start the workflow or find it, and wait for what it comes to, however often the server is away."""
        pause, reuse = _FIRST_PAUSE, WorkflowIDReusePolicy.REJECT_DUPLICATE
        while True:
            try:
                handle = await self._begin(await self._connected(), name, run_id, reuse)
                pause = _FIRST_PAUSE
                return await handle.result()
            except WorkflowFailureError as failed:
                if not (isinstance(failed.cause, ApplicationError) and failed.cause.type in _AGAIN):
                    raise
                # Here is somebody who has its run, and steps of today's; they find in the log what they came to.
                reuse = WorkflowIDReusePolicy.ALLOW_DUPLICATE_FAILED_ONLY
            except RPCError as error:
                if error.status in _WRONG:
                    raise
                _logger.warning("Temporal at %s does not answer for %s (%s)", self._address, name, error)
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LAST_PAUSE)

    async def _begin(
        self, client: Client, name: str, run_id: str, reuse: WorkflowIDReusePolicy
    ) -> WorkflowHandle[Any, Any]:
        try:
            return await client.start_workflow(
                WORKFLOW,
                run_id,
                id=name,
                task_queue=self._flows,
                start_signal="placed",
                start_signal_args=[self._steps],
                id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
                id_reuse_policy=reuse,
            )
        except WorkflowAlreadyStartedError:
            return client.get_workflow_handle(name)  # it is over, and the run has yet to hear of it

    def _part(self, name: str) -> None:
        """Have a workflow cancelled whose run is over, as soon as the server can be told. The run does not wait for that."""
        self._over.add(name)
        if self._parting is None or self._parting.done():
            self._parting = asyncio.create_task(self._say_goodbye(), name="Temporal's cancelled workflows")

    async def _say_goodbye(self) -> None:
        # What this process cannot say any more, the workflow finds out: it ends when nobody does its steps.
        client, pause = await self._connected(), _FIRST_PAUSE
        while self._over:
            name = next(iter(self._over))
            try:
                await client.get_workflow_handle(name).cancel(rpc_timeout=_GOODBYE)
            except RPCError as error:
                if error.status is not RPCStatusCode.NOT_FOUND:
                    await asyncio.sleep(pause)
                    pause = min(2 * pause, _LAST_PAUSE)
                    continue
            self._over.discard(name)

    @activity.defn(name=STEP)
    async def _step(self, name: str) -> Any:
        context = copy_context()
        self._beating[id(context)] = context
        try:
            seat = self._seats.get(activity.info().workflow_id or "")
            if seat is None:
                raise Left(name)
            return await seat.step(name)
        except Left:
            raise ApplicationError(
                f"step {name} is not done here any more",
                type=LEFT,
                non_retryable=True,
                category=ApplicationErrorCategory.BENIGN,  # no error of anybody's: kept out of logs and metrics
            ) from None
        finally:
            del self._beating[id(context)]

    # This process

    async def _connected(self) -> Client:
        async with self._opening:
            if self._client is None:
                client = await self._connect()
                self._tasks = [
                    asyncio.create_task(self._keep(lambda: self._flow_worker(client)), name="Temporal's workflows"),
                    asyncio.create_task(self._keep(lambda: self._step_worker(client)), name="Temporal's steps"),
                    asyncio.create_task(self._beat(), name="Temporal's heartbeats"),
                ]
                self._client = client
            return self._client

    async def _connect(self) -> Client:
        pause = _FIRST_PAUSE
        while True:
            try:
                return await Client.connect(self._address, namespace=self._namespace)
            except (RPCError, RuntimeError) as error:  # the latter is how it says that nobody listens
                _logger.warning("Temporal at %s cannot be reached (%s)", self._address, error)
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LAST_PAUSE)

    def _flow_worker(self, client: Client) -> Worker:
        return Worker(
            client,
            task_queue=self._flows,
            workflows=[RunFlow],
            deployment_config=_BUILD,
            sticky_queue_schedule_to_start_timeout=_STICKY,
        )

    def _step_worker(self, client: Client) -> Worker:
        return Worker(
            client,
            task_queue=self._steps,
            activities=[self._step],
            deployment_config=_BUILD,
            max_concurrent_activities=self._concurrency,
            # Who closes has ended the runs before.
            graceful_shutdown_timeout=timedelta(0),
        )

    async def _keep(self, make: Callable[[], Worker]) -> None:
        """Have a worker at work. It outlives a server that is away by itself, but not everything that one may answer."""
        pause = _FIRST_PAUSE
        while True:
            try:
                await make().run()
            except Exception:
                _logger.exception("a worker of Temporal at %s failed and is begun again", self._address)
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LAST_PAUSE)

    async def _beat(self) -> None:
        """Tell the server of all steps that are being done, so that it asks again for those of a dead process only."""
        while True:
            await asyncio.sleep(HEARTBEAT.total_seconds() / 4)
            for context in list(self._beating.values()):
                context.run(activity.heartbeat)
