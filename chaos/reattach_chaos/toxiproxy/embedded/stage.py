"""A stage: one toxic at work on one link. It resumes the toxic's flow whenever what the flow asked for can be had.

Everything happens in one turn of the event loop; nothing is awaited, so a toxic can be added, changed or removed between any two
steps, also while a client that does not read holds everything back (there Toxiproxy's own API hangs, Shopify/toxiproxy#558).

The rules of change, as measured of Toxiproxy: whatever stops a flow half-way sends what it held on its way at once; whether the
toxicity strikes is rolled at each start of a flow; a close that was taken is not lost.
"""

import asyncio
from collections import deque
from dataclasses import dataclass, field
from random import Random
from typing import Protocol

from reattach_chaos.toxiproxy.toxics.base import LATE, Answer, Chunk, Drop, Flow, Give, Rest, Site, Step, Take, Toxic
from reattach_chaos.toxiproxy.toxics.noop import Noop

STEPS_A_TURN = 500


@dataclass(slots=True, eq=False)
class Fitted:
    """A toxic as one proxy has it: under a name, for one direction, with its toxicity. Shared by all links; the API changes it.

    Attributes:
        name: Unique over both directions.
        stream: The direction, spelt as it was given.
        toxicity: The fraction of starts at which it is at work, 0 to 1.
        toxic: Its settings.
    """

    name: str
    stream: str
    toxicity: float
    toxic: Toxic


class Taker(Protocol):
    """Where chunks go: the next stage, or the socket at the end."""

    @property
    def has_room(self) -> bool:
        """Whether a chunk may be put now."""
        ...

    def put(self, item: Chunk | None) -> None:
        """Take over a chunk, or the close (None), whether or not there is room."""
        ...


class Upstairs(Protocol):
    """Where chunks come from: the stage before, or the link's own backlog."""

    def advance(self) -> None:
        """Go on: there is room now."""
        ...


@dataclass(slots=True, eq=False)
class Stage:
    """One toxic on one link.

    Args:
        fitted: The toxic.
        chance: Rolls the toxicity; jitter and sizes come from it, too.
        before: Who puts chunks here.
        after: Who gets them.
    """

    fitted: Fitted
    chance: Random
    before: Upstairs
    after: Taker
    _inbox: deque[Chunk | None] = field(default_factory=deque)
    _held: Chunk | None = None
    _closing: bool = False
    _shut: bool = False
    _over: bool = False
    _due: bool = False
    _busy: bool = False
    _timer: asyncio.TimerHandle | None = None
    _flow: Flow = field(init=False)
    _step: Step | None = None
    _site: Site = field(init=False)

    def __post_init__(self) -> None:
        self._site = Site(self.chance)
        self._start()

    @property
    def has_room(self) -> bool:
        """Whether a chunk may be put now. A stage whose flow is over takes nothing any more: that is the back-pressure."""
        return not self._over and not self._shut and len(self._inbox) < self.fitted.toxic.room

    def put(self, item: Chunk | None) -> None:
        """Take over a chunk, or the close (None), and go on."""
        if self._over or self._shut:
            return
        self._inbox.append(item)
        self._shut = item is None
        self.advance()

    def advance(self) -> None:
        """Resume the flow as often as what it asks for is there."""
        if self._busy:
            return
        self._busy = True
        steps = 0
        while not self._over and self._ready():
            if steps == STEPS_A_TURN:
                # A byte a piece, without a pause between: others shall have their turn.
                asyncio.get_running_loop().call_soon(self.advance)
                break
            steps += 1
            answer = self._answer()
            self._disarm()
            self._resume(answer)
        self._busy = False
        # What we took made room; who was held back may put more, and so on, one turn a chunk.
        if not self._over and self.has_room:
            self.before.advance()

    def restart(self) -> None:
        """Begin anew, with the settings of now: what was held passes at once, what is still to be taken waits."""
        if not self._over:
            self._disarm()
            self._flow.close()
            self._start()
            self.advance()

    def remove(self) -> list[Chunk | None]:
        """End for good; return what must go on in our place, in order."""
        if self._over:
            return []
        self.stop()
        if self.fitted.toxic.closes_when_removed:
            return [None]
        waiting: list[Chunk | None] = [self._held] if self._held is not None else []
        return [*waiting, *([None] if self._closing else self._inbox)]

    def stop(self) -> None:
        """End for good, without a trace."""
        self._over = True
        self._disarm()
        self._flow.close()

    def _start(self) -> None:
        strikes = self.chance.random() < self.fitted.toxicity
        self._flow = self._course(self.fitted.toxic if strikes else Noop())
        self._step = next(self._flow, None)
        if self._step is None:
            self._finish()

    def _course(self, toxic: Toxic) -> Flow:
        """The toxic's own flow, after what an earlier one has left."""
        if self._held is not None:
            yield Give(self._held.data)
        if not self._closing:
            yield from toxic.flow(self._site)

    def _ready(self) -> bool:
        """Whether the step can be done now; else see to it that somebody wakes us."""
        match self._step:
            case Take(within):
                if self._inbox or self._due:
                    return True
                self._arm(within)
                return False
            case Give():
                return self.after.has_room
            case Drop():
                return True
            case Rest(seconds, since_arrival):
                if since_arrival and seconds is not None and self._held is not None:
                    seconds -= asyncio.get_running_loop().time() - self._held.at
                if not self._due and (seconds is None or seconds > 0):
                    self._arm(seconds)
                return self._due or (seconds is not None and seconds <= 0)
            case None:
                return False

    def _answer(self) -> Answer:
        """Do the step."""
        match self._step:
            case Take():
                self._held = None
                if not self._inbox:
                    return LATE
                self._held = self._inbox.popleft()
                self._closing = self._held is None
                return self._held
            case Give(data) if self._held is not None:
                given = Chunk(data, self._held.at)
                left = self._held.data[len(data) :]
                self._held = Chunk(left, self._held.at) if left else None
                self.after.put(given)
            case Drop(keep) if self._held is not None:
                self._held = Chunk(self._held.data[:keep], self._held.at) if keep else None
            case Rest(float(seconds), True) if self._held is not None:
                # The next toxic counts from when it left here.
                self._held = Chunk(self._held.data, self._held.at + max(seconds, 0.0))
        return None

    def _resume(self, answer: Answer) -> None:
        if self._over:
            return  # what we gave ended the connection
        try:
            self._step = self._flow.send(answer)
        except StopIteration:
            self._finish()

    def _finish(self) -> None:
        self._over = True
        self._disarm()
        self._step = None
        self.after.put(None)

    def _arm(self, seconds: float | None) -> None:
        if self._timer is None and seconds is not None and seconds != float("inf"):
            self._timer = asyncio.get_running_loop().call_later(seconds, self._ring)

    def _ring(self) -> None:
        self._timer = None
        self._due = True
        self.advance()

    def _disarm(self) -> None:
        self._due = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
