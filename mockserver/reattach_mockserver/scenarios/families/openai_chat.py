"""OpenAI Chat Completions: chunks without a type, known by `object`.

Field names as in the vendor's SDK for streamed completions. Only the first choice is shown, as chat
programs do. The end is a chunk with a `finish_reason`; one with the usage may follow it.
"""

from dataclasses import dataclass

from reattach_mockserver.scenarios.families.base import Ended, Erred, Sign, member, problem_at, text_at
from reattach_mockserver.scenarios.script import Json, JsonObject


@dataclass(frozen=True, slots=True)
class OpenAIChat:
    """The family `openai-chat`."""

    name: str = "openai-chat"

    def recognises(self, event: JsonObject) -> bool:
        """By the chunks' `object`."""
        return event.get("object") == "chat.completion.chunk"

    def text(self, event: JsonObject) -> str | None:
        """Content, or a refusal in its place."""
        delta = member(_choice(event), "delta")
        return text_at(delta, "content") or text_at(delta, "refusal")

    def sign(self, event: JsonObject) -> Sign | None:
        """A chunk with an `error` is what services send when they fail in mid-stream."""
        if isinstance(event.get("error"), dict):
            return Erred(problem=problem_at(event, "error", code="error"))
        return Ended() if text_at(_choice(event), "finish_reason") else None


def _choice(event: JsonObject) -> Json:
    choices = event.get("choices")
    for choice in choices if isinstance(choices, list) else ():
        if member(choice, "index") in (0, None):
            return choice
    return None
