"""Damaged journals (report B75): typed, put aside whole, what can be read is named, and the next open begins a new one."""

from __future__ import annotations

import os
import sqlite3
import struct
from contextlib import closing
from pathlib import Path

import pytest

from reattach.stores.base import Intent, StoreDamaged, StoreForeign, StoreNewer, Write
from reattach.stores.sqlite import SqliteStore, damage
from reattach.testing.stores import PROFILE, SERVER, begun, events, mark_at

RUNS = [(SERVER, PROFILE, f"run_{number}") for number in range(3)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A journal with three runs going on and one that is done with, closed cleanly: all of it is in the file."""
    path = tmp_path / "runs.db"
    store = SqliteStore(path)
    store.open()
    for _, _, run_id in RUNS:
        _, lease, _ = begun(store, run_id)
        store.commit([events(lease, 1, 400)])
    _, lease, (main,) = begun(store, "run_done", "main")
    store.commit([events(lease, 1, 1)])
    store.commit([Write(lease.run, lease.token, mark_at(1), mark_at(1), status="completed", outcome="{}")])
    store.mark(main, 1)
    store.close()
    return path


def still_open(path: Path) -> SqliteStore:
    """Return a store that stays open, so that the write-ahead log stays, as a killed process leaves it."""
    store = SqliteStore(path)
    store.open()
    _, lease, _ = begun(store, "run_late")
    store.commit([events(lease, 1, 1)])
    return store


def damaged(path: Path) -> StoreDamaged:
    with pytest.raises(StoreDamaged) as caught:
        SqliteStore(path).open()
    return caught.value


def starts_anew(path: Path) -> None:
    store = SqliteStore(path)
    store.open()
    assert store.rows() == []
    store.intend(Intent(SERVER, PROFILE, "k", "{}", "sha"))
    store.close()


def nul(path: Path) -> None:
    path.write_bytes(bytes(path.stat().st_size))


def nul_behind_the_first_pages(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[:8192] + bytes(len(content) - 8192))


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def half_a_json(path: Path) -> None:
    path.write_text('{"runs": [{"id": "run_7", "cur')


def short(path: Path) -> None:
    os.truncate(path, 50)


def scribbled(path: Path) -> None:
    with path.open("r+b") as file:
        for page in range(1, path.stat().st_size // 4096):
            file.seek(page * 4096)
            file.write(b"\xde\xad\xbe\xef" * 16)


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (nul, "unreadable from byte 0 (all zero)"),
        (nul_behind_the_first_pages, "unreadable from byte 8192 (all zero)"),
        (cut, "cut off"),
        (half_a_json, "unreadable from byte 0 (not a SQLite file)"),
        (short, "unreadable"),
        (scribbled, "unreadable"),
    ],
)
def test_a_damaged_file_is_put_aside_and_a_new_one_begun(path, harm, said):
    """B75: after power loss the right size and all NUL, or half of it: one typed error, then the next start works."""
    harm(path)
    content = path.read_bytes()
    error = damaged(path)
    assert said in error.detail
    assert error.moved_to is not None
    assert Path(error.moved_to).name.startswith("runs.db.damaged-2")
    assert Path(error.moved_to).read_bytes() == content, "evidence is not written to"
    starts_anew(path)


def test_cut_at_any_length_it_is_damaged(path):
    """Also inside the last page, whose missing end SQLite reads as zeros; the marks are put aside with it."""
    content = path.read_bytes()
    marks = path.with_name("runs.db-marks")
    noted = marks.read_bytes()
    for length in {0, 1, 99, 512, *range(4095, len(content), 12_289), len(content) - 4096, len(content) - 1}:
        path.write_bytes(content[:length])
        marks.write_bytes(noted)
        error = damaged(path)
        assert error.moved_to is not None, length
        assert Path(f"{error.moved_to}-marks").read_bytes() == noted, length


def test_runs_that_can_still_be_read_are_named(path):
    """Those that are done with need no repair, so they are not among them."""
    cut(path)
    assert set(damaged(path).lost) == set(RUNS)


@pytest.mark.parametrize("harm", [nul_behind_the_first_pages, scribbled])
def test_what_the_log_still_holds_is_read(path, harm):
    """The file has lost its runs, but its write-ahead log has their page; as others are gone, all runs are named."""
    store = still_open(path)
    harm(path)
    lost = damaged(path).lost
    store.close()
    assert set(lost) == {*RUNS, (SERVER, PROFILE, "run_done"), (SERVER, PROFILE, "run_late")}
    starts_anew(path)


def test_zeros_in_the_events_alone_are_found_and_every_run_named(path):
    """The small tables can be read; that a page of events is gone shows in the look at every page of a small file."""
    with closing(sqlite3.connect(path)) as connection:
        pages = connection.execute(
            "SELECT pageno FROM dbstat WHERE name = 'reattach_batches' AND pagetype = 'leaf' ORDER BY pageno"
        ).fetchall()
    with path.open("r+b") as file:
        file.seek((pages[-1][0] - 1) * 4096)
        file.write(bytes(4096))
    error = damaged(path)
    assert "all zero" in error.detail
    assert set(error.lost) == set(RUNS)
    starts_anew(path)


def test_an_empty_file_beside_its_log_is_damaged_and_the_log_kept(path):
    """SQLite would take it for a new database and delete the log, with all that was committed."""
    store = still_open(path)
    log = path.with_name("runs.db-wal").read_bytes()
    os.truncate(path, 0)
    error = damaged(path)
    store.close()
    assert "empty" in error.detail
    assert Path(f"{error.moved_to}-wal").read_bytes() == log
    starts_anew(path)


def test_a_log_without_its_file_is_damaged_too(path):
    store = still_open(path)
    path.unlink()
    assert "empty" in damaged(path).detail
    store.close()
    starts_anew(path)


def test_an_empty_file_with_marks_had_been_a_journal(path):
    os.truncate(path, 0)
    error = damaged(path)
    assert Path(f"{error.moved_to}-marks").exists()
    starts_anew(path)


def test_an_empty_file_alone_is_a_new_journal(tmp_path):
    """As mktemp makes it."""
    path = tmp_path / "runs.db"
    path.touch()
    starts_anew(path)


@pytest.mark.parametrize("content", [b"reattach: scenario/1\nsteps: []\n", b"x", bytes(range(1, 256)) * 9])
def test_a_file_that_never_was_a_journal_is_left_where_it_is(tmp_path, content):
    """A mistyped path must not move somebody's file: nothing of a journal lies beside it."""
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    with pytest.raises(StoreForeign, match="of another kind"):
        SqliteStore(path).open()
    assert path.read_bytes() == content
    assert [each.name for each in tmp_path.iterdir() if "notes" in each.name] == ["notes.txt"]


def test_a_file_whose_maker_died_in_its_first_page_is_a_new_journal(path, tmp_path):
    """SQLite's rollback journal beside it says that the file was empty before: nothing was lost, nothing is put aside."""
    new = tmp_path / "new.db"
    new.write_bytes(path.read_bytes()[:2048])
    head = bytes.fromhex("d9d505f920a163d7") + struct.pack(">IIIII", 0, 7, 0, 512, 4096)  # no page kept, of none before
    new.with_name("new.db-journal").write_bytes(head.ljust(512, b"\0"))
    store = SqliteStore(new)
    store.open()
    assert store.rows(SERVER, PROFILE) == []
    store.close()
    assert not list(tmp_path.glob("new.db.damaged-*"))


def test_a_removed_journal_is_a_new_one_whatever_marks_it_left(path):
    """To remove the file is how a person starts afresh."""
    path.unlink()
    starts_anew(path)


def test_two_damages_in_a_second_keep_both_files(path):
    clock = 1_800_000_000.0
    names = set()
    for _ in range(3):
        half_a_json(path)
        with pytest.raises(StoreDamaged) as caught:
            SqliteStore(path, wall=lambda: clock).open()
        names.add(caught.value.moved_to)
        starts_anew(path)
    assert len(names) == 3
    assert all(Path(name).exists() for name in names)


def test_a_bad_page_met_while_reading_is_looked_for_at_the_next_open(path, monkeypatch):
    """A large file is not read whole at every start; one bad read leaves word that the next start must."""
    monkeypatch.setattr(damage, "_CHECKED_WHOLE", 0)
    with closing(sqlite3.connect(path)) as connection:
        pages = connection.execute(
            "SELECT pageno FROM dbstat WHERE name = 'reattach_batches' AND pagetype = 'leaf' ORDER BY pageno"
        ).fetchall()
    with path.open("r+b") as file:
        file.seek((pages[-1][0] - 1) * 4096)
        file.write(bytes(4096))
    store = SqliteStore(path)
    store.open()
    with pytest.raises(StoreDamaged, match="unreadable") as caught:
        [store.read(row.run, 0, 1000) for row in store.rows()]
    assert caught.value.moved_to is None
    store.close()
    assert damaged(path).moved_to is not None
    starts_anew(path)


def test_newer_is_not_damaged(path):
    """Its own kind of error, so that nobody deletes it."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE reattach_meta SET value = '99' WHERE name = 'schema'")
    assert isinstance(damaged(path), StoreNewer)
    assert path.exists()
