"""A server of an agent that outlives it: kill -9 it in the middle of a word, start it again, and the run goes on.

What the agent said and did is its log (`agent.db`), and nothing else: no turn is asked for that is there, no refund is made
twice. One above 50.00 waits for a person.

python examples/11_agent_server.py &
curl -s http://127.0.0.1:8700/v1/runs -H 'Idempotency-Key: order-7' -H 'Content-Type: application/json' \
  -d '{"input": "Please refund order 7."}'
python examples/01_first_program.py      # or any other client: kill either of the two, and start it again
"""

import asyncio
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import uvicorn

from reattach_mockserver.agent.loop import AgentWork
from reattach_mockserver.agent.model import Called, Piece, Said, ToolTurn, Turn, UserTurn
from reattach_mockserver.agent.tool import Tool, ToolError, ToolUse
from reattach_mockserver.app import create_app
from reattach_mockserver.logs.sqlite import SqliteLog
from reattach_mockserver.settings import Settings

ORDERS = {7: 12_000}  # cents


class Clerk:
    """Stands in for a vendor's model: it sees the whole conversation each time, and yields what it says as it comes."""

    async def turn(self, conversation: Sequence[Turn], tools: Sequence[Tool]) -> AsyncIterator[Piece]:
        last = conversation[-1]
        match last:
            case ToolTurn(error=error) if error is not None:
                words = f"I could not: {error['message']}"
            case ToolTurn(result={"refunded": cents}):
                words = f"Done, {cents / 100:.2f} are on their way."
            case ToolTurn(result={"cents": cents}):
                words = f"It was {cents / 100:.2f}; I refund that."
            case _:
                words = "I look up the order first."
        for word in words.split():
            await asyncio.sleep(0.05)
            yield Said(f"{word} ")
        if isinstance(last, UserTurn):
            yield Called("look_up", {"order": 7})
        elif isinstance(last, ToolTurn) and last.error is None and "cents" in last.result:
            yield Called("refund", {"order": 7, **last.result})


def look_up(use: ToolUse) -> Any:
    if use.arguments["order"] not in ORDERS:
        raise ToolError("no_such_order", "there is no such order")
    return {"cents": ORDERS[use.arguments["order"]]}


async def refund(use: ToolUse) -> Any:
    # Whoever pays out keeps `use.operation_id`, the same in every attempt, and answers a second one with the first.
    await asyncio.sleep(0.2)
    return {"refunded": use.arguments["cents"]}


AGENT = AgentWork(
    model=Clerk(),
    tools=[
        Tool(name="look_up", run=look_up, effect="none"),
        Tool(name="refund", run=refund, effect="keyed", needs_approval=lambda arguments: arguments["cents"] > 5_000),
    ],
)

if __name__ == "__main__":
    port, folder = int((sys.argv[1:] or ["8700"])[0]), Path((sys.argv[2:] or ["."])[0])
    settings = Settings(scripts={"agent": AGENT}, default="agent", log=SqliteLog(folder / "agent.db"))
    uvicorn.run(create_app(settings), port=port, log_level="warning")
