"""A link: one direction of one proxied connection, from one socket through the toxics to the other.

Without toxics a read is written on as it is, in the same turn of the loop. With them it is cut into chunks, as Toxiproxy reads
them, and handed to the first stage; what has no room waits here, and the sender is not read meanwhile. A link that has ended takes
nothing more: what the sender still has to say stays with the sender.

A close travels like a chunk, behind the data. It reaches the other socket as a full close: TCP's half-close is not carried.
"""

from __future__ import annotations

import asyncio
from collections import deque
from random import Random
from typing import TYPE_CHECKING

from reattach_chaos.toxiproxy.embedded.stage import Fitted, Stage, Taker
from reattach_chaos.toxiproxy.toxics.base import CHUNK_BYTES, Chunk

if TYPE_CHECKING:
    from reattach_chaos.toxiproxy.embedded.end import End


class Link:
    """Carries one direction until it is closed or stopped.

    Args:
        source: Whose bytes it carries.
        target: Where they go.
        toxics: In their order.
        chance: The proxy's random numbers.
    """

    def __init__(self, source: End, target: End, toxics: list[Fitted], chance: Random) -> None:
        self._source = source
        self._target = target
        self._chance = chance
        self._stages: list[Stage] = []
        self._backlog: deque[Chunk | None] = deque()
        self._over = False
        self._busy = False
        for fitted in toxics:
            self.add(fitted)

    # -- from the source's socket

    def feed(self, data: bytes) -> None:
        """Carry what was read."""
        if self._over:
            return
        if not self._stages and not self._backlog:
            self._target.write(data)
            return
        now = asyncio.get_running_loop().time()
        for begin in range(0, len(data), CHUNK_BYTES):
            self._backlog.append(Chunk(data[begin : begin + CHUNK_BYTES], now))
        self.advance()

    def source_over(self) -> None:
        """Carry the close: the source will send nothing more."""
        self._backlog.append(None)
        self.advance()

    # -- to the target's socket: the end of the chain

    @property
    def ended(self) -> bool:
        """Whether it carries nothing any more."""
        return self._over

    @property
    def has_room(self) -> bool:
        """Whether the target's socket takes more."""
        return not self._over and self._target.writable

    def put(self, item: Chunk | None) -> None:
        """Write a chunk, or close the target's socket once all is written."""
        if self._over:
            return
        if item is not None:
            self._target.write(item.data)
        else:
            self._over = True
            self._source.read(False)
            self._target.finish()

    def target_writable(self) -> None:
        """Go on: the target's socket takes more."""
        if self._stages:
            self._stages[-1].advance()
        self.advance()

    # -- in between

    def advance(self) -> None:
        """Hand over what waits as far as there is room, and read the source only where there is more."""
        if self._busy or self._over:
            return
        self._busy = True
        first: Taker = self._stages[0] if self._stages else self
        while self._backlog and first.has_room:
            first.put(self._backlog.popleft())
        self._busy = False
        self._source.read(not self._backlog and first.has_room and not self.ended)

    def stop(self) -> None:
        """Carry nothing more; no timer stays."""
        self._over = True
        self._source.read(False)
        self._backlog.clear()
        for stage in self._stages:
            stage.stop()

    # -- changes by the API

    def add(self, fitted: Fitted) -> None:
        """Put a toxic at the end of the chain; the one before it begins anew."""
        if self._over:
            return
        last = self._stages[-1] if self._stages else None
        stage = Stage(fitted, self._chance, before=last or self, after=self)
        self._stages.append(stage)
        if last is not None:
            last.after = stage
            last.restart()
        self.advance()

    def change(self, fitted: Fitted) -> None:
        """Begin a toxic anew: its settings were changed."""
        for stage in self._stages:
            if stage.fitted is fitted:
                stage.restart()

    def remove(self, fitted: Fitted) -> None:
        """Take a toxic out of the chain. What it held goes on at once; a removed `timeout` closes."""
        index = next((index for index, stage in enumerate(self._stages) if stage.fitted is fitted), None)
        if index is None or self._over:
            return
        stage = self._stages[index]
        before = self._stages[index - 1] if index else None
        after: Taker = self._stages[index + 1] if index + 1 < len(self._stages) else self
        # Nobody overtakes what is handed over: as long as this stage stands there, who is before it finds no room.
        for item in stage.remove():
            after.put(item)
        del self._stages[index]
        if before is not None:
            before.after = after
        if index < len(self._stages):
            self._stages[index].before = before or self
        if before is not None:
            before.restart()
        self.advance()
