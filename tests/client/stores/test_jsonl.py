"""The JSONL journal as a file: what a person reads, a second process, and what a crash leaves."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from zlib import crc32

import pytest

from reattach import errors
from reattach.runtime.failures import of_fault
from reattach.stores import open_store
from reattach.stores.base import Intent, Lease, StoreDamaged, StoreFailed, StoreForeign, StoreNewer, StoreTaken, Write
from reattach.stores.inspection import identity, inspect
from reattach.stores.jsonl import JsonlStore
from reattach.stores.leases import current_holder
from reattach.testing.stores import PROFILE, SERVER, arrival, begun, events, gap, mark_at


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runs.jsonl"


@pytest.fixture
def store(path: Path) -> Iterator[JsonlStore]:
    store = JsonlStore(path)
    store.open()
    yield store
    store.close()


def lines_of(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def again(path: Path) -> JsonlStore:
    store = JsonlStore(path)
    store.open()
    return store


def test_the_name_says_it(path):
    assert isinstance(open_store(path), JsonlStore)
    assert isinstance(open_store("runs.jsonl"), JsonlStore)


def test_each_line_is_json_with_its_number_and_a_crc_of_what_comes_before_it(store, path):
    """The first one says what the file is, and of which schema."""
    store.intend(Intent(SERVER, PROFILE, "k", '{"input":"ü"}', "sha"))
    _, lease, _ = begun(store)
    store.commit([events(lease, 1, 3), gap(lease, 4)])
    told = lines_of(path)
    assert told[0]["reattach"] == "journal/1"
    assert [each["seq"] for each in told] == list(range(len(told)))
    assert [each["kind"] for each in told] == ["journal", "intended", "adopted", "lease", "events", "gap"]
    for line in path.read_bytes().splitlines():
        body, crc = line[:-18], line[-18:]
        assert crc == b',"crc":"%08x"}' % crc32(body)


def test_a_person_finds_their_events_in_it(store, path):
    """One line a commit; its events as they came."""
    _, lease, _ = begun(store)
    store.commit([events(lease, 1, 2)])
    (line,) = [line for line in lines_of(path) if line["kind"] == "events"]
    assert [each["event"]["data"]["text"] for each in line["events"]] == ["word 1 ", "word 2 "]
    assert line["mark"] == [2, "e1", 2, "e2", "e1.2"]


def test_a_vendors_line_ends_break_no_line(store, path):
    """JSON that came over several lines is kept, its line ends become white space; those in texts are escaped anyway."""
    one = arrival(1, "a\r\nb")._replace(stored='{\n "id": "e1",\r\n "data": {"text": "a\\r\\nb"}\n}')
    row, lease, _ = begun(store)
    store.commit([Write(lease.run, lease.token, mark_at(0), mark_at(1), (one,))])
    store.close()
    store = again(path)
    (entry,) = store.read(row.run, 0, 10)
    assert entry.element["text"] == entry.element["event"]["data"]["text"] == "a\r\nb"
    assert len(path.read_bytes().split(b"\n")) == len(lines_of(path)) + 1
    store.close()


def test_what_was_live_is_what_is_read(store, path):
    """Rows, events, marks and tokens are the same to the next process: both are made by the same lines."""
    intent, _ = store.intend(Intent(SERVER, PROFILE, "k", "{}", "sha"))
    gone, _ = store.intend(Intent(SERVER, PROFILE, "k2", "{}", "sha"))
    row, lease, (main,) = begun(store, "run_1", "main")
    store.commit([events(lease, 1, 3), gap(lease, 4)])
    store.mark(main, 2)
    store.created(intent.run, run_id="run_1", session_id="s", status="running")
    store.forget(gone.run)
    at = mark_at(13)._replace(position=4, id=None, cursor="e1.13")
    store.commit([Write(lease.run, lease.token, at, at, status="completed", outcome="{}")])
    store.hand_out(row.run)
    live = (store.rows(), store.read(row.run, 0, 10), store.newest(row.run, 10), store.applied(row.run, "main"))
    store.close()
    store = again(path)
    assert (
        store.rows(),
        store.read(row.run, 0, 10),
        store.newest(row.run, 10),
        store.applied(row.run, "main"),
    ) == live
    assert live[0][0].settled_at is not None
    assert store.find(SERVER, PROFILE, key="k2") is None
    new, _ = store.intend(Intent(SERVER, PROFILE, "k3", "{}", "sha"))
    assert new.run > row.run, "a number is never given twice"
    found = store.lease(row.run, "", current_holder("next"), 60.0)
    assert found == Lease(row.run, "", lease.token + 1)
    store.close()


def test_its_files_are_for_its_owner_alone(store, path):
    """B67's kind: prompts and answers are in it; the mode of a file that was there is kept for all."""
    for name in ("runs.jsonl", "runs.jsonl-marks", "runs.jsonl-lock"):
        assert stat.S_IMODE(path.with_name(name).stat().st_mode) == 0o600


# one process ---------------------------------------------------------------------------------------------------------

SECOND = """
import sys
from reattach.stores.jsonl import JsonlStore
from reattach.stores.base import StoreTaken
try:
    JsonlStore(sys.argv[1]).open()
except StoreTaken as error:
    print(error)
"""


def second(path: Path) -> str:
    done = subprocess.run([sys.executable, "-c", SECOND, str(path)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_second_process_is_refused_by_name(store, path):
    """It is told who has it; the first goes on, and when it has closed the second may."""
    before = path.read_bytes()
    assert second(path).startswith(f"pid {os.getpid()} on ")
    assert path.read_bytes() == before
    begun(store)
    store.close()
    assert second(path) == ""


def test_the_refusal_says_what_to_do():
    """B77: typed, at once, with the holder and the way out."""
    error = of_fault(StoreTaken("pid 4711 on box since 2026"), "runs.jsonl")
    assert isinstance(error, errors.StoreBusy)
    assert "in use by pid 4711 on box since 2026" in str(error)
    assert "SQLite" in str(error)


def test_two_stores_of_one_process_share_it(store, path):
    """As two clients in one program have it: either's lease is the other's Busy, either's end leaves it to the other."""
    other = again(path)
    row, lease, _ = begun(store)
    assert not isinstance(other.lease(row.run, "", current_holder("other"), 60.0), Lease)
    other.close()
    assert store.commit([events(lease, 1, 1)]) == [None]
    with pytest.raises(StoreFailed, match="not open"):
        other.rows()


def test_closing_frees_it_beside_a_child_that_still_has_it_open(path):
    """As a program that another thread just started has, from its fork to its exec."""
    store = again(path)
    inherited = os.dup(store._journal._lock._handle)
    store.close()
    again(path).close()
    os.close(inherited)


def test_a_killed_process_leaves_it_free_with_its_marks(path):
    """SIGKILL ends the lock and every lease; what was noted counts without any flush."""
    program = f"""
import os, signal
from reattach.stores.jsonl import JsonlStore
from reattach.testing.stores import begun, events
store = JsonlStore({str(path)!r}); store.open()
row, lease, (main,) = begun(store, "run_1", "main")
store.commit([events(lease, 1, 5)])
store.note(main, 4)
os.kill(os.getpid(), signal.SIGKILL)
"""
    assert subprocess.run([sys.executable, "-c", program], timeout=60).returncode == -9
    store = again(path)
    row = store.find(SERVER, PROFILE, run_id="run_1")
    assert store.applied(row.run, "main") == 4
    assert isinstance(store.lease(row.run, "main", current_holder("next"), 60.0), Lease)
    assert store.applied(row.run, "main") == 4
    store.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_child_is_another_process(path):
    """The parent's object is closed in it, a new one is refused by name, and its end takes nothing from the parent."""
    program = f"""
import os
from reattach.stores.jsonl import JsonlStore
from reattach.stores.base import StoreFailed, StoreTaken
from reattach.testing.stores import begun, events
store = JsonlStore({str(path)!r}); store.open()
row, lease, (main,) = begun(store, "run_1", "main")
store.commit([events(lease, 1, 2)])
pid = os.fork()
if pid == 0:
    store.note(main, 2)
    for call, kind in ((store.rows, StoreFailed), (store.open, StoreTaken)):
        try:
            call()
        except kind as error:
            print(type(error).__name__, flush=True)
    store.close()
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
assert store.applied(row.run, "main") == 0
assert store.commit([events(lease, 3, 3)]) == [None]
print("the parent went on", flush=True)
pid = os.fork()
if pid == 0:
    import sys
    sys.stdin.read()
    os._exit(0)
store.close()
JsonlStore({str(path)!r}).open()
print("and opened it again beside a living child")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, input="")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "StoreFailed",
        "StoreTaken",
        "the parent went on",
        "and opened it again beside a living child",
    ]


# looking at it -------------------------------------------------------------------------------------------------------


def test_it_is_checked_while_it_is_written(store, path):
    """Counts and its own name; a line that is only begun is its writer's, no fault."""
    _, lease, (main,) = begun(store, "run_1", "main")
    store.commit([events(lease, 1, 3), gap(lease, 4)])
    store.mark(main, 2)
    with path.open("ab") as file:
        file.write(b'{"seq":')
    report = inspect(str(path))
    assert (report.runs, report.events, report.gaps, report.marks, report.violations) == (1, 3, 1, 1, ())
    assert identity(str(path)) == lines_of_first(path)["journal"]


def lines_of_first(path: Path) -> dict:
    return json.loads(path.read_bytes().partition(b"\n")[0])


def test_a_bad_line_in_it_is_found(store, path):
    _, lease, _ = begun(store, "run_1")
    store.commit([events(lease, 1, 3)])
    store.commit([events(lease, 4, 4)])
    path.write_bytes(path.read_bytes().replace(b"word 2", b"word X"))
    report = inspect(str(path))
    assert len(report.violations) == 1
    assert "unreadable from byte" in report.violations[0]


# what a crash leaves -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("end", [b"{", b'{"seq":9,"kind":"mark"', b"\0" * 50, b"\0" * 50 + b"\n", b"x\ny\nz"])
def test_a_torn_end_is_cut_off_and_written_over(path, end):
    """What was never told durable: nothing is said, nothing is lost, the next line follows the last whole one."""
    store = again(path)
    row, lease, _ = begun(store)
    store.commit([events(lease, 1, 3)])
    store.close()
    whole = path.read_bytes()
    with path.open("ab") as file:
        file.write(end)
    store = again(path)
    assert path.read_bytes() == whole
    found = store.lease(row.run, "", current_holder("next"), 60.0)
    assert isinstance(found, Lease)
    assert store.commit([events(found, 4, 4)]) == [None]
    store.close()
    assert inspect(str(path)).violations == ()


def test_a_whole_line_that_nobody_was_told_of_is_kept(path):
    """Killed between the write and the flush: it is flushed before anybody sees it."""
    store = again(path)
    row, lease, _ = begun(store)
    before = path.read_bytes()
    marks = path.with_name("runs.jsonl-marks").read_bytes()
    store.commit([events(lease, 1, 3)])
    after = path.read_bytes()
    store.close()
    path.write_bytes(before)
    path.with_name("runs.jsonl-marks").write_bytes(marks)
    with path.open("ab") as file:
        file.write(after[len(before) :])
    store = again(path)
    assert store.row(row.run).committed == mark_at(3)
    store.close()


# damage --------------------------------------------------------------------------------------------------------------

RUNS = [(SERVER, PROFILE, f"run_{number}") for number in range(3)]


@pytest.fixture
def full(path: Path) -> Path:
    """A journal with three runs going on and one that is done with, closed cleanly."""
    store = again(path)
    for _, _, run_id in RUNS:
        _, lease, _ = begun(store, run_id)
        store.commit([events(lease, 1, 20)])
    _, lease, (main,) = begun(store, "run_done", "main")
    store.commit([events(lease, 1, 1)])
    store.commit([Write(lease.run, lease.token, mark_at(1), mark_at(1), status="completed", outcome="{}")])
    store.mark(main, 1)
    store.close()
    return path


def damaged(path: Path) -> StoreDamaged:
    with pytest.raises(StoreDamaged) as caught:
        JsonlStore(path).open()
    return caught.value


def starts_anew(path: Path) -> None:
    store = again(path)
    assert store.rows() == []
    store.intend(Intent(SERVER, PROFILE, "k", "{}", "sha"))
    store.close()


def nul(content: bytes) -> bytes:
    return bytes(len(content))


def nul_from_the_middle(content: bytes) -> bytes:
    return content[:8192] + bytes(len(content) - 8192)


def nul_in_the_middle(content: bytes) -> bytes:
    return content[:2048] + bytes(4096) + content[6144:]


def one_bit(content: bytes) -> bytes:
    at = len(content) // 2
    return content[:at] + bytes([content[at] ^ 4]) + content[at + 1 :]


def a_line_less(content: bytes) -> bytes:
    lines = content.splitlines(keepends=True)
    return b"".join(lines[:3] + lines[4:])


def a_line_twice(content: bytes) -> bytes:
    lines = content.splitlines(keepends=True)
    return b"".join([*lines[:4], lines[3], *lines[4:]])


def without_its_first_line(content: bytes) -> bytes:
    return content.partition(b"\n")[2]


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (nul, "unreadable from byte 0 (all zero)"),
        (nul_from_the_middle, "cut off"),
        (nul_in_the_middle, "unreadable from byte"),
        (one_bit, "unreadable from byte"),
        (a_line_less, "unreadable from byte"),
        (a_line_twice, "unreadable from byte"),
        (without_its_first_line, "unreadable from byte 0"),
    ],
)
def test_a_damaged_file_is_put_aside_and_a_new_one_begun(full, harm, said):
    """B75: after power loss the right size and all NUL, or a part of it: one typed error, then the next start works."""
    content = harm(full.read_bytes())
    full.write_bytes(content)
    error = damaged(full)
    assert said in error.detail
    assert Path(error.moved_to).name.startswith("runs.jsonl.damaged-2")
    assert Path(error.moved_to).read_bytes() == content, "evidence is not written to"
    if harm is not nul:
        assert set(error.lost) & set(RUNS)
    starts_anew(full)


def test_cut_at_any_length_it_is_damaged_never_shorter(full):
    """Every length near the ends of lines, and some between: what was told durable is missing, and that is said."""
    content = full.read_bytes()
    marks = full.with_name("runs.jsonl-marks")
    noted = marks.read_bytes()
    ends = [at + 1 for at, byte in enumerate(content) if byte == 10]
    lengths = {0, 1, *range(7, len(content), 997)} | {end + by for end in ends for by in (-1, 0, 1)}
    for length in sorted(each for each in lengths if each < len(content)):
        full.write_bytes(content[:length])
        marks.write_bytes(noted)
        error = damaged(full)
        assert "cut off" in error.detail or "empty" in error.detail or "byte 0" in error.detail, (length, error.detail)
        whole = content[: length + 1].count(b"\n")
        assert ((SERVER, PROFILE, "run_0") in error.lost) == (whole > 1), length


def test_a_bad_end_without_its_marks_is_damaged(full):
    """Nobody knows then what was told durable, so nobody cuts."""
    with full.open("ab") as file:
        file.write(b"{")
    full.with_name("runs.jsonl-marks").unlink()
    assert "without its marks" in damaged(full).detail
    starts_anew(full)


def test_a_whole_file_needs_no_marks(full):
    """As a copy of it elsewhere has none; only unflushed marks are gone."""
    full.with_name("runs.jsonl-marks").unlink()
    store = again(full)
    assert len(store.rows()) == 4
    store.close()


@pytest.mark.parametrize(
    "content", [b"reattach: scenario/1\n", b"x", b'{"reattach":"recording/1"}\n', b"SQLite format 3\0"]
)
def test_a_file_that_never_was_a_journal_is_left_where_it_is(tmp_path, content):
    """A mistyped path must not move somebody's file, nor leave one beside it."""
    path = tmp_path / "notes.jsonl"
    path.write_bytes(content)
    with pytest.raises(StoreForeign, match="of another kind"):
        JsonlStore(path).open()
    assert path.read_bytes() == content
    assert [each.name for each in tmp_path.iterdir()] == ["notes.jsonl"]


def test_newer_is_not_damaged(full):
    """Its own kind of error, so that nobody deletes it; whatever else its lines are like."""
    content = full.read_bytes().replace(b'"reattach":"journal/1"', b'"reattach":"journal/2"')
    full.write_bytes(content)
    assert isinstance(damaged(full), StoreNewer)
    assert full.read_bytes() == content
    with pytest.raises(StoreNewer):
        inspect(str(full))


def test_an_empty_file_alone_is_a_new_journal(path):
    """As mktemp makes it."""
    path.touch()
    starts_anew(path)


def test_a_removed_journal_is_a_new_one_whatever_marks_it_left(full):
    """To remove the file is how a person starts afresh."""
    full.unlink()
    starts_anew(full)


def test_a_bad_read_is_an_error_and_never_an_event(full):
    """What went bad after the opening: the line's CRC is looked at again when it is read."""
    store = again(full)
    full.write_bytes(full.read_bytes().replace(b"word 2 ", b"word X "))
    with pytest.raises(StoreDamaged, match="unreadable from byte"):
        store.read(1, 0, 100)
    store.close()


@pytest.mark.parametrize("kind", [os.mkdir, os.mkfifo], ids=["folder", "pipe"])
def test_what_is_no_file_is_refused_without_waiting(path, kind):
    """Opening a named pipe waits for its other end, for ever."""
    kind(path)
    with pytest.raises(StoreFailed, match="no regular file"):
        JsonlStore(path).open()
