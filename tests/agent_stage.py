"""The stage of the agent's tests: what they ask a site for, and tools that say when they were used."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Sequence
from typing import Any

from mockserver_stage import PATIENCE, Site
from reattach_mockserver.agent.model import Piece, Turn
from reattach_mockserver.agent.scripted import ScriptedModel
from reattach_mockserver.agent.tool import Tool, ToolUse

ASK = {"input": {"scenario": "agent", "text": "go"}}


async def events_of(site: Site, run: dict) -> list[dict]:
    return (await site.get(f"/v1/runs/{run['id']}/events?limit=1000")).json["events"]


def types(events: list[dict]) -> list[str]:
    """Name each event's type, a row of deltas as one."""
    kinds = [event["type"] for event in events]
    return [kind for at, kind in enumerate(kinds) if at == 0 or kind != "message.delta" or kinds[at - 1] != kind]


def data_of(events: list[dict], kind: str) -> list[dict]:
    return [event["data"] for event in events if event["type"] == kind]


async def soon(waited: Awaitable[Any]) -> None:
    """Wait for what a test waits for; a broken agent does not keep it waiting for ever."""
    await asyncio.wait_for(waited, PATIENCE)


class Recorder(ScriptedModel):
    """A scripted model that remembers what it was asked with, in this process."""

    def __init__(self, turns: Sequence[Sequence[Piece]]) -> None:
        super().__init__(turns)
        self.asked: list[Sequence[Turn]] = []

    async def turn(self, conversation: Sequence[Turn], tools: Sequence[Tool]) -> AsyncIterator[Piece]:
        self.asked.append(conversation)
        async for piece in super().turn(conversation, tools):
            yield piece


class Used:
    """A tool's function that remembers its uses, waits for `free` if it is told to, and then does what it is told to."""

    def __init__(self, *outcomes: Any, waits: bool = False) -> None:
        self.uses: list[ToolUse] = []
        self.began = asyncio.Event()
        self.free = asyncio.Event()
        if not waits:
            self.free.set()
        self._outcomes = itertools.chain(outcomes, itertools.repeat(outcomes[-1] if outcomes else "ok"))

    async def __call__(self, use: ToolUse) -> Any:
        self.uses.append(use)
        self.began.set()
        await soon(self.free.wait())
        outcome = next(self._outcomes)
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome
