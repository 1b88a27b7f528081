"""The calls of the admin interface, one function each: what a test may do to a running server, and what it may count.

Each takes the server and the call, and returns the JSON of its answer. They ask the engine, as faces do, and change nothing by
any other way. A run is anybody's here: the interface is for whoever started the server.

**To add one:** a function, a line in CALLS, a row in README.md, a test.

Checked by tests/mockserver/admin: one test a call, and test_abuse.py.
"""

import uuid
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict
from typing import Any, TypeAlias

from reattach_mockserver.admin.listing import (
    list_calls,
    list_effects,
    list_events,
    list_runs,
    list_subscribers,
    read_counts,
    read_run,
    run_of,
    told,
)
from reattach_mockserver.admin.members import Members
from reattach_mockserver.app import Application
from reattach_mockserver.bearer import digest
from reattach_mockserver.event import EventTooLarge
from reattach_mockserver.faces.call import Call
from reattach_mockserver.faces.problem import Refusal, invalid_request, overloaded
from reattach_mockserver.logs.base import LogUnavailable, RunRecord, RunSettled, WriterLost
from reattach_mockserver.scenarios.steps import MAX_MS, RELEASE, TYPE, reserved

AdminCall: TypeAlias = Callable[[Application, Call], Awaitable[Any]]

_REASONS = ("max_age", "draining", "slow_consumer", "epoch_changed", "cursor_expired")
_MAX_ADVANCE_MS = 366 * MAX_MS


async def publish(app: Application, call: Call) -> Any:
    """Append an event to a run, beside what it plays; the same `name` again finds the event of the first time."""
    body = await Members.of(app, call, "type", "data", "text", "name")
    run = await run_of(app, call)
    kind = body.required("type", body.text)
    if not TYPE.fullmatch(kind):
        raise invalid_request(f"type={kind!r:.60}: expected one line of at most 128 characters")
    if reserved(kind):
        raise invalid_request(f"type={kind!r:.60}: events of this type are the server's own")
    return await _published(app, run, kind, body.object("data") or {}, body.text("text"), body.text("name"))


async def release(app: Application, call: Call) -> Any:
    """Let another release execute a run: `release.changed`."""
    body = await Members.of(app, call, "release")
    run = await run_of(app, call)
    name = body.required("release", body.text)
    if not RELEASE.fullmatch(name):
        raise invalid_request(f"release={name!r:.60}: expected letters, digits and . _ - at most 64")
    return await _published(app, run, "release.changed", {"release": name}, None, None, release=name)


async def _published(
    app: Application,
    run: RunRecord,
    kind: str,
    data: dict[str, Any],
    text: str | None,
    name: str | None,
    release: str | None = None,
) -> Any:
    try:
        # Without a name each call is an event of its own.
        own = uuid.uuid4().hex if name is None else f"named.{name}"
        record, stored = await app.engine.publish(run, own, kind, data, text=text, release=release)
    except RunSettled:
        raise Refusal("run_settled", f"the run is {run.status}: its log grows no more", status=409) from None
    except EventTooLarge as large:
        raise Refusal("event_too_large", str(large)) from None
    except (WriterLost, LogUnavailable):
        raise overloaded("the log cannot be written at the moment") from None
    return {"id": stored.id, "sequence": stored.sequence, "cursor": f"{record.epoch}.{stored.sequence}"}


async def expire(app: Application, call: Call) -> Any:
    """Let go of a run's events before `first`, as retention would; without it, of all but the newest."""
    body = await Members.of(app, call, "first")
    run = await run_of(app, call)
    first = body.integer("first", 1, run.last_sequence + 1)
    return told(app, await app.engine.expire(run.id, run.last_sequence if first is None else first))


async def trim(app: Application, call: Call) -> Any:
    """Keep the newest `keep` events of a run."""
    body = await Members.of(app, call, "keep")
    run = await run_of(app, call)
    keep = body.required("keep", lambda name: body.integer(name, 0, run.last_sequence))
    return told(app, await app.engine.expire(run.id, run.last_sequence - keep + 1))


async def expire_actions(app: Application, call: Call) -> Any:
    """Let what a paused run waits for expire."""
    await Members.of(app, call)
    run = await run_of(app, call)
    if run.status != "requires_action":
        raise Refusal("not_paused", "the run does not wait for anything")
    return told(app, await app.engine.expire_actions(run))


async def rotate_epoch(app: Application, call: Call) -> Any:
    """Replace a run's log; `keep` loses the events after that sequence, as an unsynced tail would."""
    body = await Members.of(app, call, "keep")
    run = await run_of(app, call)
    return told(app, await app.engine.new_epoch(run.id, body.integer("keep", 1, run.last_sequence)))


async def close_streams(app: Application, call: Call) -> Any:
    """Ask the readers of a run, or of all runs, to leave between events, for a reason of the protocol."""
    body = await Members.of(app, call, "reason")
    reason = body.word("reason", _REASONS) or "max_age"
    run = await run_of(app, call) if call.scope["path_params"] else None
    readers = sum(run_id == run.id if run is not None else bool(run_id) for run_id, _ in app.engine.hub.all())
    app.engine.hub.close(reason, None if run is None else run.id)
    return {"closed": readers, "reason": reason}


async def expire_token(app: Application, call: Call) -> Any:
    """Let a token be good no more: this one, or the one that created a run; its principal's others stay good."""
    body = await Members.of(app, call, "token", "run_id")
    token, run_id = body.text("token"), body.text("run_id")
    if (token is None) == (run_id is None):
        raise invalid_request("expected one of token and run_id")
    if token is not None:
        known = app.engine.settings.tokens
        if known is None or known.caller(token) is None:
            raise Refusal("token_unknown", "the server knows no such token", status=404)
        await app.engine.revoke(digest(token))
    else:
        run = await run_of(app, call, run_id)
        if not run.token:
            raise Refusal("token_unknown", "the run was created without a token", status=404)
        await app.engine.revoke(run.token)
    return {"expired": len(app.engine.revoked)}


async def restart(app: Application, call: Call) -> Any:
    """Do what the death and rebirth of the process would: streams break, all but the log is forgotten, runs go on."""
    await Members.of(app, call)
    await app.engine.restart()
    return {"unfinished": len(await app.engine.log.unfinished())}


async def overload(app: Application, call: Call) -> Any:
    """Refuse attaches and creates for `ms` with `status`; 0 takes it back."""
    body = await Members.of(app, call, "ms", "status")
    ms = body.required("ms", lambda name: body.integer(name, 0, MAX_MS))
    status = body.integer("status", 429, 503) or 503
    if status not in (429, 503):
        raise invalid_request(f"status={status}: expected 429 or 503")
    app.engine.overload(ms, status)
    return {"ms": ms, "status": status}


async def advance(app: Application, call: Call) -> Any:
    """Move the server's clock forward: waits of scenarios, expiry, retention and overload come closer by so much."""
    body = await Members.of(app, call, "ms")
    app.engine.advance(body.required("ms", lambda name: body.integer(name, 0, _MAX_ADVANCE_MS)))
    return {"ahead_ms": app.engine.clock.ahead_ms}


async def cancel(app: Application, call: Call) -> Any:
    """Cancel a run, whoever's it is."""
    await Members.of(app, call)
    run = await run_of(app, call)
    return told(app, await app.engine.cancel(run))


async def counts(app: Application, call: Call) -> Any:
    """Count runs, events, effects, attempts at effects, subscribers, and calls by route."""
    return {**asdict(await app.engine.log.counts()), **read_counts(app)}


async def index(app: Application, call: Call) -> Any:
    """List the calls, each with its sentence."""
    return list_calls(CALLS)


CALLS: Mapping[str, Mapping[str, AdminCall]] = {
    "/": {"GET": index},
    "/counts": {"GET": counts},
    "/runs": {"GET": list_runs},
    "/runs/{run_id}": {"GET": read_run},
    "/runs/{run_id}/events": {"GET": list_events, "POST": publish},
    "/runs/{run_id}/effects": {"GET": list_effects},
    "/runs/{run_id}/expire": {"POST": expire},
    "/runs/{run_id}/trim": {"POST": trim},
    "/runs/{run_id}/expire_actions": {"POST": expire_actions},
    "/runs/{run_id}/epoch": {"POST": rotate_epoch},
    "/runs/{run_id}/release": {"POST": release},
    "/runs/{run_id}/close_streams": {"POST": close_streams},
    "/runs/{run_id}/cancel": {"POST": cancel},
    "/subscribers": {"GET": list_subscribers},
    "/close_streams": {"POST": close_streams},
    "/expire_token": {"POST": expire_token},
    "/restart": {"POST": restart},
    "/overload": {"POST": overload},
    "/advance": {"POST": advance},
}
"""Every path with its methods."""
