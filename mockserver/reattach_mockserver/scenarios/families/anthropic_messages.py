"""Anthropic Messages: `message_start`, content blocks, `message_stop`, typed by `type`.

Field names as in the vendor's SDK for streamed messages. A text block may begin with text; its deltas
follow. Inputs of tools and signatures are deltas too, and no part of what a reader sees.
"""

from dataclasses import dataclass

from reattach_mockserver.scenarios.families.base import Ended, Erred, Sign, member, problem_at, text_at
from reattach_mockserver.scenarios.script import JsonObject


@dataclass(frozen=True, slots=True)
class AnthropicMessages:
    """The family `anthropic-messages`."""

    name: str = "anthropic-messages"

    def recognises(self, event: JsonObject) -> bool:
        """By its first event."""
        return event.get("type") == "message_start"

    def text(self, event: JsonObject) -> str | None:
        """Blocks and deltas of the type text."""
        match event.get("type"), member(event, "delta", "type"), member(event, "content_block", "type"):
            case "content_block_delta", "text_delta", _:
                return text_at(event, "delta", "text")
            case "content_block_start", _, "text":
                return text_at(event, "content_block", "text")
            case _:
                return None

    def sign(self, event: JsonObject) -> Sign | None:
        """The end is `message_stop`; an error is an event, after which nothing need come."""
        match event.get("type"):
            case "message_stop":
                return Ended()
            case "error":
                return Erred(problem=problem_at(event, "error", code="error"))
            case _:
                return None
