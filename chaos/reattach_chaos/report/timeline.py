"""The timeline of one case as numbers: connections as blocks, and what was received, committed and applied as step lines.

Pure: it draws nothing, `drawing.py` does. The vertical axis counts events by their place in the server's log; so a repeated step or
a hole is visible as shape, and a line that is above another one that it must never pass, too.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

from reattach_chaos.history import (
    Applied,
    Backoff,
    Close,
    Committed,
    Connect,
    CutFired,
    Delivered,
    Effect,
    History,
    Logged,
    Received,
    Record,
    Resume,
    Status,
)

LANES = ("received", "committed", "applied", "log")
"""From what a server sent to what a client is done with; `log` is the control reader's."""


class Step(NamedTuple):
    """One event in a lane: when, which place in its run's log, and the record it was read from."""

    at_ms: float
    place: int
    record: Record


@dataclass(slots=True)
class Block:
    """One connection of the client under test: its number, when it was open, what it asked after, and how it ended."""

    conn: int
    since_ms: float
    until_ms: float
    asked: str = ""
    ended: str = ""
    instance: str = ""
    ok: bool = True


@dataclass(slots=True)
class Timeline:
    """Everything that is drawn of a case. Times in ms since the case began. `confirms`: the client tells what it has applied."""

    end_ms: float = 0.0
    events: int = 0
    blocks: list[Block] = field(default_factory=list)
    lanes: dict[str, list[Step]] = field(default_factory=lambda: {lane: [] for lane in LANES})
    cuts: list[CutFired] = field(default_factory=list)
    waits: list[tuple[float, float]] = field(default_factory=list)
    ticks: list[Record] = field(default_factory=list)
    confirms: bool = True

    def word(self, lane: str) -> str:
        """Return a lane's name, for a person: a client that confirms nothing has shown what stands in the lane `applied`."""
        if lane == "log":
            return "the server's log"
        return "shown" if lane == "applied" and not self.confirms else lane


def timeline(history: History) -> Timeline:
    """Return the timeline of the client under test. Where nothing is said of `applied`, what was shown stands for it."""
    found = Timeline()
    places = _places(history)
    found.events = max((place for place in places.values()), default=0)
    found.confirms = bool(history.of(Applied))
    open_blocks: dict[int, Block] = {}
    for record in history:
        found.end_ms = max(found.end_ms, record.at_ms)
        match record:
            case Connect(conn=int(conn)):
                block = Block(conn, record.at_ms, record.at_ms, instance=record.instance or "", ok=record.ok)
                open_blocks[conn] = block
                found.blocks.append(block)
            case Resume(conn=int(conn)) if conn in open_blocks:
                open_blocks[conn].asked = "from the beginning" if record.after is None else f"after {record.after}"
            case Close(conn=int(conn)) if conn in open_blocks:
                block = open_blocks.pop(conn)
                block.until_ms, block.ended = record.at_ms, f"{record.how} by {record.by}"
            case Received(whole=True):
                _step(found, "received", record, places)
            case Committed():
                _step(found, "committed", record, places)
            case Applied():
                _step(found, "applied", record, places)
            case Delivered() if not found.confirms:
                _step(found, "applied", record, places)
            case Logged(by="control"):
                _step(found, "log", record, places)
            case CutFired():
                found.cuts.append(record)
            case Backoff():
                found.waits.append((record.at_ms, record.at_ms + record.delay_ms))
            case Status() | Effect():
                found.ticks.append(record)
    for block in open_blocks.values():
        block.until_ms = found.end_ms
        block.ended = "open at the end" if block.ok else "refused"
    return found


def _places(history: History) -> dict[str, int]:
    """Return the place of each event of all runs, one run behind the other, by its own id and by its cursor."""
    places: dict[str, int] = {}
    count = 0
    for record in sorted(history.of(Logged), key=lambda each: each.run or ""):
        if record.by == "control":
            count += 1
            places.setdefault(record.cursor, count)
            places.setdefault(record.id, count)
    return places


def _step(
    found: Timeline, lane: str, record: Received | Committed | Applied | Delivered | Logged, places: dict[str, int]
) -> None:
    name = record.cursor if isinstance(record, Logged) else record.id
    place = places.get(name)
    if place is not None and record.who in ("client", "gate", "server", "control"):
        found.lanes[lane].append(Step(record.at_ms, place, record))
