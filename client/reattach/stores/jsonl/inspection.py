"""Looking at a JSONL journal from outside, read only, also while its process writes: is it whole, and does it keep the law?

A line that is only begun is no fault: its writer may be at it, and the next opening cuts it off.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from reattach.stores.base import StoreDamaged, StoreNewer
from reattach.stores.entry import outcome_of
from reattach.stores.inspection import Report
from reattach.stores.jsonl import lines, opening
from reattach.stores.jsonl.journal import failing
from reattach.stores.jsonl.tables import Tables


def identity(path: str) -> str:
    """See `reattach.stores.inspection.identity`."""
    return _found(path).journal.hex()


def inspect(path: str) -> Report:
    """See `reattach.stores.inspection.inspect`."""
    found = _found(path)
    tables = found.tables
    violations = [] if found.rest in ("", "torn") else [f"the file: {found.rest}"]
    gaps = events = 0
    with failing(), Path(path).open("rb") as file:
        for run, log in tables.logs.items():
            name = f"run {tables.rows[run].run_id or tables.rows[run].key!r}"
            for place in log.places:
                file.seek(place.offset)
                elements = lines.events_of(file.read(place.length))
                elements = elements[: place.last - place.first + 1]
                violations += (f"{name}: {text}" for text in _elements(elements, place.first, place.last))
                some = sum(isinstance(element, dict) and element.get("kind") == "gap" for element in elements)
                gaps += some
                events += len(elements) - some
    violations += _rows(tables)
    return Report(
        schema=lines.VERSION,
        runs=len(tables.rows),
        events=events,
        gaps=gaps,
        marks=len(tables.marks),
        violations=tuple(violations),
    )


def _found(path: str) -> opening.Found:
    with failing():
        with Path(path).open("rb") as file:
            first = file.readline(4096)
        version = lines.version_of(first)
        if version is None:
            raise StoreDamaged("without the first line of a journal")
        if version > lines.VERSION:
            raise StoreNewer(f"of schema {version}, newer than this version of reattach knows ({lines.VERSION})")
        try:
            return opening.read(Path(path))
        except ValueError as error:
            raise StoreDamaged(str(error)) from error


def _elements(elements: list[object], first: int, last: int) -> Iterator[str]:
    if len(elements) < last - first + 1:
        yield f"{first} to {last} holds {len(elements)} events"
    for at, element in enumerate(elements, first):
        if not (isinstance(element, dict) and {"id", "type", "kind"} <= element.keys()):
            yield f"{at} is no event"


def _rows(tables: Tables) -> Iterator[str]:
    for row in tables.rows.values():
        name = f"run {row.run_id or row.key!r}"
        if row.outcome is not None:
            try:
                outcome_of(row.outcome, row.run_id or "")
            except (ValueError, KeyError, TypeError) as error:
                yield f"{name}: its outcome cannot be read ({error!r})"
        if row.committed.position and row.run_id is None:
            yield f"{name}: it has events up to {row.committed.position} and no id"
    for (run, consumer), applied in tables.marks.items():
        known = tables.rows[run]
        if applied > known.committed.position:
            name = f"run {known.run_id or known.key!r}"
            yield f"{name}: {consumer!r} confirmed {applied}, and only {known.committed.position} is committed"
