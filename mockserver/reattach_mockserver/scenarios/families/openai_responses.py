"""OpenAI Responses: `response.…` events, typed by `type`.

Field names as in the streams of the vendor's SDK for responses. Deltas carry the text; the `.done`
events and the final response repeat it and add nothing. An approval is an output item of a finished
response, so a completed stream may still wait for a person.
"""

import json
from dataclasses import dataclass

from reattach_mockserver.scenarios.families.base import Answered, Asked, Ended, Erred, Sign, member, problem_at, text_at
from reattach_mockserver.scenarios.script import Action, Json, JsonObject, Problem


@dataclass(frozen=True, slots=True)
class OpenAIResponses:
    """The family `openai-responses`."""

    name: str = "openai-responses"

    def recognises(self, event: JsonObject) -> bool:
        """By the common beginning of its types."""
        return (text_at(event, "type") or "").startswith("response.")

    def text(self, event: JsonObject) -> str | None:
        """Text and refusals are what a reader sees; arguments, code and reasoning are not."""
        if event.get("type") in ("response.output_text.delta", "response.refusal.delta"):
            return text_at(event, "delta")
        return None

    def sign(self, event: JsonObject) -> Sign | None:
        """Ends are events of their own; approvals hide in output items."""
        match event.get("type"):
            case "response.completed":
                return Ended()
            case "response.failed":
                return Ended(status="failed", problem=problem_at(event, "response", "error", code="response_failed"))
            case "response.incomplete":
                reason = text_at(event, "response", "incomplete_details", "reason") or "no reason given"
                return Ended(status="failed", problem=Problem(code="incomplete", message=reason))
            case "error":
                # Older streams carry code and message in the event itself.
                nested = isinstance(event.get("error"), dict)
                return Erred(problem=problem_at(event, *(("error",) if nested else ()), code="error"))
            case "response.output_item.done":
                return _item_sign(member(event, "item"))
            case _:
                return None


def _item_sign(item: Json) -> Sign | None:
    match text_at(item, "type"):
        case "mcp_approval_request":
            action_id = text_at(item, "id")
            if action_id is None:
                return None
            tool = text_at(item, "name") or "unknown"
            return Asked(action=Action(id=action_id, tool=tool, arguments=_arguments(item)))
        case "mcp_approval_response" | "mcp_call":
            answered = text_at(item, "approval_request_id")
            return None if answered is None else Answered(action_id=answered)
        case _:
            return None


def _arguments(item: Json) -> JsonObject:
    """Arguments travel as JSON in a text; what is not an object is kept as the text it is."""
    text = text_at(item, "arguments") or "{}"
    try:
        arguments = json.loads(text)
    except (ValueError, RecursionError):
        arguments = None
    return arguments if isinstance(arguments, dict) else {"arguments": text}
