"""The create of an intent: sent under its key, and again under the same key after a lost answer; never where that is unsafe.

A start is sent under the application's key; a continuation has none and is sent under the digest of its body, which names the
paused run and the answers. What may have been sent and cannot be repeated (the vendor takes no key, or has had time to forget
it) is looked up where the vendor can, and else needs a person: "not found" is not "did not happen".
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, TypedDict

from reattach import errors
from reattach.core.intent import stale
from reattach.core.messages import Why
from reattach.profiles.base import Call, Created, Unreadable
from reattach.runtime import refusals
from reattach.runtime.asking import asked, told
from reattach.runtime.calls import Limit, Refused
from reattach.stores.base import Intent, RunRow, Store

if TYPE_CHECKING:
    from reattach.runtime.engine import Engine


class _Told(TypedDict):
    run_id: str
    session_id: str | None
    status: str


async def create(engine: Engine, row: RunRow, *, new: bool) -> RunRow:
    """Send the create of an intent, again if it was sent before, and store what it answered.

    Args:
        engine: The client at work.
        row: The intent.
        new: Whether this very call wrote it, so that nothing can have been sent before.

    Raises:
        SessionBusy, NotAuthorized, AttachError, RespondError: The server refused; nothing was created.
        ReconnectExhausted: No answer; the intent is kept and may be sent again.
        AmbiguousOutcome: It may have been taken and must not be repeated.
    """
    profile = engine.profile
    repeatable = new or (profile.keyed and not await _too_old(engine, row))
    created = await (_send(engine, row, new=new) if repeatable else _look_up(engine, row))
    kept = await engine.post(lambda: _kept(engine.store, row, created))
    if kept.needs == "reconcile":
        await engine.post(lambda: engine.store.need(kept.run, ""))
    return kept


def _kept(store: Store, row: RunRow, created: Created) -> RunRow:
    """Store what the create answered. Blocks on the journal."""
    told: _Told = {"run_id": created.run_id, "session_id": created.session_id, "status": created.status.value}
    try:
        return store.created(row.run, **told)
    except KeyError:
        # Somebody settled the start while its request was out, by a person's word or by joining it to its run. The answer is
        # what happened, and a run that was made is never forgotten.
        again, _ = store.intend(
            Intent(row.server, row.profile, row.key, row.request or "", row.request_sha256 or "", row.continues)
        )
        return store.created(again.run, **told)


def intended(store: Store, row: RunRow) -> RunRow | None:
    """Return the row that an intent has become, None if it is forgotten. Blocks on the journal."""
    if row.key is not None:
        return store.find(row.server, row.profile, key=row.key)
    rows = store.continuing(row.server, row.profile, row.continues or "")
    return next((each for each in rows if each.request_sha256 == row.request_sha256), None)


def key_of(row: RunRow) -> str:
    """Return the idempotency key under which an intent is sent."""
    key = row.key or row.request_sha256
    assert key is not None
    return key


async def _too_old(engine: Engine, row: RunRow) -> bool:
    """Whether the server may have forgotten the key: older than every server must remember it, and than this one says it does."""
    now = engine.clock.wall()
    if row.sent_at is None or not stale(row.sent_at, now, engine.profile.key_hours):
        return False
    call = engine.profile.retention()
    if call is None:
        return True
    try:
        hours = engine.profile.retention_told((await asked(engine, call, Limit(attempts=1))).body)
    except (Refused, Unreadable):
        return True  # it does not say
    return hours is None or stale(row.sent_at, now, hours)


async def _send(engine: Engine, row: RunRow, *, new: bool) -> Created:
    assert row.request is not None
    call = engine.profile.create(json.loads(row.request), key_of(row))
    call = Call(call.method, call.path, call.headers, row.request.encode())
    limit = Limit(seconds=engine.policy.give_up_after, once=not engine.profile.keyed)
    try:
        answer = await asked(engine, call, limit)
        return engine.profile.created(answer.status, answer.headers, answer.body)
    except Unreadable as error:
        if not engine.profile.keyed:
            raise await _ambiguous(engine, row, f"was answered with {error.detail}") from error
        raise refusals.unreadable(engine, row, error.detail) from error
    except Refused as error:
        if error.sent and error.refusal.why is Why.BUSY and not engine.profile.keyed:
            raise await _ambiguous(
                engine, row, f"got no answer after the request left ({error.refusal.detail})"
            ) from error
        untouched = new and not error.sent and error.refusal.why is not Why.BUSY
        if untouched or error.refusal.code in refusals.ANSWERS:
            await engine.post(lambda: engine.store.forget(row.run))
        raise refusals.refused(engine, row, error, doubtful=error.sent or not new) from error


async def _look_up(engine: Engine, row: RunRow) -> Created:
    """It may have been taken long ago, or by a vendor that takes no key: find its run, or give it to a person."""
    call = engine.profile.lookup(key_of(row))
    if call is None:
        raise await _ambiguous(engine, row, "was never answered")
    try:
        answer = await asked(engine, call)
        found = engine.profile.found(answer.body)
    except Unreadable as error:
        raise refusals.unreadable(engine, row, error.detail) from error
    except Refused as error:
        if error.refusal.why is Why.BUSY:
            tried, last = told(error)
            raise errors.AttachError(
                f"{engine.server} did not answer about {refusals.named(row)} ({tried}, last: {last}). "
                "It was not sent again: the server may have forgotten its key.",
                key=row.key,
                problem=error.refusal.code,
                hint=f"{refusals.again(row)} when the server answers.",
            ) from error
        raise refusals.refused(engine, row, error, doubtful=True) from error
    if found is not None:
        return found
    hours = f"{engine.profile.key_hours:g} h"
    raise await _ambiguous(
        engine,
        row,
        f"was never answered, the server may have forgotten its key since ({hours}), and knows no run of it",
    )


async def _ambiguous(engine: Engine, row: RunRow, how: str) -> errors.AmbiguousOutcome:
    """Note that a person must look, and return the error that says so."""
    await engine.post(lambda: engine.store.need(row.run, "reconcile"))
    profile, key = engine.profile, key_of(row)
    takes = "" if profile.keyed else f", and {profile.name} takes no key"
    return errors.AmbiguousOutcome(
        f"{refusals.named(row)} was sent to {engine.server} at {row.sent_at:%Y-%m-%d %H:%M:%S} UTC and {how}{takes}: it may or "
        "may not have created a run. It was not repeated.",
        key=row.key,
        hint=f'Look at the server, then client.reconcile({key!r}, run_id="…"), or run_id=None if there is none.',
    )
