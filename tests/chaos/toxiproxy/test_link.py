"""A link between two sockets that are none: whatever is changed on it while bytes pass, none is lost, doubled or reordered."""

import asyncio
import random

from hypothesis import example, given, settings
from hypothesis import strategies as st

from reattach_chaos.toxiproxy.embedded.link import Link
from reattach_chaos.toxiproxy.embedded.stage import Fitted
from reattach_chaos.toxiproxy.toxics.bandwidth import Bandwidth
from reattach_chaos.toxiproxy.toxics.base import Toxic
from reattach_chaos.toxiproxy.toxics.latency import Latency
from reattach_chaos.toxiproxy.toxics.limit_data import LimitData
from reattach_chaos.toxiproxy.toxics.noop import Noop
from reattach_chaos.toxiproxy.toxics.slicer import Slicer
from reattach_chaos.toxiproxy.toxics.slow_close import SlowClose

HOURS = 10_000_000
BYTES = random.Random(7).randbytes(3_000_000)  # a place of them is known by what is there
TOXICS = (
    Noop(),
    Latency(),
    Latency(latency_ms=HOURS),
    Bandwidth(rate_kb_s=0),
    Slicer(average_bytes=3, variation_bytes=2),
    Slicer(average_bytes=1, delay_us=HOURS),
    SlowClose(delay_ms=HOURS),
    LimitData(limit_bytes=1_000_000),
)
"""All that pass every byte in the end."""

QUICK = (Noop(), Latency(), Slicer(average_bytes=300), LimitData(limit_bytes=1_000_000))
"""All that pass every byte at once."""


class Source:
    """Where bytes come from, as a link sees it."""

    reading = True

    def read(self, wanted: bool) -> None:
        self.reading = wanted


class Target:
    """Where they go."""

    def __init__(self) -> None:
        self.came = bytearray()
        self.writable = True
        self.finished = False

    def write(self, data: bytes) -> None:
        assert not self.finished, "written after the close"
        self.came += data

    def finish(self) -> None:
        assert not self.finished, "closed twice"
        self.finished = True


class Play:
    """A link and what a player does to it."""

    def __init__(self, kinds: tuple[Toxic, ...] = TOXICS) -> None:
        self.kinds = kinds
        self.source, self.target = Source(), Target()
        self.link = Link(self.source, self.target, [], random.Random(7))
        self.toxics: list[Fitted] = []
        self.sent = bytearray()
        self.over = False

    def send(self, size: int) -> None:
        """As asyncio: not while reading is paused, nor after the end."""
        if self.source.reading and not self.over:
            data = BYTES[len(self.sent) : len(self.sent) + size]
            self.sent += data
            self.link.feed(data)

    def end(self) -> None:
        if not self.over:
            self.over = True
            self.link.source_over()

    def add(self, which: int) -> None:
        self.toxics.append(Fitted(str(len(self.toxics)), "downstream", 1.0, self.kinds[which % len(self.kinds)]))
        self.link.add(self.toxics[-1])

    def change(self, which: int) -> None:
        if self.toxics:
            fitted = self.toxics[which % len(self.toxics)]
            fitted.toxic = self.kinds[which % len(self.kinds)] if which % 2 else fitted.toxic
            self.link.change(fitted)

    def remove(self, which: int) -> None:
        if self.toxics:
            self.link.remove(self.toxics.pop(which % len(self.toxics)))

    def room(self, which: int) -> None:
        self.target.writable = bool(which % 2)
        if self.target.writable:
            self.link.target_writable()
        else:
            self.link.advance()


moves = st.lists(
    st.one_of(
        st.tuples(st.just("send"), st.sampled_from([1, 2, 500, 40_000])),
        st.tuples(st.sampled_from(["add", "add", "change", "remove", "room"]), st.integers(0, 1000)),
        st.tuples(st.just("end"), st.none()),
    ),
    max_size=30,
)


@settings(max_examples=60, deadline=None)
@given(moves=moves)
@example(moves=[("add", 0), ("add", 3), ("send", 1), ("send", 1), ("send", 1), ("add", 0), ("end", None)])
def test_no_change_loses_doubles_or_reorders_a_byte(moves):
    """At every moment a prefix of what was sent; once all toxics are gone and the target takes, all of it, then the close."""

    async def play() -> None:
        stage = Play()
        for name, value in moves:
            getattr(stage, name)(*([] if value is None else [value]))
            assert stage.sent.startswith(stage.target.came), (name, value)
            assert stage.over or not stage.target.finished
        stage.room(1)
        while stage.toxics:
            stage.remove(0)
        for _ in range(10):  # a slicer of few bytes takes several turns
            await asyncio.sleep(0)
        assert stage.target.came == stage.sent
        assert stage.target.finished == stage.over
        assert stage.over or stage.source.reading
        stage.link.stop()

    asyncio.run(play())


@settings(max_examples=40, deadline=None)
@given(moves=moves)
@example(moves=[("add", 2), ("add", 0), ("add", 2), ("room", 0), ("send", 40_000), ("remove", 1)])
def test_nothing_waits_for_ever(moves):
    """Where no toxic on the link holds anything back: as soon as the target takes, all comes, whatever was changed before."""

    async def play() -> None:
        stage = Play(QUICK)
        for name, value in moves:
            getattr(stage, name)(*([] if value is None else [value]))
        for _ in range(20):
            stage.room(0)
            stage.send(500)
            stage.room(1)
            for _ in range(10):
                await asyncio.sleep(0)
        assert stage.target.came == stage.sent
        assert stage.target.finished == stage.over
        stage.link.stop()

    asyncio.run(play())


@settings(max_examples=40, deadline=None)
@given(
    limit=st.integers(0, 3_000), sizes=st.lists(st.integers(1, 700), max_size=12), others=st.lists(st.integers(0, 2))
)
def test_a_limit_is_exact_among_others_and_for_any_chunks(limit, sizes, others):
    """However the bytes are cut into reads, and whatever stands before the limit."""

    async def play() -> None:
        stage = Play()
        for which in others:
            stage.toxics.append(Fitted("t", "downstream", 1.0, (Noop(), Latency(), Slicer(average_bytes=7))[which]))
            stage.link.add(stage.toxics[-1])
        stage.link.add(Fitted("limit", "downstream", 1.0, LimitData(limit_bytes=limit)))
        for size in sizes:
            stage.send(size)
            for _ in range(10):
                await asyncio.sleep(0)
        assert stage.target.came == stage.sent[:limit]
        assert stage.target.finished == (len(stage.sent) >= max(limit, 1))
        stage.link.stop()

    asyncio.run(play())
