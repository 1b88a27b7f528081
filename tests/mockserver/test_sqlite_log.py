"""What is the SQLite log's own: its lock, its writer, what it survives."""

import asyncio
import contextlib
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from reattach_mockserver.event import Entry
from reattach_mockserver.logs.base import Effect, LogError, LogUnavailable, RunRecord
from reattach_mockserver.logs.sqlite import SqliteLog
from reattach_mockserver.logs.writer import Writer
from reattach_mockserver.moment import moment

pytestmark = pytest.mark.anyio

RUN = RunRecord(
    id="run_a", number=0, principal="p", key="k", digest="d", session_id="s", script="hello", created_at=moment(0),
    metadata=None, token="",
)  # fmt: skip


def entry(name: str) -> Entry:
    return Entry(id=f"evt_{name}", step=name, type="note", time=moment(0), at=0, data="{}")


async def opened_once(path: Path) -> None:
    log = SqliteLog(path)
    await log.open()
    await log.close()


async def test_a_second_server_is_kept_off_and_told_who_has_it(tmp_path):
    log, other = SqliteLog(tmp_path / "log.db"), SqliteLog(tmp_path / "log.db")
    await log.open()
    with pytest.raises(LogUnavailable, match="being served by process"):
        await other.open()
    await log.close()
    await other.open()
    await other.close()


def test_the_lock_dies_with_its_process(tmp_path):
    """After kill -9 the next server has the log at once."""
    code = (
        "import asyncio, pathlib, sys\nfrom reattach_mockserver.logs.sqlite import SqliteLog\n"
        "async def main():\n await SqliteLog(pathlib.Path(sys.argv[1])).open()\n print('open', flush=True)\n"
        " await asyncio.sleep(60)\nasyncio.run(main())"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path / "log.db")], stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout.readline() == "open\n"
        with pytest.raises(LogUnavailable, match=str(holder.pid)):
            asyncio.run(opened_once(tmp_path / "log.db"))
        holder.kill()
        holder.wait()
    asyncio.run(opened_once(tmp_path / "log.db"))


async def test_a_newer_file_is_refused_unchanged(tmp_path):
    path = tmp_path / "log.db"
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(LogError, match="newer"):
        await SqliteLog(path).open()
    connection = sqlite3.connect(path)
    assert connection.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,)
    connection.close()


async def test_what_is_no_database_is_refused(tmp_path):
    path = tmp_path / "log.db"
    path.write_bytes(b"not a database, but long enough to look at" * 100)
    with pytest.raises(LogUnavailable, match="cannot be opened"):
        await SqliteLog(path).open()


async def test_a_commit_is_made_durable_before_it_is_answered(tmp_path):
    """What the header of discovery claims as `power`: WAL with a full sync at each commit."""
    log = SqliteLog(tmp_path / "log.db")
    await log.open()
    modes = await log._writer.do(
        lambda c: (c.execute("PRAGMA journal_mode").fetchone()[0], c.execute("PRAGMA synchronous").fetchone()[0])
    )
    await log.close()
    assert modes == ("wal", 2)


async def test_writers_at_the_same_time_share_commits(tmp_path):
    """Group commit: many appends, few transactions."""
    log = SqliteLog(tmp_path / "log.db")
    await log.open()
    run, _ = await log.create(RUN, [entry("created")])
    statements = []
    await log._writer.do(lambda connection: connection.set_trace_callback(statements.append))
    await asyncio.gather(*(log.append("run_a", run.writer, [entry(str(n))]) for n in range(200)))
    await log.close()
    assert statements.count("COMMIT") < 50


async def test_refused_work_takes_nothing_of_its_group_with_it(tmp_path):
    writer = Writer(lambda: sqlite3.connect(tmp_path / "w.db", isolation_level=None, check_same_thread=False))
    await writer.do(lambda c: c.execute("CREATE TABLE t (n INTEGER)"))

    def refused(connection):
        connection.execute("INSERT INTO t VALUES (-1)")
        raise LookupError("refused")

    works = [(lambda c, n=n: c.execute("INSERT INTO t VALUES (?)", (n,))) for n in range(5)]
    results = await asyncio.gather(*(writer.do(work) for work in [*works, refused, *works]), return_exceptions=True)
    rows = await writer.do(lambda c: [row[0] for row in c.execute("SELECT n FROM t")])
    await writer.close()
    assert rows == [*range(5), *range(5)]
    assert [type(result) for result in results if isinstance(result, Exception)] == [LookupError]


async def test_an_indefinite_failure_is_said_and_the_log_is_opened_again(tmp_path):
    """A commit that fails: everybody in it hears that nothing is known; the next write reads what is there."""

    class Failing(sqlite3.Connection):
        fails = False

        def execute(self, sql, *args):
            if sql == "COMMIT" and Failing.fails:
                Failing.fails = False
                raise sqlite3.OperationalError("disk I/O error")
            return super().execute(sql, *args)

    opened = []

    def connect():
        opened.append(True)
        return sqlite3.connect(tmp_path / "w.db", isolation_level=None, check_same_thread=False, factory=Failing)

    writer = Writer(connect)
    await writer.do(lambda c: c.execute("CREATE TABLE t (n INTEGER)"))
    Failing.fails = True
    with pytest.raises(LogUnavailable, match="disk I/O error"):
        await writer.do(lambda c: c.execute("INSERT INTO t VALUES (1)"))
    await writer.do(lambda c: c.execute("INSERT INTO t VALUES (2)"))
    rows = await writer.do(lambda c: [row[0] for row in c.execute("SELECT n FROM t")])
    await writer.close()
    assert (rows, len(opened)) == ([2], 2)


async def test_a_writer_that_is_waited_for_no_longer_still_writes(tmp_path):
    """A caller that is cancelled leaves the transaction whole."""
    log = SqliteLog(tmp_path / "log.db")
    await log.open()
    task = asyncio.create_task(log.create(RUN, [entry("created")]))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await log.close()
    await log.open()
    assert (await log.run("run_a")).last_sequence == 1
    await log.close()


SCHEMA_1 = """
CREATE TABLE runs (
    id TEXT PRIMARY KEY, number INTEGER UNIQUE, principal TEXT, key TEXT, digest TEXT, session_id TEXT, script TEXT,
    created_at TEXT, metadata TEXT, token TEXT, incarnation INTEGER, status TEXT, first_sequence INTEGER,
    last_sequence INTEGER, last_id TEXT, last_time TEXT, last_at INTEGER, ended_at TEXT, outcome TEXT, release TEXT,
    continues TEXT, continued_by TEXT, cancel_reason TEXT, writer INTEGER, resolution TEXT, resolved_at INTEGER,
    trim_to INTEGER, pins TEXT, UNIQUE (principal, key)
) WITHOUT ROWID;
CREATE TABLE events (
    place INTEGER PRIMARY KEY, id TEXT UNIQUE, step TEXT, type TEXT, settles INTEGER, at INTEGER, body BLOB
);
CREATE TABLE sessions (
    principal TEXT, id TEXT, created_at TEXT, last_run_id TEXT, PRIMARY KEY (principal, id)
) WITHOUT ROWID;
CREATE TABLE marks (run_id TEXT, step TEXT, PRIMARY KEY (run_id, step)) WITHOUT ROWID;
CREATE TABLE effects (
    run_id TEXT, operation_id TEXT, tool TEXT, reversible INTEGER, attempts INTEGER, UNIQUE (run_id, operation_id)
);
CREATE TABLE revoked (token TEXT PRIMARY KEY) WITHOUT ROWID;
INSERT INTO runs VALUES ('run_a', 1, 'p', 'k', 'd', 's', 'hello', '2026-01-01T00:00:00.000Z', NULL, '', 1, 'running', 1, 1,
    'evt_created', '2026-01-01T00:00:00.000Z', 0, NULL, NULL, NULL, NULL, NULL, NULL, 1, NULL, NULL, 1, NULL);
INSERT INTO events VALUES (4294967297, 'evt_created', 'created', 'run.created', 0, 0, '{}');
INSERT INTO effects VALUES ('run_a', 'op_1', 'charge', 0, 2);
PRAGMA user_version = 1;
"""


SCHEMA_2 = """
ALTER TABLE runs ADD COLUMN pause TEXT;
ALTER TABLE runs ADD COLUMN answers TEXT;
ALTER TABLE effects ADD COLUMN result TEXT DEFAULT 'null';
CREATE TABLE other_keys (
    principal TEXT, key TEXT, digest TEXT, run_id TEXT, PRIMARY KEY (principal, key)
) WITHOUT ROWID;
CREATE TABLE operations (
    principal TEXT, run_id TEXT, id TEXT, tool TEXT, status TEXT, reversible INTEGER, external INTEGER, waits INTEGER,
    result TEXT, UNIQUE (principal, id, run_id)
);
INSERT INTO operations VALUES ('p', 'run_a', 'op_1', 'charge', 'committed', 0, 0, 0, 'null');
PRAGMA user_version = 2;
"""


@pytest.mark.parametrize("script", [SCHEMA_1, SCHEMA_1 + SCHEMA_2], ids=["1", "2"])
async def test_a_file_of_an_older_schema_is_carried_on(tmp_path, script):
    """What was done before operations or claims could be asked for can be asked for now; the run goes on where it was."""
    path = tmp_path / "log.db"
    with contextlib.closing(sqlite3.connect(path)) as old:
        old.executescript(script)
    for _ in range(2):
        log = SqliteLog(path)
        await log.open()
        run = await log.run("run_a")
        assert (run.status, run.last_sequence, run.pause, run.answers, run.input) == ("running", 1, None, None, None)
        assert (await log.claim("run_a", run.writer, "op_1")).done is not None
        assert await log.effects("run_a") == (Effect("run_a", "op_1", "charge", reversible=False, attempts=2),)
        known = await log.operation("p", "op_1")
        assert (known.status, known.reversible, known.tool) == ("committed", False, "charge")
        assert (await log.counts()).effects == 1
        await log.close()
    with contextlib.closing(sqlite3.connect(path)) as now:
        assert now.execute("PRAGMA user_version").fetchone() == (3,)
