"""Gemini Interactions: events typed by `event_type`, one of them with an `interaction`.

Field names as in the vendor's SDK. Text comes in `step.delta`; thoughts, searches and their results are
steps too, and no part of what a reader sees.
"""

from dataclasses import dataclass

from reattach_mockserver.scenarios.families.base import Ended, Erred, Sign, member, problem_at, text_at
from reattach_mockserver.scenarios.script import JsonObject, Problem


@dataclass(frozen=True, slots=True)
class GeminiInteractions:
    """The family `gemini-interactions`."""

    name: str = "gemini-interactions"

    def recognises(self, event: JsonObject) -> bool:
        """By an interaction, or its id, beside an `event_type`."""
        return "event_type" in event and ("interaction" in event or "interaction_id" in event)

    def text(self, event: JsonObject) -> str | None:
        """Only deltas of the type text."""
        if event.get("event_type") == "step.delta" and member(event, "delta", "type") == "text":
            return text_at(event, "delta", "text")
        return None

    def sign(self, event: JsonObject) -> Sign | None:
        """The end is one event whose status says how."""
        match event.get("event_type"):
            case "interaction.completed" | "interaction.complete":
                return _end(text_at(event, "interaction", "status") or "completed", event)
            case "error":
                return Erred(problem=problem_at(event, "error", code="error"))
            case _:
                return None


def _end(status: str, event: JsonObject) -> Ended:
    match status:
        case "failed" | "incomplete" | "budget_exceeded":
            found = problem_at(event, "interaction", "error", code=status)
            return Ended(status="failed", problem=Problem(code=found.code, message=found.message))
        case "cancelled":
            return Ended(status="cancelled")
        case _:
            return Ended()
