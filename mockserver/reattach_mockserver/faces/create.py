"""`POST /v1/runs`: the idempotent create.

The key is looked up before anything else about the request can refuse it, so a create whose answer was lost always
finds its run. Creates under one key come one after the other. Where the rules come from: PROTOCOL, section 2.
Checked by tests/mockserver/test_create.py.
"""

import re
from dataclasses import replace
from typing import Any, Literal

from reattach_mockserver.bearer import Caller
from reattach_mockserver.engine.continuation import NotContinued
from reattach_mockserver.engine.draft import NewRun
from reattach_mockserver.engine.engine import Engine, NotSettledInTime
from reattach_mockserver.engine.players import UnknownScript
from reattach_mockserver.event import EventTooLarge
from reattach_mockserver.faces.accept import chosen_form
from reattach_mockserver.faces.call import Call
from reattach_mockserver.faces.canonical import NotJson, digest_of, is_utf_8, parse_json
from reattach_mockserver.faces.checks import check_body_type, check_caller, check_streams, check_work, snapshot_path
from reattach_mockserver.faces.describe import body_of, etag_of
from reattach_mockserver.faces.problem import Refusal, cursor_expired, invalid_request, overloaded, run_not_found
from reattach_mockserver.faces.responses import parse_responses
from reattach_mockserver.faces.sse import stream
from reattach_mockserver.logs.base import LogUnavailable, RunRecord, SessionBusy, TooManyRuns

_KEY = re.compile(r"[\x21-\x7e]{1,255}")
_SESSION = re.compile(r"[A-Za-z0-9._:-]{1,128}", re.ASCII)


async def create_run(engine: Engine, call: Call) -> None:
    """Create a run, or answer with the one that this key has made."""
    caller = check_caller(engine, call)
    check_body_type(call)
    form = chosen_form(call.headers("accept"))
    if form is None:
        raise Refusal("not_acceptable", "a create answers with application/json or text/event-stream")
    key = _key(call)
    body = await call.body(engine.settings.limits.body_bytes)
    try:
        value = parse_json(body)
        digest = digest_of(value)
    except NotJson as error:
        raise invalid_request(f"the body is not JSON with one meaning: {error}") from None
    try:
        async with engine.turns.turn(caller.principal, key, engine.settings.in_flight_wait):
            run = await engine.log.by_key(caller.principal, key)
            made = False
            if run is None:
                check_work(engine)
                if form == "sse":
                    check_streams(engine, call)
                run, made = await _create(engine, await _new_run(engine, call, key, digest, value))
    except TimeoutError:
        raise Refusal(
            "idempotency_in_flight", "a create with this key is in flight", headers={"Retry-After": "1"}
        ) from None
    if run.digest != digest:
        raise Refusal("idempotency_conflict", "this key was used with another body; nothing was created")
    headers = {"Location": call.path(f"/v1/runs/{run.id}")}
    if not made:
        headers["Idempotency-Replayed"] = "true"
    status = 201 if made else 200
    if form == "json":
        answer = body_of(run, engine.now())
        headers |= {"Content-Type": "application/json", "ETag": etag_of(answer)}
        await call.answer(status, answer, headers)
        return
    if not made:
        check_work(engine)
        check_streams(engine, call)
    if run.first_sequence > 1:
        raise cursor_expired(run, snapshot_path(call, run))
    await stream(engine, call, run, 0, named=True, status=status, headers=headers)


def _key(call: Call) -> str:
    values = call.headers("idempotency-key")
    if not values or values == [""]:
        raise Refusal("idempotency_key_missing", "a create needs the header Idempotency-Key")
    if len(values) > 1:
        raise invalid_request(f"{len(values)} headers Idempotency-Key")
    if not _KEY.fullmatch(values[0]):
        raise invalid_request("an Idempotency-Key has 1 to 255 visible ASCII characters")
    return values[0]


async def _create(engine: Engine, new: NewRun) -> tuple[RunRecord, bool]:
    try:
        return await engine.create(new)
    except SessionBusy as busy:
        raise Refusal(
            "session_busy", f"run {busy.run_id} of this session has not settled", run_id=busy.run_id
        ) from busy
    except NotSettledInTime as late:
        raise overloaded(f"run {late} of this session did not settle in time; the key is unused") from late
    except NotContinued as refused:
        raise Refusal(refused.code, refused.detail, **refused.members) from refused
    except EventTooLarge as large:
        raise Refusal("event_too_large", str(large)) from large
    except TooManyRuns as many:
        raise _too_many(engine) from many
    except LogUnavailable as unavailable:
        raise overloaded("the log cannot be written at the moment") from unavailable


def _too_many(engine: Engine) -> Refusal:
    limit = engine.settings.limits.runs_per_principal
    return overloaded(f"this principal has {limit} runs that are not settled", 429)


async def _new_run(engine: Engine, call: Call, key: str, digest: str, value: Any) -> NewRun:
    """Find out what is to be created, as far as the body alone can tell."""
    caller = call.caller
    limit = engine.settings.limits.runs_per_principal
    superseding = isinstance(value, dict) and value.get("on_active") == "cancel"
    if limit is not None and not superseding and await engine.log.busy(caller.principal) >= limit:
        raise _too_many(engine)
    if not isinstance(value, dict):
        raise invalid_request("the body is to be an object")
    paused = await _paused(engine, caller, value.get("continues"))
    new = NewRun(
        principal=caller.principal,
        key=key,
        digest=digest,
        token=caller.token,
        script="",
        session_id=_session(value.get("session_id")),
        on_active=_on_active(value.get("on_active")),
        metadata=_metadata(value.get("metadata")),
    )
    if paused is None:
        if value.get("responses") is not None:
            raise invalid_request("responses belong to the run that 'continues' names")
        if value.get("input") is None:
            raise invalid_request("the member 'input' is missing")
        return replace(new, script=_script(engine, value["input"]), input=value["input"])
    if new.session_id not in (None, paused.session_id):
        raise invalid_request(f"a continuation is in the session of its run, {paused.session_id!r}")
    responses = parse_responses(value.get("responses"))
    digest = digest_of({response["action_id"]: response for response in responses})
    return replace(new, continues=paused.id, responses=responses, responses_digest=digest, input=value.get("input"))


async def _paused(engine: Engine, caller: Caller, run_id: Any) -> RunRecord | None:
    """Return the run that is to be continued, if the caller has it; None if none is."""
    if run_id is None:
        return None
    if not isinstance(run_id, str) or not is_utf_8(run_id):
        raise invalid_request("continues is to be the id of a run")
    run = await engine.run(run_id, caller.principal)
    if run is None:
        raise run_not_found(run_id)
    return run


def _script(engine: Engine, given: Any) -> str:
    name = given.get("scenario") if isinstance(given, dict) else None
    if name is None:
        return engine.settings.default
    try:
        engine.players.playable(name if isinstance(name, str) else str(name))
    except UnknownScript as unknown:
        raise invalid_request(str(unknown)) from None
    return str(name)


def _session(given: Any) -> str | None:
    if given is None:
        return None
    if not isinstance(given, str) or not _SESSION.fullmatch(given):
        raise invalid_request("a session_id has 1 to 128 of the characters A-Z a-z 0-9 . _ : -")
    return given


def _on_active(given: Any) -> Literal["reject", "cancel"]:
    match given:
        case None | "reject":
            return "reject"
        case "cancel":
            return "cancel"
        case _:
            raise invalid_request("on_active is to be 'reject' or 'cancel'")


def _metadata(given: Any) -> dict[str, Any] | None:
    if given is None or isinstance(given, dict):
        return given
    raise invalid_request("metadata is to be an object")
