"""A stage without sockets: what is held when its toxic is changed, and what becomes of the close."""

import asyncio
import random
from collections import deque

import pytest

from reattach_chaos.toxiproxy.embedded.stage import Fitted, Stage
from reattach_chaos.toxiproxy.toxics.base import Chunk, Toxic
from reattach_chaos.toxiproxy.toxics.latency import Latency
from reattach_chaos.toxiproxy.toxics.limit_data import LimitData
from reattach_chaos.toxiproxy.toxics.reset_peer import ResetPeer
from reattach_chaos.toxiproxy.toxics.slicer import Slicer
from reattach_chaos.toxiproxy.toxics.slow_close import SlowClose
from reattach_chaos.toxiproxy.toxics.timeout import Timeout


class Ends:
    """What is before and after the stage."""

    def __init__(self) -> None:
        self.came: list[bytes | None] = []
        self.has_room = True
        self.asked = 0

    def put(self, item: Chunk | None) -> None:
        self.came.append(item and item.data)

    def advance(self) -> None:
        self.asked += 1


class Chance(random.Random):
    """Rolls what it was told to."""

    def __init__(self, *rolls: float) -> None:
        super().__init__(7)
        self.rolls = deque(rolls)

    def random(self) -> float:
        return self.rolls.popleft()


def stage(toxic: Toxic, ends: Ends, toxicity: float = 1.0, chance: random.Random | None = None) -> Stage:
    fitted = Fitted("t", "downstream", toxicity, toxic)
    return Stage(fitted, chance or random.Random(7), before=ends, after=ends)


def put(made: Stage, *items: bytes | None) -> None:
    now = asyncio.get_running_loop().time()
    for item in items:
        made.put(item if item is None else Chunk(item, now))


HOURS = 10_000_000  # milliseconds


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


pytestmark = pytest.mark.anyio


async def test_removed_it_hands_over_all_in_order():
    """Held, waiting, the close."""
    made = stage(Latency(latency_ms=HOURS), Ends())
    put(made, b"a", b"b", b"c", None)
    assert [item and item.data for item in made.remove()] == [b"a", b"b", b"c", None]


async def test_a_changed_toxic_passes_only_what_it_held():
    """What it had not taken yet is taken by the new settings."""
    ends = Ends()
    made = stage(Latency(latency_ms=HOURS), ends)
    put(made, b"a", b"b", b"c")
    made.restart()
    assert ends.came == [b"a"]
    made.fitted.toxic = Latency(latency_ms=0)
    made.restart()
    assert ends.came == [b"a", b"b", b"c"]


async def test_what_was_held_waits_for_room_after_a_change():
    """A client that does not read is no reason to lose or to reorder."""
    ends = Ends()
    ends.has_room = False
    made = stage(LimitData(limit_bytes=3), ends)
    put(made, b"abcdef")
    for _ in range(3):
        made.restart()
    assert ends.came == []
    ends.has_room = True
    made.advance()
    assert ends.came == [b"abc"]


async def test_a_close_that_was_taken_is_not_lost():
    """Neither by a change nor by a removal."""
    ends = Ends()
    made = stage(SlowClose(delay_ms=HOURS), ends)
    put(made, b"a", None)
    assert ends.came == [b"a"]
    made.restart()
    assert ends.came == [b"a", None]
    other = stage(SlowClose(delay_ms=HOURS), Ends())
    put(other, None)
    assert other.remove() == [None]


async def test_what_was_dropped_stays_dropped():
    """A reset_peer that is removed while it waits does not bring back the first chunk."""
    made = stage(ResetPeer(timeout_ms=HOURS), Ends())
    put(made, b"first", b"second")
    assert [item and item.data for item in made.remove()] == [b"second"]


async def test_a_removed_timeout_closes():
    """And brings nothing."""
    made = stage(Timeout(), Ends())
    put(made, b"a")
    assert made.remove() == [None]


async def test_an_ended_one_has_no_room_and_hands_over_nothing():
    """After its close nothing may follow: that holds the sender back."""
    ends = Ends()
    made = stage(LimitData(limit_bytes=1), ends)
    put(made, b"ab", b"c")
    assert ends.came == [b"a", None]
    assert not made.has_room
    assert made.remove() == []


async def test_it_takes_as_much_as_its_toxic_has_room_for():
    """One chunk beside the held one; a thousand for latency."""
    ends = Ends()
    ends.has_room = False
    made = stage(LimitData(limit_bytes=100), ends)
    put(made, b"a")
    assert made.has_room
    put(made, b"b")
    assert not made.has_room
    slow = stage(Latency(latency_ms=HOURS), Ends())
    put(slow, *[b"x"] * 1024)
    assert slow.has_room
    put(slow, b"x")
    assert not slow.has_room


async def test_the_toxicity_is_rolled_at_each_start():
    """As with the original: not once a connection. 0.5 strikes below it."""
    ends = Ends()
    made = stage(Timeout(), ends, 0.5, Chance(0.6, 0.4, 0.5))
    put(made, b"a")
    made.restart()
    put(made, b"dropped")
    made.restart()
    put(made, b"b")
    assert ends.came == [b"a", b"b"]


async def test_it_asks_for_more_when_it_has_taken():
    """Else who was held back would wait for ever."""
    ends = Ends()
    made = stage(LimitData(limit_bytes=100), ends)
    asked = ends.asked
    put(made, b"a")
    assert ends.asked > asked


async def test_it_takes_turns_with_others():
    """A byte a piece without a pause: some now, the rest in later turns of the loop, none lost."""
    ends = Ends()
    put(stage(Slicer(average_bytes=1), ends), bytes(range(250)) * 40)
    assert len(ends.came) < 1_000
    for _ in range(100):
        await asyncio.sleep(0)
    assert b"".join(ends.came) == bytes(range(250)) * 40


async def test_a_delay_counts_from_the_toxic_before():
    """Two latencies add up: the second counts from when the chunk left the first."""
    ends = Ends()
    left: asyncio.Future[float] = asyncio.get_running_loop().create_future()
    ends.put = lambda item: left.set_result(item.at)
    made = stage(Latency(latency_ms=20), ends)
    now = asyncio.get_running_loop().time()
    made.put(Chunk(b"a", now))
    assert await asyncio.wait_for(left, 30) == now + 0.02
