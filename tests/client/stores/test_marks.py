"""FILE-marks: what counts in it, whatever else is in it."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from reattach.stores.leases import current_holder
from reattach.stores.marks import MarksFile
from reattach.stores.sqlite import SqliteStore
from reattach.testing.stores import DEAD, PROFILE, SERVER, begun, events

JOURNAL = bytes(range(16))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runs.db-marks"


@pytest.fixture
def marks(path: Path) -> MarksFile:
    return MarksFile(path, JOURNAL, 0o600)


def test_the_newest_note_counts_for_everyone(path, marks):
    """Also through another mapping of the file."""
    slots = marks.slots(1, "7:main", 1, 1, 0)
    other = MarksFile(path, JOURNAL, 0o600)
    for position in (1, 2, 5):
        slots.note(position)
        assert other.newest(1, "7:main", 1, 1) == position
    slots.note(4)
    assert other.newest(1, "7:main", 1, 1) == 5


@pytest.mark.parametrize(
    "asked",
    [(2, "7:main", 1, 1), (1, "8:main", 1, 1), (1, "7:main", 2, 1), (1, "7:main", 1, 2)],
)
def test_a_note_of_another_is_none(marks, asked):
    """Another lease, owner, incarnation or token."""
    marks.slots(1, "7:main", 1, 1, 0).note(5)
    assert marks.newest(1, "7:main", 1, 1) == 5
    assert marks.newest(*asked) == 0


def test_a_note_that_is_torn_anywhere_leaves_the_one_before(path, marks):
    """Killed after any number of bytes: each prefix of the new slot over the old one."""
    slots = marks.slots(1, "7:main", 3, 2, 0)
    for position in (1, 2):
        slots.note(position)
    before = path.read_bytes()
    slots.note(3)
    after = path.read_bytes()
    changed = [at for at, (old, new) in enumerate(zip(before, after, strict=True)) if old != new]
    for cut in range(changed[0], changed[-1] + 2):
        path.write_bytes(after[:cut] + before[cut:])
        found = MarksFile(path, JOURNAL, 0o600).newest(1, "7:main", 3, 2)
        assert found == (3 if cut == changed[-1] + 1 else 2), cut
        path.write_bytes(after[: changed[0]] + bytes(cut - changed[0]) + before[cut:])
        assert MarksFile(path, JOURNAL, 0o600).newest(1, "7:main", 3, 2) == 2, "zeros as the write begins"


@pytest.mark.parametrize(
    "content",
    [b"", b"short", bytes(4096), os.urandom(4096), b"reattach-marks/1" + bytes(range(1, 17)) + bytes(4064)],
    ids=["empty", "short", "zeros", "garbage", "of another journal"],
)
def test_a_file_that_is_not_this_journals_is_replaced(path, content):
    """By another file of the name: a process may have the old one mapped, and to shorten it would kill that."""
    path.write_bytes(content)
    old = path.open("rb")
    marks = MarksFile(path, JOURNAL, 0o600)
    marks.slots(1, "7:main", 1, 1, 0).note(5)
    assert marks.newest(1, "7:main", 1, 1) == 5
    with old:
        assert old.read() == content


def test_any_bytes_behind_the_head_are_no_marks(path, marks):
    with path.open("r+b") as file:
        file.seek(64)
        file.write(os.urandom(6400))
    assert [marks.newest(number, "7:main", 1, 1) for number in range(1, 101)] == [0] * 100


def test_the_file_grows_with_the_leases(path, marks):
    """Slots that were handed out before, and other mappings, go on; what is beyond the file is no mark."""
    first = marks.slots(1, "1:main", 1, 1, 0)
    other = MarksFile(path, JOURNAL, 0o600)
    assert other.newest(5000, "5000:main", 1, 1) == 0
    marks.slots(5000, "5000:main", 1, 1, 0).note(9)
    first.note(3)
    assert other.newest(5000, "5000:main", 1, 1) == 9
    assert other.newest(1, "1:main", 1, 1) == marks.newest(1, "1:main", 1, 1) == 3
    assert path.stat().st_size % 65536 == 0


def test_notes_from_many_threads_end_at_the_highest(marks):
    slots = marks.slots(1, "7:main", 1, 1, 0)
    start = threading.Barrier(4)

    def work(first: int) -> None:
        start.wait(10)
        for position in range(first, 4001, 4):
            slots.note(position)

    threads = [threading.Thread(target=work, args=[first]) for first in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert marks.newest(1, "7:main", 1, 1) == 4000


@pytest.fixture
def journal(tmp_path: Path):
    store = SqliteStore(tmp_path / "runs.db")
    store.open()
    yield store
    store.close()


def test_a_note_above_the_committed_position_does_not_count(journal):
    """Neither noted nor carried."""
    row, lease, (main,) = begun(journal, "run_1", "main")
    journal.commit([events(lease, 1, 3)])
    journal.note(main, 2)
    journal.note(main, 7)
    assert journal.applied(row.run, "main") <= 3
    journal.carry()
    assert journal.applied(row.run, "main") <= 3


def test_a_journal_put_back_from_a_backup_does_not_believe_newer_marks(journal, tmp_path):
    """They are of events that it does not have, and stay so when it has come that far again."""
    row, lease, _ = begun(journal)
    journal.lease(row.run, "main", DEAD, 60.0)
    journal.commit([events(lease, 1, 3)])
    journal.close()
    backup = (tmp_path / "runs.db").read_bytes()
    journal.open()
    main = journal.lease(row.run, "main", DEAD, 60.0)
    journal.commit([events(lease, 4, 9)])
    journal.note(main, 8)
    journal.close()
    (tmp_path / "runs.db").write_bytes(backup)
    journal.open()
    assert journal.applied(row.run, "main") == 0
    main = journal.lease(row.run, "main", current_holder("next"), 60.0)
    journal.commit([events(lease, 4, 9)])
    assert journal.applied(row.run, "main") == 0


@pytest.mark.parametrize("harm", [lambda path: path.unlink(), lambda path: path.write_bytes(b"x")])
def test_without_its_marks_file_a_journal_keeps_what_was_carried(journal, tmp_path, harm):
    """Lost is at most what was confirmed since."""
    row, lease, (main,) = begun(journal, "run_1", "main")
    journal.commit([events(lease, 1, 5)])
    journal.note(main, 3)
    journal.carry()
    journal.close()
    harm(tmp_path / "runs.db-marks")
    journal.open()
    assert journal.applied(row.run, "main") == 3


def test_a_carry_without_notes_writes_nothing(journal):
    """It comes every second."""
    _, lease, (main,) = begun(journal, "run_1", "main")
    journal.commit([events(lease, 1, 5)])
    journal.note(main, 3)
    journal.carry()
    statements: list[str] = []
    journal._writer.set_trace_callback(statements.append)
    journal.carry()
    assert statements == []


def test_a_noted_mark_goes_with_the_next_commit(journal, tmp_path):
    """In its transaction: it needs no flush of its own."""
    _, lease, (main,) = begun(journal, "run_1", "main")
    journal.commit([events(lease, 1, 5)])
    journal.note(main, 4)
    journal.commit([events(lease, 6, 6)])
    (tmp_path / "runs.db-marks").unlink()
    other = SqliteStore(tmp_path / "runs.db")
    other.open()
    assert other.applied(other.find(SERVER, PROFILE, run_id="run_1").run, "main") == 4
    other.close()


def test_the_tables_mark_never_goes_back(journal, tmp_path):
    """Also where no file of marks is left to know better."""
    row, lease, (main,) = begun(journal, "run_1", "main")
    journal.commit([events(lease, 1, 5)])
    journal.mark(main, 3)
    journal.mark(main, 2)
    journal.close()
    (tmp_path / "runs.db-marks").unlink()
    journal.open()
    assert journal.applied(row.run, "main") == 3


def test_a_take_that_is_not_durable_yet_wipes_out_nothing(marks):
    """Killed, or the disk full, between taking a lease and its commit: what the owner before noted still counts."""
    former = marks.slots(1, "7:main", 1, 1, 0)
    former.note(5)
    taken = marks.slots(1, "7:main", 1, 2, 5)
    assert marks.newest(1, "7:main", 1, 1) == 5
    taken.claim()
    former.note(6)
    assert (marks.newest(1, "7:main", 1, 1), marks.newest(1, "7:main", 1, 2)) == (0, 5)
    former.claim()
    taken.note(7)
    assert marks.newest(1, "7:main", 1, 2) == 7
