"""The JSONL journal beside the one in memory: after anything, the same is read; and again after a new start or a compaction."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from unittest.mock import patch

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reattach.core.messages import Mark
from reattach.stores.base import GapNote, Intent, Lease, Store, Write
from reattach.stores.jsonl import JsonlStore, compaction, logfile
from reattach.stores.leases import current_holder
from reattach.stores.memory import MemoryStore
from reattach.testing.stores import PROFILE, SERVER, arrival, begun, events, mark_at

WHATS = [
    "intend",
    "created",
    "forget",
    "adopt",
    "need",
    "hand out",
    "take",
    "commit",
    "commit",
    "commit",
    "bare",
    "gap",
]
WHATS += ["end", "mark", "note", "carry", "release", "prune", "rewind", "compact", "compact", "reopen"]
STEPS = st.lists(st.tuples(st.sampled_from(WHATS), st.integers(0, 3), st.integers(1, 3)), min_size=10, max_size=50)


@dataclass
class Twins:
    """Two stores that are told the same."""

    file: JsonlStore
    memory: MemoryStore
    leases: dict[int, tuple[Lease, Lease]] = field(default_factory=dict)
    ends: dict[int, list[int]] = field(default_factory=dict)
    """By run, the positions at which a commit ended and that are still there."""

    def both(self, work):
        """Do it on both and return what came, which must be the same."""
        told = []
        for store in (self.file, self.memory):
            try:
                told.append(work(store))
            except Exception as error:
                told.append(type(error))
        assert told[0] == told[1]
        return told[0]

    def step(self, what: str, number: int, count: int) -> None:
        runs = [row.run for row in self.memory.rows()]
        run = runs[number % len(runs)] if runs else 0
        match what:
            case "intend":
                self.both(lambda store: store.intend(Intent(SERVER, PROFILE, f"k{number}", '{"a":1}', f"sha{count}")))
            case "adopt":
                self.both(
                    lambda store: store.adopt(SERVER, PROFILE, f"run_{number}", continues=[None, "run_0"][count % 2])
                )
            case "compact":
                with patch.object(compaction, "STEP_BYTES", 1_000), self.file._writing() as journal:
                    for _ in range(4 * count):
                        if not compaction.step(journal, wasted=-(1 << 30)):
                            break
            case "reopen":
                self.file.close()
                self.file.open()
                for whose in self.memory._leases.values():
                    whose.holder = None  # with its process every lease ends
                self.leases.clear()
            case _ if run:
                self.on_run(what, run, number, count)

    def on_run(self, what: str, run: int, number: int, count: int) -> None:
        lease, main = self.leases.get(run, (Lease(run, "", 0), Lease(run, "main", 0)))
        mark = self.memory.row(run).committed
        ends = self.ends.setdefault(run, [])
        match what:
            case "created":
                self.both(lambda store: store.created(run, run_id=f"run_{number}", session_id="s", status="running"))
                self.leases = {run: held for run, held in self.leases.items() if run in self.memory._logs}
            case "forget":
                self.both(lambda store: store.forget(run))
            case "need":
                self.both(lambda store: store.need(run, ["", "repair", "reconcile"][count - 1]))
            case "hand out":
                self.both(lambda store: store.hand_out(run))
            case "take":
                holder = current_holder(f"c{count}")
                found = [self.both(lambda store, c=c: store.lease(run, c, holder, 60.0)) for c in ("", "main")]
                if all(isinstance(each, Lease) for each in found):
                    self.leases[run] = (found[0], found[1])
            case "release":
                for each in (lease, main):
                    self.both(lambda store, each=each: store.release(each))
                self.leases.pop(run, None)  # the journal in memory would still take its notes
            case "commit" | "bare" | "gap" | "end":
                self.commit(what, lease, mark, count)
            case "mark":
                self.both(lambda store: store.mark(main, min(mark.position, number * count)))
            case "note":
                for store in (self.file, self.memory):
                    store.note(main, min(mark.position, number * count))
            case "carry":
                self.file.carry()
            case "prune" if ends:
                upto = ends[number % len(ends)]
                while self.file.prune(run, upto):
                    pass
                self.memory.prune(run, upto)
                self.ends[run] = [end for end in ends if end > upto]
            case "rewind" if ends:
                at = ends[number % len(ends)]
                back = mark_at(at) if count > 1 else mark_at(at)._replace(epoch=None)
                if self.both(lambda store: store.rewind(lease, back)) is not None:
                    committed = self.memory.row(run).committed.position
                    self.ends[run] = [end for end in ends if end <= committed]

    def commit(self, what: str, lease: Lease, mark: Mark, count: int) -> None:
        last = mark.position + count
        write = Write(
            lease.run,
            lease.token,
            mark,
            mark_at(last),
            tuple(arrival(each) for each in range(mark.position + 1, last + 1)),
        )
        if what == "bare":
            write = write._replace(bare=True)
        elif what == "gap":
            note = GapNote("hole", "a", f"b{count}", count, {"x": [1]})
            write = write._replace(batch=(), gap=note, mark=Mark(mark.position + 1, "e2", 7, None, "c"))
        elif what == "end":
            write = write._replace(
                batch=(), mark=mark, status="completed", outcome='{"status":"completed","events":[{}]}'
            )
        if self.both(lambda store: store.commit([write])) == [None] and write.mark != mark and what != "bare":
            self.ends.setdefault(lease.run, []).append(write.mark.position)

    def check(self) -> None:
        rows = self.both(lambda store: store.rows())
        for row in rows:
            found = [store.read(row.run, 0, 1_000) for store in (self.file, self.memory)]
            # What lies below every mark may be gone from a bare run, and is here.
            kept = len(found[0])
            assert [tuple(each) for each in found[0]] == [tuple(each) for each in found[1][len(found[1]) - kept :]]
            assert kept == len(found[1]) or found[0] == [] or found[0][0].position <= self.file.applied(row.run, "main")
            newest = [[each.position for each in store.newest(row.run, 2)] for store in (self.file, self.memory)]
            assert newest[0] == newest[1][len(newest[1]) - len(newest[0]) :]
            self.both(lambda store, run=row.run: store.applied(run, "main"))
            self.both(lambda store, run=row.run: store.consumers(run))


@given(steps=STEPS)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_whatever_is_done_it_reads_as_the_journal_in_memory_does(steps):
    """Also across a new start, and while the file is written anew in the smallest steps."""
    clock = lambda: 1_800_000_000.25  # noqa: E731
    with tempfile.TemporaryDirectory() as folder, patch.object(logfile, "_sync", lambda handle: None):
        twins = Twins(JsonlStore(Path(folder) / "runs.jsonl", wall=clock), MemoryStore(wall=clock))
        twins.file.open()
        try:
            for run in range(2):
                twins.step("adopt", run, 1)
                twins.step("take", run, 1)
            for step in steps:
                twins.step(*step)
                twins.check()
            twins.step("reopen", 0, 0)
            twins.check()
        finally:
            twins.file.close()


def test_a_compaction_gives_the_room_back(tmp_path):
    """What was pruned and every superseded line; what is left reads as before, now and after a new start."""
    path = tmp_path / "runs.jsonl"
    store = JsonlStore(path)
    store.open()
    row, lease, (main,) = begun(store, "run_1", "main")
    for first in range(1, 2001, 100):
        assert store.commit([events(lease, first, first + 99)]) == [None]
        store.mark(main, first)
    before = path.stat().st_size
    while store.prune(row.run, 1_900):
        pass
    while store.compact():
        pass
    assert path.stat().st_size < before / 10
    assert not path.with_name("runs.jsonl.new").exists()
    live = state(store, row.run)
    assert store.commit([events(lease, 2001, 2001)]) == [None]
    store.close()
    path.with_name("runs.jsonl-marks").unlink()  # what it holds must not be what makes this true
    store.open()
    assert state(store, row.run)[0] == [*live[0], 2001]
    assert store.applied(row.run, "main") == 1_901
    store.close()


def test_what_is_said_meanwhile_is_in_the_new_file(tmp_path, monkeypatch):
    """Commits, a gap, marks and another run, between the steps: the same state, and the same to the next process."""
    monkeypatch.setattr(compaction, "STEP_BYTES", 500)
    path = tmp_path / "runs.jsonl"
    store = JsonlStore(path)
    store.open()
    row, lease, (main,) = begun(store, "run_1", "main")
    store.commit([events(lease, 1, 5)])
    at = store.row(row.run).committed
    note = GapNote("hole", "a", "b", 2, {"x": 1})
    store.commit([Write(lease.run, lease.token, at, Mark(6, "e2", 7, None, "c"), gap=note)])
    inode = path.stat().st_ino
    steps = 0
    while one_step(store):
        steps += 1
        at = store.row(row.run).committed
        if steps < 8:
            write = Write(lease.run, lease.token, at, at._replace(position=at.position + 1), (arrival(at.position),))
            assert store.commit([write]) == [None]
            store.mark(main, steps)
            store.adopt(SERVER, PROFILE, f"other_{steps}")
    assert steps > 8
    assert path.stat().st_ino != inode
    live = state(store, row.run), store.rows(), store.newest(row.run, 100)
    assert live[0][0] == list(range(1, 14))
    assert store.row(row.run).incarnation == row.incarnation + 1
    store.close()
    path.with_name("runs.jsonl-marks").unlink()  # what it holds must not be what makes this true
    store.open()
    assert (state(store, row.run), store.rows(), store.newest(row.run, 100)) == live
    assert store.applied(row.run, "main") == 7
    assert len(store.newest(row.run, 100)) == 7
    store.close()


def one_step(store: JsonlStore) -> bool:
    with store._writing() as journal:
        return compaction.step(journal, wasted=-(1 << 30))


def state(store: Store, run: int) -> tuple[list[int], object]:
    return [entry.position for entry in store.read(run, 0, 10_000)], store.row(run)


def test_nothing_is_written_anew_that_wastes_nothing(tmp_path):
    store = JsonlStore(tmp_path / "runs.jsonl")
    store.open()
    _, lease, _ = begun(store)
    store.commit([events(lease, 1, 2_000)])
    before = (tmp_path / "runs.jsonl").stat()
    assert store.compact() is False
    assert (tmp_path / "runs.jsonl").stat().st_ino == before.st_ino
    store.close()
