"""The snapshot: what all events up to a sequence amount to.

Absolute payloads replace, deltas extend their base, and an event that was folded already changes nothing. Kept per
run and moved forward as asked for, so a snapshot costs only the events since the last one. It reads the log and knows
nothing of HTTP.

Where the rules come from: PROTOCOL, sections 1 and 3. Checked by tests/mockserver/test_reads.py.
"""

import json
from collections import OrderedDict
from copy import deepcopy
from typing import Any

from reattach_mockserver.event import SETTLING
from reattach_mockserver.logs.base import Base, EventLog, RunRecord

_PAGE = 1_000
_PAGE_BYTES = 4_194_304
_KEPT = 64  # folds of as many runs stay in memory; others are made anew from the log

_STATUS = {"run.created": "queued", "run.started": "running", **SETTLING}


class Fold:
    """One run's state at `sequence`; it begins with `base`, the state that a log kept in place of its first events."""

    def __init__(self, epoch: str, base: Base | None = None) -> None:
        state: dict[str, Any] = {} if base is None else json.loads(base.fold)
        self.epoch = epoch
        self.sequence: int = state.get("sequence", 0)
        self.cursor_id: str | None = state.get("cursor_id")
        self.status: str = state.get("status", "queued")
        self.messages: dict[str, dict[str, Any]] = {each["message_id"]: each for each in state.get("messages", ())}
        self.tool_calls: dict[str, dict[str, Any]] = {each["call_id"]: each for each in state.get("tool_calls", ())}
        self.required_actions: dict[str, dict[str, Any]] = {
            each["id"]: each for each in state.get("required_actions", ())
        }

    def apply(self, event: dict[str, Any]) -> None:
        """Take the next event in."""
        if event["sequence"] <= self.sequence:
            return
        self.sequence, self.cursor_id = event["sequence"], event["id"]
        self.status = _STATUS.get(event["type"], self.status)
        # Patterns, not look-ups: an event of a foreign service may have our type and not our members.
        match event:
            case {"type": "message.delta", "data": {"message_id": str(message_id), "text": str(text)}}:
                self._message(message_id)["text"] += text
            case {"type": "message.completed", "data": {"message_id": str(message_id), "role": role, "text": text}}:
                self._message(message_id).update(role=role, text=text, completed=True)
            case {"type": "tool.call" | "tool.result", "data": {"call_id": str(call_id)}}:
                self.tool_calls.setdefault(call_id, {}).update(event["data"])
            case {"type": "action.required", "data": {"action": {"id": str(action_id)}}}:
                self.required_actions[action_id] = event["data"]["action"]
            case _:
                pass

    def _message(self, message_id: str) -> dict[str, Any]:
        fresh = {"message_id": message_id, "role": "assistant", "text": "", "completed": False}
        return self.messages.setdefault(message_id, fresh)

    def state(self) -> dict[str, Any]:
        """Return a copy of what a snapshot shows."""
        return deepcopy(
            {
                "cursor_id": self.cursor_id,
                "sequence": self.sequence,
                "status": self.status,
                "messages": list(self.messages.values()),
                "tool_calls": list(self.tool_calls.values()),
                "required_actions": list(self.required_actions.values()),
            }
        )


class Folds:
    """The folds of a log's runs."""

    def __init__(self, log: EventLog) -> None:
        self._log = log
        self._folds: OrderedDict[str, Fold] = OrderedDict()

    async def at(self, run: RunRecord) -> dict[str, Any]:
        """Return the state at the record's last event, or a later one that is in the log already."""
        fold = self._folds.get(run.id)
        if fold is None or fold.epoch != run.epoch:
            fold = Fold(run.epoch, await self._log.base(run.id))
        while page := await self._log.read(run.id, fold.sequence, _PAGE, _PAGE_BYTES):
            if page[0].sequence > fold.sequence + 1:
                fold = Fold(run.epoch, await self._log.base(run.id))  # compacted meanwhile
                continue
            for event in page:
                fold.apply(json.loads(event.body))
        self._folds[run.id] = fold
        self._folds.move_to_end(run.id)
        while len(self._folds) > _KEPT:
            self._folds.popitem(last=False)
        return fold.state()
