"""The steps of a script that are done to the server, not said by the run.

They concern the run that plays them, but for a restart, a kill and an overload. Each was marked in the log before it is
done here, so that a restarted server does not do it again. Checked by tests/mockserver/test_engine.py.
"""

from typing import TYPE_CHECKING, assert_never

from reattach_mockserver.logs.base import RunRecord
from reattach_mockserver.scenarios.script import (
    CloseStreams,
    ExpireTo,
    ExpireTokens,
    Kill,
    NewEpoch,
    Overload,
    Release,
    Restart,
    ServerStep,
)

if TYPE_CHECKING:  # the engine imports this module to run it
    from reattach_mockserver.engine.engine import Engine


async def operate(engine: "Engine", run: RunRecord, step: ServerStep) -> RunRecord:
    """Do one step for a run; return the run's record as it is then."""
    match step:
        case Restart():
            return await engine.restart_from_within()
        case Kill():
            if engine.settings.kill is not None:
                engine.settings.kill()
            return await engine.restart_from_within()
        case NewEpoch():
            run = await engine.log.renew(run.id)
            engine.hub.wake(run.id)
        case CloseStreams():
            engine.hub.close("max_age", run.id)
        case ExpireTokens():
            if run.token:
                await engine.revoke(run.token)
        case ExpireTo(sequence=sequence):
            run = await engine.expire(run.id, sequence)
        case Overload(ms=ms, status=status):
            engine.overload(ms, status)
        case Release():
            raise AssertionError("a release is an event, appended by the player")
        case _:
            assert_never(step)
    return run
