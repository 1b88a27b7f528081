"""What both faces do with arguments, rows and views, besides waiting."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from reattach import errors
from reattach.core.fold import Fold
from reattach.core.intent import key_fault, request_digest, request_text
from reattach.core.payload import run_id_good
from reattach.model import Connection, Needs, Status, View
from reattach.runtime import outcomes, starts
from reattach.runtime.engine import Engine
from reattach.runtime.feed import End, Feed
from reattach.stores.base import RunRow, Store


def request(
    input: str | Mapping[str, Any] | Sequence[Any],
    key: object,
    session_id: str | None,
    on_active: str,
    metadata: Mapping[str, str] | None,
) -> tuple[str, str]:
    """Return a create's body as JSON text, and its digest. What is default is left out: absent and default differ to a server.

    Raises:
        UsageError: Key or input cannot be sent.
    """
    fault = key_fault(key)
    if not isinstance(key, str) or fault is not None:
        raise errors.UsageError(f"{fault}.", key=key if isinstance(key, str) else None, hint="Nothing was sent.")
    if on_active not in ("reject", "cancel"):
        raise errors.UsageError(f'on_active={on_active!r}: "reject" or "cancel" is needed.', key=key)
    body: dict[str, Any] = {"input": input}
    if session_id is not None:
        body["session_id"] = session_id
    if on_active != "reject":
        body["on_active"] = on_active
    if metadata is not None:
        body["metadata"] = metadata
    try:
        text = request_text(body)
    except ValueError as error:
        raise errors.UsageError(f"{error}.", key=key, hint="Nothing was sent.") from error
    return text, request_digest(text)


def attachable(
    run_id: object, row: RunRow | None, consumer: object, after: str | None, ack: str, on_gap: str | None
) -> None:
    """Check the arguments of an attach. A run that the journal knows needs no id yet.

    Raises:
        UsageError: An argument cannot be right, or is not in this version.
    """
    if row is None and not run_id_good(run_id):
        raise errors.UsageError(f"run={str(run_id)[:80]!r} is no run id.", hint="Give the id as the server gave it.")
    if not isinstance(consumer, str) or not 0 < len(consumer) <= 255 or not consumer.isprintable():
        raise errors.UsageError(f"consumer={str(consumer)[:80]!r}: a name of 1 to 255 visible characters is needed.")
    if ack not in ("auto", "manual"):
        raise errors.UsageError(f'ack={ack!r}: "auto" or "manual" is needed.')
    if after is not None and (consumer != "main" or ack != "auto"):
        raise errors.UsageError(
            "after= only looks on and moves no mark; consumer= and ack= say whose mark is moved, and how.",
            hint="Leave one of them out.",
        )
    if on_gap not in (None, "raise", "snapshot", "continue"):
        raise errors.UsageError(f'on_gap={on_gap!r}: "raise", "snapshot" or "continue" is needed.')
    if after is not None and not after:
        raise errors.UsageError("after='' is no cursor.", hint='Use "beginning", "tail" or the cursor of an event.')


async def start(engine: Engine, key: str, request: str, digest: str) -> tuple[RunRow, Needs]:
    """Start, and say what the run needs now."""
    row = await starts.start(engine, key, request, digest)
    return row, await engine.post(lambda: outcomes.needs_in(engine.store, row))


def weighed(store: Store, rows: Sequence[RunRow]) -> Iterator[tuple[RunRow, int | None, bool]]:
    """Yield each row with what was confirmed and whether another of the rows continues it. Blocks on the journal."""
    continued = {(row.server, row.profile, row.continues) for row in rows if row.continues is not None}
    for row in rows:
        yield row, outcomes.confirmed(store, row.run), (row.server, row.profile, row.run_id) in continued


async def rows(engine: Engine, unfinished: bool) -> list[tuple[RunRow, Needs]]:
    """Return this server's rows, newest first, each with what it needs."""

    def work() -> list[tuple[RunRow, Needs]]:
        found = engine.store.rows(engine.server, engine.profile.name)
        return [
            (row, outcomes.needs_of(row, applied, answered=answered))
            for row, applied, answered in weighed(engine.store, found)
        ]

    listed = await engine.post(work)
    return [(row, needs) for row, needs in listed if not unfinished or needs != "nothing"]


def shown(fold: Fold, feed: Feed, end: End | None) -> View:
    """Return the view with the connection, and with the status that the end told."""
    view = dataclasses.replace(fold.view(), connection=feed.connection)
    if end is not None and end.outcome is not None:
        view = dataclasses.replace(view, status=end.outcome.status)
    return view


def with_status(view: View, row: RunRow, connection: Connection) -> View:
    """Return a journal's view with the row's last known status where the events name none."""
    status = view.status
    if row.outcome is not None or status is Status.UNKNOWN:
        status = Status(row.status) if row.status in set(Status) else Status.UNKNOWN
    return dataclasses.replace(view, status=status, connection=connection)
