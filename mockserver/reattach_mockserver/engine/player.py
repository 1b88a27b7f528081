"""Plays one run: driven by the engine's clock, never by a reader, and gone on with where the log ends.

Each step leaves an event, or a mark, under its path. A player that begins reads those from the log and passes over
what was played, so a killed server repeats nothing. A tool's call is durable before its effect, the effect is guarded
by its operation id, and the result comes after it: whatever the instruction at which the process dies, the effect counts
once. What comes without a wait in between is appended together.

Never here: who reads, what a request looks like, how a log keeps things. Checked by tests/mockserver/test_engine.py and
tests/system/test_server_killed.py.
"""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal, assert_never

from reattach_mockserver.engine.clock import RunClock
from reattach_mockserver.engine.continuation import Approved, Opening, next_release
from reattach_mockserver.engine.fold import Folds
from reattach_mockserver.engine.inventory import Inventory
from reattach_mockserver.engine.publisher import Publisher, entry, event_id, settling
from reattach_mockserver.engine.timeline import Act, Due
from reattach_mockserver.event import SETTLING, Entry, Operation, json_text
from reattach_mockserver.logs.base import Effect, EventLog, LogUnavailable, RunRecord, RunSettled, WriterLost
from reattach_mockserver.logs.pause import PauseRecord
from reattach_mockserver.moment import moment
from reattach_mockserver.scenarios.expand import CallTool, Emit, Finish, Operate, Pause, SettleTool
from reattach_mockserver.scenarios.script import Release, ServerStep
from reattach_mockserver.settings import Limits

_BATCH_EVENTS = 64
_BATCH_BYTES = 262_144

_logger = logging.getLogger(__name__)


class _Cancelled(Exception):
    """The run is to settle as cancelled, now."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """What a player needs: its run, what to play, its limits and clock, where to append.

    `operate` does a server step and returns the run's record as it is then. `openings` are what the run begins with, in
    its log since its creation unless that was lost; `approved` the calls that were approved before it.
    """

    run: RunRecord
    dues: Iterator[Due]
    limits: Limits
    clock: RunClock
    log: EventLog
    publisher: Publisher
    operate: Callable[[RunRecord, ServerStep], Awaitable[RunRecord]]
    openings: tuple[Opening, ...] = ()
    approved: tuple[Approved, ...] = ()


class Player:
    """One run's play. `play` returns when the run has settled, or is somebody else's."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._run = stage.run
        self._inventory = Inventory()
        self._approved = list(stage.approved)
        self._operations: dict[str, str] = {}
        self._release = stage.run.release
        self._pending: list[Entry] = []
        self._pending_bytes = 0
        self._at_ms = 0
        self._played: frozenset[str] = frozenset()
        self._cancel = asyncio.Event()
        self._look = asyncio.Event()
        self._reason = stage.run.cancel_reason or ""
        if stage.run.cancel_reason is not None:
            self._cancel.set()

    def cancel(self, reason: str) -> None:
        """Settle the run as cancelled at the next step; a tool in flight stands in `unknown`."""
        self._reason = reason
        self._cancel.set()
        self._look.set()

    def look_at_the_clock(self) -> None:
        """Reckon again how long to rest: the clock was moved."""
        self._look.set()

    async def play(self) -> None:
        """Play what the log does not hold yet, until the run settles.

        Raises:
            LogUnavailable: The log could not be asked or written for long; the run is to be gone on with later.
        """
        try:
            await self._play()
        except (WriterLost, RunSettled):
            pass  # the run is another's, or it is over: either way nothing is left to do here
        except LogUnavailable:
            raise
        except Exception:
            # A run that nobody plays would stand as running for ever: its failure is an event as well.
            _logger.exception("run %s failed inside the engine", self._run.id)
            with suppress(WriterLost, RunSettled):
                await self._fail("internal", "the engine failed; see the server's log")

    async def _play(self) -> None:
        stage, played = self._stage, await self._stage.log.steps(self._run.id)
        self._played = played
        try:
            for event in stage.openings:
                if event.step not in played:
                    self._offer(event.step, event.type, event.data, release=event.release)
            if "started" not in played:
                self._offer("started", "run.started", {}, status="running")
            for due in stage.dues:
                if due.act is None:
                    continue
                self._at_ms = due.at_ms
                if due.act.path in played:
                    stage.clock.passed(due.at_ms)
                    self._pass_over(due.act)
                    continue
                await self._rest_until(due.at_ms)
                if await self._act(due.act):
                    return
        except _Cancelled as cancelled:
            await self._settle_cancelled(cancelled.reason)

    async def _rest_until(self, at_ms: int) -> None:
        """Let what is pending go out before any wait; raise _Cancelled if a cancel was recorded."""
        if self._stage.clock.delay(at_ms) > 0 or self._full():
            await self._flush()
        while (delay := self._stage.clock.delay(at_ms)) > 0 and not self._cancel.is_set():
            self._look.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._look.wait(), delay)
        self._check_cancel()

    def _check_cancel(self) -> None:
        if self._cancel.is_set():
            raise _Cancelled(self._reason)

    def _full(self) -> bool:
        return len(self._pending) >= _BATCH_EVENTS or self._pending_bytes >= _BATCH_BYTES

    async def _act(self, act: Act) -> bool:
        """Do one step; return whether it settled the run."""
        match act:
            case Emit(type=kind) if kind in SETTLING:
                await self._fail("reserved_type", f"a script cannot append {kind!r}: it would not be the last event")
                return True
            case Emit():
                return await self._emit(act.path, act.type, act.data, text=act.text)
            case CallTool():
                operation_id = self._operation_id(act)
                self._inventory.called(operation_id, act.call)
                told = _told(operation_id, act, "pending")
                return await self._emit(act.path, "tool.call", act.call.call_data(operation_id), operation=told)
            case SettleTool():
                return await self._settle_tool(act)
            case Operate(step=Release(release=release)):
                self._release = release
                return await self._emit(act.path, "release.changed", {"release": release}, release=release)
            case Operate():
                await self._flush()
                await self._stage.log.mark(self._run.id, act.path)
                self._run = await self._stage.operate(self._run, act.step)
                return False
            case Pause():
                return await self._pause(act)
            case Finish():
                return await self._finish(act)
            case _:
                assert_never(act)

    def _pass_over(self, act: Act) -> None:
        match act:
            case CallTool():
                self._inventory.called(self._operation_id(act), act.call)
            case SettleTool():
                self._inventory.settled(self._operation_id(act), act.call)
            case Operate(step=Release(release=release)):
                self._release = release
            case _:
                pass

    def _operation_id(self, act: CallTool | SettleTool) -> str:
        # Made from the place, before the first attempt, so that every attempt has the same; or from the approval, so that
        # what was approved is what is done. The plan is gone through in one order, so every process finds the same.
        place = act.path.rpartition(".")[0]
        if place not in self._operations:
            self._operations[place] = act.call.operation_id or self._approval(act) or f"op_{self._tag()}_{place}"
        return self._operations[place]

    def _approval(self, act: CallTool | SettleTool) -> str | None:
        for approved in self._approved:
            if (approved.tool, approved.arguments) == (act.call.tool, dict(act.call.arguments)):
                self._approved.remove(approved)
                return approved.operation_id
        return None

    def _tag(self) -> str:
        return self._run.id.removeprefix("run_")

    async def _settle_tool(self, act: SettleTool) -> bool:
        operation_id = self._operation_id(act)
        await self._flush()
        self._check_cancel()
        data, told = act.call.result_data(operation_id), None
        if act.call.error is None:
            result, reversible = json_text(act.call.result), act.call.reversible
            done = await self._stage.log.perform(
                Effect(self._run.id, operation_id, act.call.tool, reversible=reversible, result=result)
            )
            data["result"] = json.loads(done.result)
        else:
            told = _told(operation_id, act, "failed")
        self._inventory.settled(operation_id, act.call)
        return await self._emit(act.path, "tool.result", data, operation=told)

    async def _emit(
        self,
        path: str,
        kind: str,
        data: Any,
        *,
        text: str | None = None,
        release: str | None = None,
        operation: Operation | None = None,
    ) -> bool:
        self._offer(path, kind, data, text=text, release=release, operation=operation)
        size = self._pending[-1].size
        if size <= self._stage.limits.event_bytes:
            return False
        self._pending.pop()
        await self._fail(
            "event_too_large", f"event {kind!r} of {size} bytes is above the limit of {self._stage.limits.event_bytes}"
        )
        return True

    def _offer(
        self,
        path: str,
        kind: str,
        data: Any,
        *,
        text: str | None = None,
        status: str | None = None,
        release: str | None = None,
        operation: Operation | None = None,
    ) -> None:
        clock = self._stage.clock
        offered = entry(
            self._run,
            path,
            kind,
            data,
            time=clock.time(self._at_ms),
            at=clock.now(),
            text=text,
            status=status,
            release=release,
            operation=operation,
        )
        self._pending.append(offered)
        self._pending_bytes += offered.size

    async def _flush(self) -> None:
        if not self._pending:
            return
        entries, self._pending, self._pending_bytes = self._pending, [], 0
        self._run = await self._stage.publisher.publish(self._run, entries, self._stage.limits.retention_events)
        # A log that never waits would keep the loop: let readers have it between two appends.
        await asyncio.sleep(0)

    async def _pause(self, pause: Pause) -> bool:
        actions = []
        paths = {action.id: f"{pause.path}.{index}" for index, action in enumerate(pause.actions)}
        asked: dict[str, dict[str, Any]] = {}
        if not self._played.isdisjoint(paths.values()):  # a kill or a lost tail came between its events
            state = await Folds(self._stage.log).at(self._run)
            asked = {each["id"]: each for each in state["required_actions"]}
        for action in pause.actions:
            path = paths[action.id]
            if path in self._played and action.id in asked:
                actions.append(asked[action.id])
                continue
            expires = None
            if action.expires_in_ms is not None:
                expires = moment(self._stage.clock.ms(self._at_ms) + action.expires_in_ms)
            required: dict[str, Any] = {
                "id": action.id,
                "kind": action.kind,
                "source_event_id": event_id(self._run, path),
                "thread": action.thread,
                "tool": action.tool,
                "arguments": action.arguments,
                "operation_id": action.operation_id or f"op_{self._tag()}_{path}",
                "expires_at": expires,
                "resolution": None,
            }
            actions.append(required)
            told = Operation(id=required["operation_id"], tool=action.tool, waits=True)
            if await self._emit(path, "action.required", {"action": required}, operation=told):
                return True
        text = self._pause_text(pause)
        return await self._settle(pause.path, "requires_action", {"required_actions": actions}, pause=text)

    def _pause_text(self, pause: Pause) -> str:
        now = self._stage.clock.now()
        expiries = [action.expires_in_ms for action in pause.actions if action.expires_in_ms is not None]
        changes = [action.release_in_ms for action in pause.actions if action.release_in_ms is not None]
        return PauseRecord(
            path=pause.path,
            expires_at=now + min(expiries) if expiries else None,
            stale_at=now + min(changes) if changes else None,
            next_release=next_release(self._release) if changes else None,
        ).text()

    async def _finish(self, finish: Finish) -> bool:
        match finish.status:
            case "completed":
                return await self._settle(finish.path, "completed", {"result": finish.result})
            case "failed":
                problem = finish.problem
                error = None if problem is None else {"code": problem.code, "message": problem.message}
                return await self._settle(finish.path, "failed", {"error": error})
            case "cancelled":
                await self._settle_cancelled("scenario")
                return True
            case _:
                assert_never(finish.status)

    async def _settle(self, path: str, status: str, data: Any, pause: str | None = None) -> bool:
        settle = settling(self._run, path, status, data, self._stage.clock, self._at_ms, pause)
        if settle.size > self._stage.limits.event_bytes:
            await self._fail("event_too_large", f"the settling event has {settle.size} bytes")
            return True
        self._pending.append(settle)
        await self._flush()
        return True

    async def _fail(self, code: str, message: str) -> None:
        error = {"error": {"code": code, "message": message}}
        await self._flush()
        self._pending.append(settling(self._run, "failed", "failed", error, self._stage.clock, self._at_ms))
        await self._flush()

    async def _settle_cancelled(self, reason: str) -> None:
        await self._flush()
        data = {"reason": reason, "operations": self._inventory.lists()}
        self._pending.append(settling(self._run, "cancelled", "cancelled", data, self._stage.clock, self._at_ms))
        await self._flush()


def _told(operation_id: str, act: CallTool | SettleTool, status: Literal["pending", "failed"]) -> Operation:
    call = act.call
    return Operation(id=operation_id, tool=call.tool, status=status, reversible=call.reversible, external=call.external)
