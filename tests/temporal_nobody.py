"""Workflows that a run may find under its name: of a run that nobody had, of another version. Temporal wants no local classes."""

from temporalio import workflow
from temporalio.exceptions import ApplicationError

from reattach_mockserver.engines.temporal_flow import LEFT, WORKFLOW


@workflow.defn(name=WORKFLOW, sandboxed=False)
class NobodyCame:
    @workflow.run
    async def run(self, run_id: str) -> None:
        raise ApplicationError("nobody came", type=LEFT, non_retryable=True)


@workflow.defn(name=WORKFLOW, sandboxed=False)
class OtherVersion:
    """One that began by waiting for a while, which today's does not."""

    @workflow.run
    async def run(self, run_id: str) -> None:
        await workflow.sleep(3600)
