"""Does one call that stands in the log, once: claims its operation, runs the tool, records what it came to.

The order is always: claim, run, perform, `tool.result`. The claim's number says whether an attempt was begun before. What
became of that one is asked where it can be known: in the ledger (a claim finds a standing effect, and voids an attempt that
sleeps), at the tool's own authority (`reconcile`), or by running it again where that is no harm. Where none of these holds,
the call comes to `outcome_unknown`. It is never run again blindly.

A tool that says that it did nothing (`ToolError`) has failed. Any other exception leaves a tool that acts outside in doubt.

Where the rules come from: the contract, effect recovery; `tool.py`. Checked by tests/mockserver/agent/test_calling.py.
"""

import asyncio
import inspect
import json
import logging
from collections.abc import Sequence
from typing import Any, Literal

from reattach_mockserver.agent.conversation import NOT_BEGUN, UNKNOWN, Conversation
from reattach_mockserver.agent.model import ToolCall
from reattach_mockserver.agent.tool import Happened, NeverWill, Reconciled, Tool, ToolError, ToolUse
from reattach_mockserver.engine.work import Desk
from reattach_mockserver.event import Operation, json_text
from reattach_mockserver.logs.base import Claim, ClaimLost, Effect

_REPEATS = 2  # of a tool that may be called again with its key, when it raised what it does not know
_PAUSE = 0.25  # seconds before the first of them, doubled before the second

_logger = logging.getLogger(__name__)


class Calling:
    """One run's calls. `parallel`: how many are under way at once."""

    def __init__(self, desk: Desk, talk: Conversation, tools: Sequence[Tool], *, parallel: int) -> None:
        self._desk = desk
        self._talk = talk
        self._tools = {tool.name: tool for tool in tools}
        self._places = asyncio.Semaphore(parallel)

    async def do_all(self, calls: Sequence[ToolCall]) -> None:
        """Do calls side by side; all have a result when this returns. If one finds the run lost, all are let go of."""
        tasks = [asyncio.create_task(self.do(call)) for call in calls]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def refuse(self, call: ToolCall, error: Any) -> None:
        """Record that a call comes to nothing."""
        await self._record(call, error=error, status="failed")

    async def take(self, call: ToolCall, result: Any) -> None:
        """Record the result that the client brought."""
        await self._record(call, result=result)

    async def do(self, call: ToolCall) -> None:
        """Do one call, however far an earlier attempt came."""
        async with self._places:
            tool = self._tools.get(call.tool)
            if tool is None or tool.run is None:
                error = {"code": "unknown_tool", "message": f"there is no tool {call.tool!r} here"}
                await self.refuse(call, error)
            elif tool.effect == "none" and self._desk.cancelled.is_set():
                await self.refuse(call, NOT_BEGUN)
            elif tool.effect == "none":
                await self._run(call, tool, Claim(call.operation_id, 0))
            else:
                await self._claimed(call, tool)

    async def _claimed(self, call: ToolCall, tool: Tool) -> None:
        await self._desk.reached(f"claim {call.call_id}")
        claim = await self._desk.claim(call.operation_id)
        await self._desk.reached(f"claimed {call.call_id}")
        if claim.done is not None:
            await self._record(call, result=json.loads(claim.done.result))
        elif self._desk.cancelled.is_set():
            # Nothing is begun any more. What an earlier attempt may have done stays in doubt.
            if claim.number == 1:
                await self.refuse(call, NOT_BEGUN)
        elif claim.number == 1 or tool.effect != "once":
            await self._run(call, tool, claim)
        else:
            await self._reconcile(call, tool, claim)

    async def _reconcile(self, call: ToolCall, tool: Tool, claim: Claim, *, again: bool = True) -> None:
        """Find out what an earlier attempt came to. `again`: if it came to nothing, make another."""
        found: Reconciled = None
        if tool.reconcile is not None:
            try:
                said = await tool.reconcile(_use(call, claim))
                if isinstance(said, Happened):
                    json_text(said.result)
                found = said
            except Exception:
                _logger.warning("operation %s cannot be reconciled", call.operation_id, exc_info=True)
        match found:
            case Happened(result=result):
                await self._keep(call, tool, claim, result)
            case NeverWill() if again:
                await self._run(call, tool, claim)
            case NeverWill():
                await self._fail(call, "the tool failed, and nothing of it happened")
            case _:
                await self._record(call, error=UNKNOWN, status="unknown")

    async def _run(self, call: ToolCall, tool: Tool, claim: Claim, repeats: int = _REPEATS) -> None:
        await self._desk.reached(f"execute {call.call_id}")
        try:
            result = await _result_of(tool, _use(call, claim))
            json_text(result)
        except ToolError as error:
            await self.refuse(call, {"code": error.code, "message": str(error)})
        except Exception as error:
            _logger.warning("tool %s failed in call %s", tool.name, call.call_id, exc_info=True)
            if tool.effect == "keyed" and repeats > 0:
                await self._desk.resting(_PAUSE * 2 ** (_REPEATS - repeats))
                await self._run(call, tool, await self._desk.claim(call.operation_id), repeats - 1)
            elif tool.effect in ("keyed", "once"):
                await self._reconcile(call, tool, claim, again=False)
            else:
                await self._fail(call, f"the tool failed ({type(error).__name__})")
        else:
            await self._desk.reached(f"executed {call.call_id}")
            await self._keep(call, tool, claim, result)

    async def _keep(self, call: ToolCall, tool: Tool, claim: Claim, result: Any) -> None:
        """Take a result into the ledger, then into the log: if one stands there, that is the call's."""
        run_id, reversible = self._desk.run.id, tool.is_reversible
        effect = Effect(run_id, call.operation_id, tool.name, reversible=reversible, result=json_text(result))
        try:
            done = await self._desk.perform(effect, claim)
        except ClaimLost:
            # By another process: then claiming it again finds that the run is lost. Or by a claim of our own that the storage
            # carried out late: then the run is still ours, and nobody else would go on with it.
            await self._claimed(call, tool)
            return
        await self._desk.reached(f"performed {call.call_id}")
        await self._record(call, result=json.loads(done.result))

    async def _fail(self, call: ToolCall, message: str) -> None:
        await self.refuse(call, {"code": "tool_failed", "message": message})

    async def _record(
        self,
        call: ToolCall,
        *,
        result: Any = None,
        error: Any = None,
        status: Literal["failed", "unknown"] | None = None,
    ) -> None:
        data = {"call_id": call.call_id, "operation_id": call.operation_id}
        outcome = {"result": result} if error is None else {"error": error}
        told = None if status is None else Operation(id=call.operation_id, tool=call.tool, status=status)
        step = f"{call.call_id}.result"
        self._talk.apply(await self._desk.publish(step, "tool.result", {**data, **outcome}, operation=told))


def _use(call: ToolCall, claim: Claim) -> ToolUse:
    return ToolUse(call.call_id, call.operation_id, call.arguments, max(claim.number, 1))


async def _result_of(tool: Tool, use: ToolUse) -> Any:
    assert tool.run is not None, "a tool of the client's is not run here"
    if inspect.iscoroutinefunction(tool.run):
        return await tool.run(use)
    # In a thread, so that a tool that waits holds up nobody; who returns an awaitable all the same is waited for.
    result = await asyncio.to_thread(tool.run, use)
    return await result if inspect.isawaitable(result) else result
