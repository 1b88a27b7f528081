"""A workflow that has ended as a run's does when no process had its run for long; in a module of its own, as Temporal wants it."""

from temporalio import workflow
from temporalio.exceptions import ApplicationError

from reattach_mockserver.engines.temporal_flow import LEFT, WORKFLOW


@workflow.defn(name=WORKFLOW, sandboxed=False)
class NobodyCame:
    @workflow.run
    async def run(self, run_id: str) -> None:
        raise ApplicationError("nobody came", type=LEFT, non_retryable=True)
