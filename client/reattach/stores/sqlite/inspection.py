"""Looking at a journal file from outside, read only, also while others write it: is it whole, and does it keep the law?

Nothing here repairs, migrates or makes a file. All is read in one transaction, so that a writer at work is no fault. The law is
`stores/base.py`'s: no holes, applied at or below committed, what an element says is what its place says.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import quote

from reattach.stores.base import StoreDamaged
from reattach.stores.entry import outcome_of
from reattach.stores.inspection import Report
from reattach.stores.sqlite.errors import BUSY_SECONDS, translating
from reattach.stores.sqlite.schema import VERSION, version_of
from reattach.stores.tables.runs import POSITION


def identity(path: str) -> str:
    """Return the journal's own random name, which no other journal has.

    Raises:
        StoreDamaged, StoreFailed: It cannot be read.
    """
    with translating(), _reading(path) as connection:
        found = connection.execute("SELECT value FROM reattach_meta WHERE name = 'journal'").fetchone()
        if found is None:
            raise StoreDamaged("without a name of its own in reattach_meta")
        return str(found[0])


def inspect(path: str) -> Report:
    """Read the whole journal and return what was found.

    Raises:
        StoreNewer: Its schema is newer than this version knows.
        StoreDamaged: It cannot be read as a journal at all.
        StoreFailed: It cannot be opened.
    """
    with translating(), _reading(path) as connection:
        schema = version_of(connection)
        if not schema:
            raise StoreDamaged("without the tables of a journal")
        if schema < VERSION:
            return Report(schema=schema)  # its tables are older than what we know; opening it brings them up
        broken = [text for (text,) in connection.execute("PRAGMA integrity_check") if text != "ok"]
        if broken:
            return Report(schema=schema, violations=tuple(f"the file: {text}" for text in broken))
        violations = [*_runs(connection), *_strays(connection), *_marks(connection)]
        count = connection.execute(
            """SELECT (SELECT count(*) FROM reattach_runs), (SELECT coalesce(sum(batch - first + 1), 0) FROM reattach_batches),
            (SELECT count(*) FROM reattach_gaps), (SELECT count(*) FROM reattach_marks)"""
        ).fetchone()
        runs, events, gaps, marks = count
        return Report(schema=schema, runs=runs, events=events, gaps=gaps, marks=marks, violations=tuple(violations))


@contextmanager
def _reading(path: str) -> Iterator[sqlite3.Connection]:
    name = quote(str(Path(path).resolve()))
    with closing(
        sqlite3.connect(f"file:{name}?mode=ro", uri=True, timeout=BUSY_SECONDS, isolation_level=None)
    ) as connection:
        connection.execute("BEGIN")
        yield connection


def _runs(connection: sqlite3.Connection) -> Iterator[str]:
    for run, run_id, key, position, outcome in connection.execute(
        f"SELECT run, run_id, key, {POSITION}, outcome FROM reattach_runs AS r ORDER BY run"
    ).fetchall():
        name = f"run {run_id or key!r}"
        yield from (f"{name}: {text}" for text in _places(connection, run))
        if outcome is not None:
            try:
                outcome_of(outcome, run_id or "")
            except (ValueError, KeyError, TypeError) as error:
                yield f"{name}: its outcome cannot be read ({error!r})"
        if position and run_id is None:
            yield f"{name}: it has events up to {position} and no id"


def _places(connection: sqlite3.Connection, run: int) -> Iterator[str]:
    """Yield what is wrong with the positions of one run: they must follow one another, from 1 on or from what was removed."""
    last = 0
    for first, until, events, pruned in connection.execute(
        """SELECT first, batch, events, CASE WHEN json_valid(events) THEN json_type(events, '$[0].digest') IS NULL END
        FROM reattach_batches WHERE run = ?1
        UNION ALL SELECT at, at, NULL, after IS NULL AND reason = 'expired' FROM reattach_gaps WHERE run = ?1 ORDER BY 1, 2""",
        (run,),
    ):
        if last == 0 and pruned:
            last = (
                first - 1
            )  # a gap that pruning left, or, with keep="cursor", places of which the applied ones are dropped
        if first > last + 1:
            yield f"{last + 1} to {first - 1} are missing"
        elif first <= last:
            yield f"{first} is there twice"
        last = max(last, until)
        if events is None:
            continue
        try:
            elements = json.loads(events)
            if len(elements) != until - first + 1:
                yield f"{first} to {until} holds {len(elements)} events"
            for at, element in enumerate(elements, first):
                if not {"id", "type", "kind"} <= element.keys():
                    yield f"{at} is no event"
        except (ValueError, TypeError, AttributeError) as error:
            yield f"{first} to {until} cannot be read ({error})"


def _strays(connection: sqlite3.Connection) -> Iterator[str]:
    for table in ("batches", "gaps", "marks"):
        for (run,) in connection.execute(
            f"SELECT DISTINCT run FROM reattach_{table} WHERE run NOT IN (SELECT run FROM reattach_runs)"
        ):
            yield f"{table} of run number {run}, which is not there"


def _marks(connection: sqlite3.Connection) -> Iterator[str]:
    for run_id, consumer, applied, position in connection.execute(
        f"""SELECT coalesce(r.run_id, r.key), m.consumer, m.applied, {POSITION}
        FROM reattach_marks AS m JOIN reattach_runs AS r ON r.run = m.run"""
    ):
        if applied > position:
            yield f"run {run_id!r}: {consumer!r} confirmed {applied}, and only {position} is committed"
