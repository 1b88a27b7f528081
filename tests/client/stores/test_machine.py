"""Any life of a journal, deaths included: what is read is always what was told durable, each consumer at its own mark."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from reattach.core.messages import Mark
from reattach.stores.base import GapNote, Lease, Write
from reattach.stores.leases import current_holder
from reattach.stores.sqlite import SqliteStore
from reattach.stores.sqlite.inspection import inspect
from reattach.testing.stores import PROFILE, SERVER, arrival

CONSUMERS = ("main", "billing")


class Journal(RuleBasedStateMachine):
    """One process after another on one file. Beside it the model: which places there are, and who confirmed up to where."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "runs.db"
        self.kinds: list[str] = []  # by position: "event" or "gap"
        self.removed = 0  # up to here a gap of pruning stands
        self.marks = dict.fromkeys(CONSUMERS, 0)
        self.begin()

    def begin(self) -> None:
        self.store = SqliteStore(self.path)
        self.store.open()
        self.store._writer.execute("PRAGMA synchronous = OFF")  # a process dies here, never the machine
        self.run = self.store.adopt(SERVER, PROFILE, "run_1").run
        holder = current_holder("only")
        taken = [self.store.lease(self.run, name, holder, 0.0) for name in ("", *CONSUMERS)]
        self.leases = {lease.consumer: lease for lease in taken if isinstance(lease, Lease)}
        assert len(self.leases) == 3

    @rule(count=st.integers(1, 4), gap=st.booleans())
    def commit(self, count: int, gap: bool) -> None:
        at, length = len(self.kinds), 1 if gap else count
        batch = () if gap else tuple(arrival(at + each + 1) for each in range(count))
        note = GapNote("hole", "c", "d", 3, {"text": "so far"}) if gap else None
        write = Write(self.run, self.leases[""].token, Mark(at), Mark(at + length), batch, note)
        assert self.store.commit([write]) == [None]
        self.kinds += ["gap"] if gap else ["event"] * count

    @rule(name=st.sampled_from(CONSUMERS), back=st.integers(0, 6), durably=st.booleans())
    def confirm(self, name: str, back: int, durably: bool) -> None:
        position = max(0, len(self.kinds) - back)
        (self.store.mark if durably else self.store.note)(self.leases[name], position)
        self.marks[name] = max(self.marks[name], position)

    @rule()
    def carry(self) -> None:
        self.store.carry()

    @rule(share=st.floats(0, 1))
    def prune(self, share: float) -> None:
        upto = int(share * len(self.kinds))
        while self.store.prune(self.run, upto):
            pass
        for entry in self.store.read(self.run, 0, 1):
            told = entry.element.get("gap")
            if told is not None and told["reason"] == "expired":
                assert entry.position <= max(upto, self.removed), "more was removed than was asked for"
                self.removed = max(self.removed, entry.position)

    @rule()
    def compact(self) -> None:
        while self.store.compact():
            pass

    @rule()
    def die(self) -> None:
        """As by kill -9: nothing is carried, nothing given back; the next process takes over."""
        self.store.abandon()
        self.begin()

    @rule()
    def close(self) -> None:
        self.store.close()
        self.begin()

    @invariant()
    def nothing_is_lost_and_nothing_is_made_up(self) -> None:
        assert self.store.row(self.run).committed.position == len(self.kinds)
        entries = self.store.read(self.run, 0, 10_000)
        begin = entries[0].position if entries else len(self.kinds) + 1
        assert [entry.position for entry in entries] == list(range(begin, len(self.kinds) + 1))
        assert begin == max(1, self.removed) or not entries
        for entry in entries[1:] if self.removed else entries:
            assert ("gap" in entry.element) == (self.kinds[entry.position - 1] == "gap")
        assert self.store.consumers(self.run) == self.marks

    def teardown(self) -> None:
        self.store.close()
        assert inspect(str(self.path)).violations == ()
        self.folder.cleanup()


TestJournal = Journal.TestCase
TestJournal.settings = settings(
    max_examples=40, stateful_step_count=20, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
