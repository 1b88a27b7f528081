"""Fold: committed events become the view. What is shown is a fold of the journal, whole, never a sum of what was painted.

A profile says what an event changes (`Change`); this file applies it. Deltas merge into their base message by its id; an absolute
value wins over what its deltas gave; a snapshot replaces everything. Applying the same journal twice gives the same view.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from reattach.model import Event, Gap, Message, RequiredAction, Status, ToolCall, View


class MessageGrew(NamedTuple):
    """A delta of a message."""

    id: str
    text: str
    role: str = "assistant"


class MessageDone(NamedTuple):
    """A message, whole."""

    id: str
    role: str
    text: str


class ToolCalled(NamedTuple):
    """A tool was called."""

    id: str
    name: str
    arguments: Any
    operation_id: str | None = None


class ToolAnswered(NamedTuple):
    """A tool's result, or its error as `{"error": …}`."""

    id: str
    result: Any


class ActionNeeded(NamedTuple):
    """The run needs an answer."""

    action: RequiredAction


class ActionsPending(NamedTuple):
    """All actions that are pending now, absolute."""

    actions: tuple[RequiredAction, ...]


class ActionDone(NamedTuple):
    """An action is no longer pending."""

    id: str


class Became(NamedTuple):
    """The run's status."""

    status: Status


class Released(NamedTuple):
    """Another version of the agent executes the run from here on."""

    release: str


class Replaced(NamedTuple):
    """A snapshot: everything before it is replaced."""

    status: Status
    messages: tuple[Message, ...]
    tools: tuple[ToolCall, ...]
    actions: tuple[RequiredAction, ...]


Change = (
    MessageGrew
    | MessageDone
    | ToolCalled
    | ToolAnswered
    | ActionNeeded
    | ActionsPending
    | ActionDone
    | Became
    | Released
    | Replaced
)


class _Draft:
    """A message that grows: its parts, joined only when somebody looks (joining at each delta is quadratic)."""

    __slots__ = ("complete", "parts", "role")

    def __init__(self, role: str, text: str, *, complete: bool) -> None:
        self.role = role
        self.parts = [text]
        self.complete = complete

    @property
    def text(self) -> str:
        if len(self.parts) > 1:
            self.parts = ["".join(self.parts)]
        return self.parts[0]


class Fold:
    """The view of one run, grown event by event. Not thread-safe; give it the events in the journal's order, each once."""

    __slots__ = (
        "_actions",
        "_gaps",
        "_messages",
        "_texts",
        "_tools",
        "cursor",
        "position",
        "release",
        "run_id",
        "status",
    )

    def __init__(self, run_id: str) -> None:
        self.run_id = run_id
        self.position = 0
        self.cursor: str | None = None
        self.status = Status.UNKNOWN
        self.release: str | None = None
        """The newest release that an event told."""
        self._texts: list[str] = []
        self._messages: dict[str, _Draft] = {}
        self._tools: dict[str, ToolCall] = {}
        self._actions: dict[str, RequiredAction] = {}
        self._gaps: list[Gap] = []

    def add(self, event: Event, changes: Iterable[Change]) -> None:
        """Apply one event and what its profile says that it changes."""
        self.position = event.position
        if event.cursor is not None:
            self.cursor = event.cursor
        if event.gap is not None:
            self._gaps.append(event.gap)
        if event.text:
            self._texts.append(event.text)
        for change in changes:
            self._apply(change)

    def _apply(self, change: Change) -> None:
        match change:
            case MessageGrew(id, text, role):
                draft = self._messages.get(id)
                if draft is None:
                    self._messages[id] = _Draft(role, text, complete=False)
                elif not draft.complete:  # a whole message is absolute; a late delta of it is old
                    draft.parts.append(text)
            case MessageDone(id, role, text):
                self._messages[id] = _Draft(role, text, complete=True)
            case ToolCalled(id, name, arguments, operation_id):
                self._tools[id] = ToolCall(id=id, name=name, arguments=arguments, operation_id=operation_id)
            case ToolAnswered(id, result):
                call = self._tools.get(id)
                self._tools[id] = ToolCall(
                    id=id,
                    name="" if call is None else call.name,
                    arguments=None if call is None else call.arguments,
                    operation_id=None if call is None else call.operation_id,
                    result=result,
                    complete=True,
                )
            case ActionNeeded(action):
                self._actions[action.id] = action
            case ActionsPending(actions):
                self._actions = {action.id: action for action in actions}
            case ActionDone(id):
                self._actions.pop(id, None)
            case Became(status):
                self.status = status
            case Released(release):
                self.release = release
            case Replaced(status, messages, tools, actions):
                self.status = status
                self._texts = []
                self._messages = {each.id: _Draft(each.role, each.text, complete=each.complete) for each in messages}
                self._tools = {call.id: call for call in tools}
                self._actions = {action.id: action for action in actions}

    @property
    def text(self) -> str:
        """The visible text: all texts since the last gap that a snapshot filled."""
        if len(self._texts) > 1:
            self._texts = ["".join(self._texts)]
        return self._texts[0] if self._texts else ""

    @property
    def gaps(self) -> tuple[Gap, ...]:
        """All gaps, oldest first."""
        return tuple(self._gaps)

    def view(self) -> View:
        """Return the view as it stands, without the connection."""
        return View(
            run_id=self.run_id,
            status=self.status,
            text=self.text,
            messages=tuple(
                Message(id=id, role=draft.role, text=draft.text, complete=draft.complete)
                for id, draft in self._messages.items()
            ),
            tools=tuple(self._tools.values()),
            required_actions=tuple(self._actions.values()),
            gaps=self.gaps,
            cursor=self.cursor,
        )
