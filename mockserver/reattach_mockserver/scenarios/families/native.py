"""Our own protocol, as `reattach record` writes it: its events tell their text by their types.

What a server appends by itself (how a run begins, pauses and ends) is read here as a sign and left out
of what is replayed, since the replaying server appends its own. Field names: PROTOCOL, section 1.
"""

from dataclasses import dataclass
from typing import cast

from reattach_mockserver.scenarios.families.base import Answered, Asked, Ended, Sign, member, problem_at, text_at
from reattach_mockserver.scenarios.script import Action, ActionKind, JsonObject


@dataclass(frozen=True, slots=True)
class Native:
    """The family `native`. Chosen by the header or by name, never by content."""

    name: str = "native"

    def recognises(self, event: JsonObject) -> bool:
        """Never: an event's data alone does not tell."""
        return False

    def text(self, event: JsonObject) -> str | None:
        """None: natively a client folds deltas by itself."""
        return None

    def sign(self, event: JsonObject) -> Sign | None:
        """Read `{type, data}`, which is how a recording with a header gives its events to this family.

        A pause has no sign of its own: it is what pending actions come to.
        """
        data = member(event, "data")
        match event.get("type"):
            case "run.completed":
                return Ended(result=member(data, "result"))
            case "run.failed":
                return Ended(status="failed", problem=problem_at(data, "error", code="failed"))
            case "run.cancelled":
                return Ended(status="cancelled")
            case "action.required":
                return _asked(member(data, "action"))
            case "action.resolved":
                answered = text_at(data, "action_id")
                return None if answered is None else Answered(action_id=answered)
            case _:
                return None


def _asked(action: object) -> Sign | None:
    if not isinstance(action, dict):
        return None
    members = cast(JsonObject, action)
    action_id, tool = text_at(members, "id"), text_at(members, "tool")
    if action_id is None or tool is None:
        return None
    kind: ActionKind = "approval"
    match member(members, "kind"):
        case "client_tool" | "authorization" as other:
            kind = other
    arguments = member(members, "arguments")
    return Asked(
        action=Action(
            id=action_id,
            tool=tool,
            kind=kind,
            arguments=arguments if isinstance(arguments, dict) else {},
            operation_id=text_at(members, "operation_id"),
            thread=text_at(members, "thread"),
        )
    )
