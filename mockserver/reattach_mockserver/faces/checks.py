"""The checks that several calls share, in the order of the refusals table: token, rights, too much, the run, its cursor.

Each raises the refusal that it finds and changes nothing. Nothing about a run is said before it is known to be the
caller's. Where the rules come from: PROTOCOL, sections 3 and 4. Checked by tests/mockserver/test_refusals.py.
"""

from starlette.types import Scope

from reattach_mockserver.bearer import ANYONE, Caller
from reattach_mockserver.cursor import Cursor, parse_cursor, run_tag
from reattach_mockserver.engine.engine import Engine
from reattach_mockserver.faces.accept import is_json, takes_json
from reattach_mockserver.faces.call import Call
from reattach_mockserver.faces.problem import (
    Refusal,
    cursor_ahead,
    cursor_expired,
    epoch_changed,
    overloaded,
    run_not_found,
    unauthenticated,
)
from reattach_mockserver.logs.base import RunRecord


def check_caller(engine: Engine, call: Call) -> Caller:
    """Find out who calls, and that they may; the answer is kept in the call."""
    tokens = engine.settings.tokens
    if tokens is None:
        call.caller = ANYONE
        return ANYONE
    values = call.headers("authorization")
    if len(values) != 1:
        raise unauthenticated("a bearer token is needed" if not values else "more than one Authorization header")
    scheme, _, token = values[0].partition(" ")
    caller = tokens.caller(token.strip()) if scheme.lower() == "bearer" else None
    if caller is None or caller.token in engine.revoked:
        raise unauthenticated("the bearer token is not, or no longer, good")
    if not caller.rights:
        raise Refusal("forbidden", "this token has no right to this call")
    call.caller = caller
    return caller


def check_head(scope: Scope, most: int) -> None:
    """Find out that what was asked for, and all headers, are not longer than is taken."""
    headers = sum(len(name) + len(value) for name, value in scope["headers"])
    size = headers + len(scope["path"]) + len(scope["query_string"])
    if size > most:
        raise Refusal("headers_too_large", f"path, query and headers have {size} bytes, at most {most} are taken")


def check_json(call: Call) -> None:
    """Find out that a JSON answer may be sent."""
    if not takes_json(call.headers("accept")):
        raise Refusal("not_acceptable", "this resource is application/json")


def check_body_type(call: Call) -> None:
    """Refuse a body that is declared as something else than JSON; none declared means JSON.

    Raises:
        Refusal: It is (415).
    """
    kinds = call.headers("content-type")
    if not is_json(kinds):
        raise Refusal("unsupported_media_type", f"the body is to be application/json, not {', '.join(kinds)!r}")


def check_work(engine: Engine) -> None:
    """Find out that the server takes on attaches and creates."""
    if engine.draining:
        raise overloaded("the server is going down; another, or its successor, will take this")
    status = engine.overloaded()
    if status is not None:
        raise overloaded("the server has too much to do", status)


def check_streams(engine: Engine, call: Call) -> None:
    """Find out that the caller may open one more stream."""
    limit = engine.settings.limits.streams_per_principal
    if limit is not None and engine.hub.streams(call.caller.principal) >= limit:
        raise overloaded(f"this principal holds {limit} streams open already", 429)


async def find_run(engine: Engine, call: Call) -> RunRecord:
    """Return the run of the path, if it is the caller's."""
    run_id: str = call.scope["path_params"]["run_id"]
    run = await engine.run(run_id, call.caller.principal)
    if run is None:
        raise run_not_found(run_id)
    return run


def snapshot_path(call: Call, run: RunRecord) -> str:
    """Return where the run's snapshot is."""
    return call.path(f"/v1/runs/{run.id}/snapshot")


async def sequence_after(engine: Engine, call: Call, run: RunRecord, *, header: bool) -> int:
    """Return the sequence that the call wants the events after.

    Only the winner of header and parameter is examined. `header`: whether `Last-Event-ID` counts.
    """
    given = call.headers("last-event-id") if header else []
    word_allowed = not given
    given = given or call.parameters("after")
    if not given:
        return await check_cursor(engine, call, run, Cursor(run.epoch, 0))
    if len(given) > 1:
        raise Refusal("cursor_malformed", f"{len(given)} cursors were sent")
    if word_allowed and given[0] == "tail":
        return run.last_sequence
    if word_allowed and given[0] == "earliest":
        return run.first_sequence - 1
    cursor = parse_cursor(given[0])
    if cursor is None:
        raise Refusal("cursor_malformed", f"{given[0][:140]!r} is not a cursor")
    return await check_cursor(engine, call, run, cursor)


async def check_cursor(engine: Engine, call: Call, run: RunRecord, cursor: Cursor) -> int:
    """Return the cursor's sequence if the run's log can be read from there."""
    if cursor.epoch != run.epoch:
        tag = run_tag(cursor.epoch)
        other = None if tag is None else await engine.log.run(f"run_{tag}")
        if other is not None and other.id != run.id and other.principal == run.principal:
            raise Refusal("cursor_foreign", "this is a cursor of another run")
        raise epoch_changed(run, snapshot_path(call, run))
    if cursor.sequence < run.first_sequence - 1:
        raise cursor_expired(run, snapshot_path(call, run))
    if cursor.sequence > run.last_sequence:
        raise cursor_ahead(run)
    return cursor.sequence
