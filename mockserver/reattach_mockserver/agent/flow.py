"""The agent's loop as a pure function of what its steps came to, so that any engine of workflows can run it again.

A step is known by its name, and comes to a plan: `{"calls": [call id, …]}`, to be done side by side, or `{"outcome": …}`,
with which the run ends. What a call came to is in the log, where the next turn finds it.

Nothing is imported here but what waits: a workflow runs it in a sandbox, from its history, as often as it likes. Checked by
tests/mockserver/engines/.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

Do: TypeAlias = Callable[[str], Awaitable[Any]]
"""Does the step of this name, or returns what it came to."""

TURN = "turn."
CALL = "call."


async def converse(do: Do) -> Any:
    """Take turns until the run has its outcome, and return that."""
    number = 0
    while True:
        plan = await do(f"{TURN}{number}")
        if "outcome" in plan:
            return plan["outcome"]
        await asyncio.gather(*(do(f"{CALL}{call}") for call in plan["calls"]))
        number += 1
