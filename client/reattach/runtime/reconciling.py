"""A person's word on a create whose outcome nobody here can know: the run that it made, or that there is none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reattach import errors
from reattach.core.payload import run_id_good
from reattach.stores.base import RunRow, Store

if TYPE_CHECKING:
    from reattach.runtime.engine import Engine


async def reconcile(engine: Engine, key: str, run_id: str | None) -> None:
    """Settle an unanswered create. Nothing is sent.

    Args:
        engine: The client at work.
        key: The application's key, or that under which the answers to a pause were sent.
        run_id: The run that the create made; None: it made none, and the key is free again.

    Raises:
        UsageError: The journal has no such unanswered create, or the run belongs to another key. Nothing was changed.
    """
    if run_id is not None and not run_id_good(run_id):
        raise errors.UsageError(f"run_id={run_id!r} is no run id. Nothing was changed.", key=key)
    await engine.post(lambda: _settle(engine, key, run_id))


def _settle(engine: Engine, key: str, run_id: str | None) -> None:
    store = engine.store
    row = _unanswered(store, engine, key)
    if row is None:
        raise errors.UsageError(
            f"the journal knows no start with key {key!r} on {engine.server}. Nothing was changed.",
            key=key,
            hint="runs() lists what it knows.",
        )
    if row.run_id is not None:
        if row.run_id == run_id:
            return
        raise errors.UsageError(
            f"the start with key {key!r} was answered: it made run {row.run_id!r}. Nothing was changed.",
            run_id=row.run_id,
            key=key,
            hint="There is nothing to reconcile; go on with that run.",
        )
    if run_id is None:
        store.forget(row.run)
        return
    other = store.find(engine.server, engine.profile.name, run_id=run_id)
    if other is not None and other.key is not None and row.key is not None:
        raise errors.UsageError(
            f"run {run_id!r} has key {other.key!r} already, it cannot also have {key!r}. Nothing was changed.",
            run_id=run_id,
            key=key,
            hint="Look again which run this start made.",
        )
    kept = store.created(row.run, run_id=run_id, session_id=None, status="unknown")
    if kept.needs == "reconcile":
        store.need(kept.run, "")


def _unanswered(store: Store, engine: Engine, key: str) -> RunRow | None:
    row = store.find(engine.server, engine.profile.name, key=key)
    if row is not None:
        return row
    answers = [each for each in store.rows(engine.server, engine.profile.name) if each.continues is not None]
    return next((each for each in answers if each.key is None and each.request_sha256 == key), None)
