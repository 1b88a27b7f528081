"""What the tests of the seam do at one of its moments, and readers of every face that end in one shape.

A reader returns what it was given: the sequences, in the order in which they came, and how it ended. `AT_THE_READER` are
the hooks of `reattach_mockserver.hooks` that lie on the way of each; `read_nothing` is `read` after an empty page.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from mockserver_dialogue import Dialogue
from mockserver_stage import PATIENCE, Site

Action: TypeAlias = Callable[[Any], Awaitable[Any]]

AT_THE_READER = {
    "sse": ("found", "joined", "read", "sent", "read_nothing", "replayed", "roused"),
    "socket": ("found", "joined", "read", "sent", "read_nothing", "replayed", "roused"),
    "poll": ("found", "read", "joined", "read_nothing", "replayed", "roused"),
}
BEHIND = {"sse": ("found", "joined", "read"), "socket": ("found", "joined", "read"), "poll": ("found", "read")}
"""Where the reader of a run of three events has been given none of them."""


class Once:
    """A hook that acts once, on a stage that is named later: the first time that it is reached on its run.

    Args:
        action: What to do with the stage; nothing if left out.
        since: Not before the hook is called with this sequence.
    """

    def __init__(self, action: Action | None = None, since: int = 0) -> None:
        self.stage: Any = None
        self._action = action
        self._since = since
        self._begun = False
        self._done = asyncio.Event()

    async def __call__(self, run_id: str, sequence: int) -> None:
        """Be the hook."""
        if self._begun or self.stage is None or run_id != self.stage.id or sequence < self._since:
            return
        self._begun = True
        if self._action is not None:
            await self._action(self.stage)
        self._done.set()

    @property
    def acted(self) -> bool:
        """Whether it has acted."""
        return self._done.is_set()

    async def happened(self) -> None:
        """Wait until it has acted."""
        await asyncio.wait_for(self._done.wait(), PATIENCE)


@dataclass
class Seen:
    """What a reader was given. `end`: `settled`, or the reason or code with which it was closed or refused."""

    sequences: list[int] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    end: str = ""
    epoch: str = ""

    def take(self, body: bytes) -> None:
        """Note an event's text."""
        self.sequences.append(json.loads(body)["sequence"])
        self.bodies.append(body)


async def by_sse(site: Site, run_id: str, after: str | None = None) -> Seen:
    """Read a stream to its end."""
    seen, query = Seen(), "" if after is None else f"?after={after}"
    exchange = site.attach(run_id, query)
    status, _ = await exchange.started()
    if status != 200:
        body = await exchange.rest()
        seen.end = json.loads(body)["code"] if body else "settled"
        return seen
    while (block := await exchange.block()) is not None:
        match block.name:
            case "stream.attached":
                seen.epoch = block.json["epoch"]
            case "stream.closing":
                seen.end = block.json["reason"]
            case _ if block.data is not None:
                seen.take(block.data.encode())
    assert exchange.complete, "the stream was cut"
    seen.end = seen.end or "settled"
    return seen


async def by_socket(site: Site, run_id: str, after: str | None = None) -> Seen:
    """Read a socket to its end."""
    seen = Seen()
    dialogue = await Dialogue(site).opened()
    dialogue.say("resume", run_id=run_id, cursor=after)
    while (text := await dialogue.text()) is not None:
        message = json.loads(text)
        match message["type"]:
            case "resume_ok":
                seen.epoch = message["epoch"]
            case "resume_rejected":
                seen.end = message["code"]
            case "closing":
                seen.end = message["reason"]
            case "event":
                seen.take(text[text.index('"event":{') + 8 : -1].encode())
    await dialogue.task
    assert dialogue.code in (1000, 1001)
    seen.end = seen.end or "settled"
    return seen


async def by_poll(site: Site, run_id: str, after: str | None = None) -> Seen:
    """Ask with a long poll, again and again, until the run has settled and nothing follows."""
    seen = Seen()
    async with asyncio.timeout(PATIENCE):
        while True:
            query = "" if after is None else f"&after={after}"
            answer = await site.get(f"/v1/runs/{run_id}/events?wait_ms=9000&limit=4{query}")
            if answer.status != 200:
                seen.end = answer.code
                return seen
            seen.epoch = seen.epoch or answer.json["epoch"]
            body = answer.body[len(b'{"events":[') :]
            for event in answer.json["events"]:
                text = json.dumps(event, ensure_ascii=False, separators=(",", ":")).encode()
                assert text in body
                seen.take(text)
            after = answer.json["next"]
            settled = answer.json["status"] in ("completed", "failed", "cancelled", "requires_action")
            if settled and not answer.json["events"] and answer.json["last_sequence"] == int(after.split(".")[1]):
                seen.end = "settled"
                return seen


READERS: dict[str, Callable[..., Awaitable[Seen]]] = {"sse": by_sse, "socket": by_socket, "poll": by_poll}
