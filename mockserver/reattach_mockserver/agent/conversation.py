"""The conversation as the log tells it: a fold of the events of a session's runs.

The loop keeps no other state. What it publishes comes back into the fold by the same function that reads the log after a
restart, so a process that takes over stands exactly where the one before it stood.

A model's turn is one transaction (its text, its calls, what it asks approval for), so the fold never sees half of one. What
it may see is half a *message*: deltas whose message was never completed.

Pure. Checked by tests/mockserver/agent/test_conversation.py.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from reattach_mockserver.agent.model import ModelTurn, ToolCall, ToolTurn, Turn, UserTurn

NOT_ANSWERED = {"code": "not_answered", "message": "the user went on without answering; it was not done"}
NOT_BEGUN = {"code": "cancelled", "message": "the run was cancelled before this was begun"}
UNKNOWN = {"code": "outcome_unknown", "message": "nobody can tell whether this was done; it is not repeated"}


@dataclass(slots=True)
class CallState:
    """A call of the model's: `action` is what a person or the client is asked, `begun` whether a `tool.call` stands."""

    call: ToolCall
    action: Mapping[str, Any] | None = None
    begun: bool = False
    outcome: ToolTurn | None = None


@dataclass(slots=True)
class _ModelTurn:
    text: str
    calls: list[CallState] = field(default_factory=list)


class Conversation:
    """A session up to some event of its last run.

    Attributes:
        user_spoke: The last run's user turn is in the log.
        model_turns: How many turns of the model's the last run has.
        attempts: How many messages of the turn that is not recorded yet were begun.
        responses: What the last run's answers say, by action.
    """

    def __init__(self) -> None:
        self._turns: list[UserTurn | _ModelTurn] = []
        self._calls: dict[str, CallState] = {}
        self._growing: _ModelTurn | None = None
        self.user_spoke = False
        self.model_turns = 0
        self.attempts = 0
        self._half_id: str | None = None
        self._half_texts: list[str] = []
        self.responses: dict[str, Mapping[str, Any]] = {}

    def begin(self, *, continues: bool) -> None:
        """Go on to the session's next run; `continues`: it answers the run before."""
        if not continues:
            for state in self._calls.values():
                if state.outcome is None:
                    asked = state.action is not None and not state.begun
                    state.outcome = ToolTurn(state.call.call_id, error=NOT_ANSWERED if asked else UNKNOWN)
        self._growing = None
        self.user_spoke = False
        self.model_turns = 0
        self.attempts = 0
        self._half_id = None
        self.responses = {}

    @property
    def half(self) -> tuple[str, str] | None:
        """Id and text of a message that was begun and not completed, None if there is none."""
        return None if self._half_id is None else (self._half_id, "".join(self._half_texts))

    def apply(self, event: Mapping[str, Any]) -> None:
        """Take the next event in. Those of other types, or of a foreign shape, change nothing."""
        match event:
            case {"type": "message.delta", "data": {"message_id": str(message_id), "text": str(text)}}:
                if self._half_id != message_id:
                    self.attempts += 1
                    self._half_id, self._half_texts = message_id, []
                self._half_texts.append(text)
            case {"type": "message.completed", "data": {"role": "user", "text": str(text)}}:
                self._turns.append(UserTurn(text))
                self._growing = None
                self.user_spoke = True
            case {"type": "message.completed", "data": {"interrupted": True}}:
                self._half_id = None
            case {"type": "message.completed", "data": {"role": "assistant", "text": str(text)}}:
                self._half_id = None
                self._begin_turn(text)
            case {"type": "tool.call", "data": {"call_id": str(call_id)}}:
                self._state(call_id, event["data"]).begun = True
            case {"type": "action.required", "data": {"action": {"id": str(call_id)} as action}}:
                self._state(call_id, action).action = action
            case {"type": "action.resolved", "data": {"action_id": str(action_id), "response": response}}:
                self.responses[action_id] = response
            case {"type": "tool.result", "data": {"call_id": str(call_id), **data}} if call_id in self._calls:
                self._calls[call_id].outcome = ToolTurn(call_id, data.get("result"), data.get("error"))
                self._growing = None
            case _:
                pass

    def _begin_turn(self, text: str) -> _ModelTurn:
        self._growing = _ModelTurn(text)
        self._turns.append(self._growing)
        self.model_turns += 1
        self.attempts = 0
        return self._growing

    def _state(self, call_id: str, data: Mapping[str, Any]) -> CallState:
        if call_id not in self._calls:
            call = ToolCall(call_id, data.get("operation_id", ""), data.get("tool", ""), data.get("arguments", {}))
            state = self._calls[call_id] = CallState(call)
            (self._growing or self._begin_turn("")).calls.append(state)
        return self._calls[call_id]

    def open_calls(self) -> list[CallState]:
        """Return the calls that have come to nothing yet, in order; they are the last turn's."""
        last = self._turns[-1] if self._turns else None
        return [state for state in last.calls if state.outcome is None] if isinstance(last, _ModelTurn) else []

    def last_words(self) -> str | None:
        """Return the text of the model's last turn, if nothing is to follow it; None if the model is to be asked."""
        last = self._turns[-1] if self._turns else None
        return last.text if isinstance(last, _ModelTurn) and not last.calls else None

    def turns(self) -> tuple[Turn, ...]:
        """Return what a model is asked with: each of its turns is followed by what its calls came to."""
        found: list[Turn] = []
        for turn in self._turns:
            if isinstance(turn, UserTurn):
                found.append(turn)
                continue
            found.append(ModelTurn(turn.text, tuple(state.call for state in turn.calls)))
            found += [state.outcome for state in turn.calls if state.outcome is not None]
        return tuple(found)
