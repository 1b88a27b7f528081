"""Starting work: the intent is on disk before the request leaves, and the run id before the first frame is shown.

The same key is sent again after a lost answer, in this process or the next; nothing else ever is. A create that was definitely
refused does not use up its key.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reattach import errors
from reattach.core.intent import stale
from reattach.core.messages import Refusal, Why
from reattach.profiles.base import Call, Created, Unreadable
from reattach.runtime.calls import Limit, Refused
from reattach.stores.base import Intent, RunRow

if TYPE_CHECKING:
    from reattach.runtime.engine import Engine


async def start(engine: Engine, key: str, request: str, digest: str) -> RunRow:
    """Return the run of this key, created now or long ago.

    Args:
        engine: The client at work.
        key: The application's name for the work.
        request: The create's body, JSON text.
        digest: Of the body as a value.

    Raises:
        KeyConflict: The key names other work. Nothing was sent.
        SessionBusy, NotAuthorized, AttachError: The server refused; nothing was created.
        ReconnectExhausted: No answer; the intent is kept, starting again with the same key goes on.
        AmbiguousOutcome: The server may have forgotten the key, and knows no run of it.
    """
    intent = Intent(engine.server, engine.profile.name, key, request, digest)
    row, new = await engine.post(lambda: engine.store.intend(intent))
    if row.request_sha256 is not None and row.request_sha256 != digest:
        at = row.sent_at or row.created_at
        raise errors.KeyConflict(
            f"key {key!r} was used at {at:%Y-%m-%d %H:%M:%S} UTC for another input (run {row.run_id or 'not known yet'!r}). "
            "Nothing was sent.",
            run_id=row.run_id or "",
            key=key,
            hint="Use the same input to go on with that run, or another key for new work.",
        )
    return row if row.run_id is not None else await create(engine, row, new=new)


async def create(engine: Engine, row: RunRow, *, new: bool) -> RunRow:
    """Send the create of an intent, again if it was sent before, and store what it answered.

    Args:
        engine: The client at work.
        row: The intent.
        new: Whether this very call wrote it, so that nothing can have been sent before.
    """
    profile = engine.profile
    key, request = row.key, row.request
    assert key is not None
    assert request is not None
    if not new and row.sent_at is not None and stale(row.sent_at, engine.clock.wall(), profile.key_hours):
        created = await _look_up(engine, row, key)
    else:
        created = await _create(engine, row, key, request, new=new)
    return await engine.post(
        lambda: engine.store.created(
            row.run, run_id=created.run_id, session_id=created.session_id, status=created.status.value
        )
    )


async def _create(engine: Engine, row: RunRow, key: str, request: str, *, new: bool) -> Created:
    call = engine.profile.create({}, key)
    call = Call(call.method, call.path, call.headers, request.encode())
    limit = Limit(seconds=engine.policy.give_up_after)
    denied = False
    while True:
        try:
            answer = await engine.calls.make(call, limit)
            return engine.profile.created(answer.status, answer.headers, answer.body)
        except Unreadable as error:
            raise errors.RemoteProtocolError(
                f"the start with key {key!r}: {engine.server} sent {error.detail}. It was not repeated.",
                key=key,
                hint="Open the address in a browser, then start again with the same key.",
            ) from error
        except Refused as error:
            if error.refusal.why is Why.UNAUTHENTICATED and not denied:
                denied = True  # the token is asked for again at the next attempt, once
                continue
            if new and not error.sent and error.refusal.why is not Why.BUSY:
                await engine.post(lambda: engine.store.forget(row.run))
            raise _error(engine, key, error.refusal) from error


async def _look_up(engine: Engine, row: RunRow, key: str) -> Created:
    """The key is older than the server must remember it: "not found" is not "did not happen"."""
    profile = engine.profile
    call = profile.lookup(key)
    found: Created | None = None
    if call is not None:
        try:
            answer = await engine.calls.make(call, Limit(attempts=3))
            found = profile.found(answer.body)
        except Unreadable as error:
            raise errors.RemoteProtocolError(
                f"looking up key {key!r}: {engine.server} sent {error.detail}. Nothing was created.",
                key=key,
                hint="Open the address in a browser, then start again with the same key.",
            ) from error
        except Refused as error:
            if error.refusal.why is Why.BUSY:
                raise errors.AttachError(
                    f"{engine.server} did not answer about key {key!r} (3 attempts, last: {error.refusal.detail}). "
                    "It was not sent again: it is so old that the server may have forgotten it.",
                    key=key,
                    problem=error.refusal.code,
                    hint="Start again with the same key when the server answers.",
                ) from error
            raise _error(engine, key, error.refusal) from error
    if found is not None:
        return found
    await engine.post(lambda: engine.store.need(row.run, "reconcile"))
    raise errors.AmbiguousOutcome(
        f"the start with key {key!r} was sent at {row.sent_at:%Y-%m-%d %H:%M:%S} UTC and never answered; {engine.server} "
        f"may have forgotten the key since ({profile.key_hours:g} h) and knows no run of it: it may or may not have "
        "created one. It was not repeated.",
        key=key,
        hint=f"Look at the server, then use another key for new work, or attach the run by its id (key {key!r} stays listed).",
    )


def _error(engine: Engine, key: str, refusal: Refusal) -> errors.ReattachError:
    facts: errors.Facts = {"key": key, "problem": refusal.code}
    told = f"{refusal.status} {refusal.code or ''}".strip() if refusal.status is not None else "no answer"
    match refusal.why:
        case Why.BUSY:
            limit = engine.policy.give_up_after
            return errors.ReconnectExhausted(
                f"the start with key {key!r} was not answered by {engine.server} for {limit:g} s (last: {refusal.detail}). "
                "It may have been taken; the intent is in the journal.",
                hint="Start again with the same key: it goes on, and never twice.",
                **facts,
            )
        case Why.UNAUTHENTICATED | Why.FORBIDDEN:
            return errors.NotAuthorized(
                f"{engine.server} refused the token for the start with key {key!r} ({told}). Nothing was created.",
                hint="Renew the token, then start again.",
                **facts,
            )
        case Why.UNSENDABLE:
            return errors.LocalProtocolError(
                f"the start with key {key!r} cannot be sent: {refusal.detail}.",
                hint="Check headers and token for characters that HTTP does not allow.",
                **facts,
            )
        case _ if refusal.code == "session_busy":
            return errors.SessionBusy(
                f"the session has a run that is not settled ({told}: {refusal.detail}). Nothing was created; key {key!r} "
                "is free.",
                hint='Wait for that run, or start with on_active="cancel".',
                **facts,
            )
        case _ if refusal.code == "idempotency_conflict":
            return errors.KeyConflict(
                f"key {key!r} was used before, elsewhere, for another input ({told}). Nothing was created.",
                hint="Use the same input to go on with that run, or another key for new work.",
                **facts,
            )
        case _:
            return errors.AttachError(
                f"{engine.server} refused the start with key {key!r} ({told}: {refusal.detail}). Nothing was created.",
                hint="Mend the input or the address, then start again.",
                **facts,
            )
