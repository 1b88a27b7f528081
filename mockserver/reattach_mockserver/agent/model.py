"""The seam of models: what a loop asks, and what comes back, piece by piece.

A model is asked with the whole conversation each time and remembers nothing: what it may know of the past is in the log.
It may be asked for the same turn again, by this process after a failure or by another after a death; a turn that was
recorded is never asked for again.

**To add a model:** one class with `turn`, an async generator. Never here: a vendor, a key, a retry (`asking.py`).
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from reattach_mockserver.agent.tool import Tool


@dataclass(frozen=True, slots=True)
class Said:
    """The next piece of the text; it is shown at once."""

    text: str


@dataclass(frozen=True, slots=True)
class Called:
    """A call of a tool. Calls of one turn are done side by side, once the turn is over."""

    tool: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


Piece: TypeAlias = Said | Called


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call as the log has it: `call_id` names it to the model, `operation_id` names its effect to the world."""

    call_id: str
    operation_id: str
    tool: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class UserTurn:
    """What the user said."""

    text: str


@dataclass(frozen=True, slots=True)
class ModelTurn:
    """What the model said and which calls it made, in order."""

    text: str
    calls: tuple[ToolCall, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolTurn:
    """What a call came to: its result, or an error that is not None."""

    call_id: str
    result: Any = None
    error: Any = None


Turn: TypeAlias = UserTurn | ModelTurn | ToolTurn


class ModelError(Exception):
    """The model gave no turn. The text is shown to clients. `permanent`: asking again is of no use."""

    def __init__(self, message: str, *, permanent: bool = False) -> None:
        super().__init__(message)
        self.permanent = permanent


class Model(Protocol):
    """Says what comes next."""

    def turn(self, conversation: Sequence[Turn], tools: Sequence[Tool]) -> AsyncIterator[Piece]:
        """Yield the pieces of one turn; its end is the turn's.

        Args:
            conversation: Everything so far. The last turn is the user's, or a tool's.
            tools: What may be called.

        Raises:
            ModelError: It cannot. Any other exception is taken for one that may pass.
        """
