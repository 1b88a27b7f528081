"""The seam of tools: a function, and what is to be known of its effect when nobody knows whether it happened.

The effect decides what becomes of a call that was begun and has no result, after a death or an exception:

* `none`: it only reads; it is run again, without a claim.
* `ledger`: nothing of it counts but its result, and that counts in the log's ledger; it is run again under a new claim, and a
  late result of the old one is refused.
* `keyed`: it acts outside, and who it acts on takes the operation id as an idempotency key; it is run again with the same id.
* `once`: it acts outside and must not be repeated. `reconcile` is asked what became of it; without one, or where that cannot
  tell, the call is surfaced as `outcome_unknown`, to the model and to every client.

Never here: when a tool is run (`calling.py`). Checked by tests/mockserver/agent.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

EffectKind: TypeAlias = Literal["none", "ledger", "keyed", "once"]


@dataclass(frozen=True, slots=True)
class ToolUse:
    """One attempt at a call. `operation_id` is the same in every attempt, `attempt` (from 1) grows: a fence for who keeps one."""

    call_id: str
    operation_id: str
    arguments: Mapping[str, Any]
    attempt: int


class ToolError(Exception):
    """The tool did not do it, and knows that nothing of it happened. `code` and the text are shown to model and clients."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True)
class Happened:
    """The effect is there; `result` is what the call would have returned."""

    result: Any = None


@dataclass(frozen=True, slots=True)
class NeverWill:
    """The effect is not there and an earlier attempt cannot bring it any more: the authority refuses it from now on."""


Reconciled: TypeAlias = Happened | NeverWill | None
"""What an authority says of an operation; None: it cannot tell."""


def _free(arguments: Mapping[str, Any]) -> bool:
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A tool.

    Attributes:
        name: By which the model calls it.
        run: Does it, and returns a JSON value. A plain function is run in a thread. None: the client does it, and the run
            pauses for its answer.
        effect: See this module.
        reconcile: Asks the authority what became of an operation.
        needs_approval: Tells from the arguments whether a person is to be asked first; the run pauses for that.
        expires_in_ms: How long it can be answered.
        description, parameters: For the model; `parameters` is a JSON schema.
        reversible, external: What is told of its operations; an operation that is not reversible is listed as such when a
            run is cancelled.
    """

    name: str
    run: Callable[[ToolUse], Any] | None
    effect: EffectKind = "once"
    reconcile: Callable[[ToolUse], Awaitable[Reconciled]] | None = None
    needs_approval: Callable[[Mapping[str, Any]], bool] = _free
    expires_in_ms: int | None = None
    description: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    reversible: bool = False
    external: bool = False

    @property
    def is_reversible(self) -> bool:
        """Whether there is nothing to undo, or a way to undo it."""
        return self.reversible or self.effect == "none"


def always(arguments: Mapping[str, Any]) -> bool:
    """Ask a person first, whatever the arguments."""
    return True
