"""The agent of the two examples beside it: a model that stands in for a vendor's, a tool, and a server for both.

A model yields what it says as it comes; a tool returns a JSON value. What both did is in the log before anything follows from
it, so neither needs to know that a process may die.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import uvicorn

from reattach_mockserver.agent.loop import AgentWork
from reattach_mockserver.agent.model import Called, ModelTurn, Piece, Said, Turn
from reattach_mockserver.agent.tool import Tool, ToolUse
from reattach_mockserver.app import create_app
from reattach_mockserver.engine.work import Work
from reattach_mockserver.logs.sqlite import SqliteLog
from reattach_mockserver.settings import Settings

FIRST = "I look through the files and pay for them as I go."
LAST = "All of it is paid, once."


class Model:
    """Says a word every tenth of a second. Three turns: two that pay, one that ends."""

    async def turn(self, conversation: Sequence[Turn], tools: Sequence[Tool]) -> AsyncIterator[Piece]:
        number = sum(isinstance(turn, ModelTurn) for turn in conversation)
        for word in (FIRST if number < 2 else LAST).split():
            yield Said(f"{word} ")
            await asyncio.sleep(0.1)
        if number < 2:
            yield Called("pay", {"cents": 9 + number})


async def pay(use: ToolUse) -> dict[str, int]:
    # Whoever is paid keeps `use.operation_id`: the same in every attempt at this call, so that a second one pays nothing.
    await asyncio.sleep(0.3)
    return {"paid": use.arguments["cents"]}


AGENT = AgentWork(model=Model(), tools=[Tool(name="pay", run=pay, effect="keyed")])


def serve(work: Work, port: int, folder: Path) -> None:
    """Serve runs of this work; their log is in the folder."""
    settings = Settings(scripts={"agent": work}, default="agent", log=SqliteLog(folder / "server.db"))
    uvicorn.run(create_app(settings), port=port, log_level="warning")
