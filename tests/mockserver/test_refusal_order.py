"""The order of refusals, two by two: a call with the faults of two rows is answered by the earlier one."""

import itertools
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

import pytest

from mockserver_dialogue import played
from mockserver_stage import OPEN, Site
from reattach_mockserver.bearer import parse_tokens
from reattach_mockserver.scenarios.script import Action, Ask, RawEvent, Script, Wait
from reattach_mockserver.settings import Limits

pytestmark = pytest.mark.anyio

TOKENS = parse_tokens(["alice a1", "bob b1", "eve e1 none"])
ALICE = {"Authorization": "Bearer a1"}
NOTES = Script(name="notes", steps=(*(RawEvent(type="note") for _ in range(8)), Wait(ms=3_600_000)))
ASKS = Script(name="asks", clock="virtual", steps=(Ask(actions=(Action(id="a", tool="t"),)),))


@dataclass
class Wanted:
    """A call that nothing is wrong with, until rows spoil it."""

    method: str
    path: str
    headers: dict[str, str]
    query: dict[str, str] = field(default_factory=dict)
    authorization: list[str] = field(default_factory=lambda: ["Bearer a1"])
    value: dict[str, Any] = field(default_factory=dict)
    body: bytes | None = None
    padding: int = 0

    async def answer(self, site: Site) -> str:
        query = "&".join(f"{name}={value}" for name, value in self.query.items())
        body = json.dumps(self.value).encode() if self.body is None else self.body
        pairs = [*self.headers.items(), *(("Authorization", value) for value in self.authorization)]
        answer = await site.call(
            self.method,
            f"{self.path}?{query}",
            pairs,
            (body + b" " * self.padding) if self.method == "POST" else b"",
        )
        assert "location" not in answer.headers
        return answer.code


@dataclass
class Scene:
    """A server with runs for every fault."""

    site: Site
    mine: dict[str, Any]
    other: dict[str, Any]
    bobs: dict[str, Any]
    used: dict[str, Any]
    paused: dict[str, Any]


Row = Callable[[Wanted, Scene], None]


async def staged(sites: Callable[..., Awaitable[Site]]) -> Scene:
    site = await sites(NOTES, OPEN, ASKS, tokens=TOKENS, limits=Limits(header_bytes=2_000, body_bytes=2_000))
    mine, other = await site.run(**ALICE), await site.run(**ALICE)
    bobs = await site.run(Authorization="Bearer b1")
    for run in (mine, other, bobs):
        await site.until_head(run["id"], 10)
        await site.engine.expire(run["id"], 5)
    used = await site.run({"input": "used", "session_id": "busy"}, key="used", **ALICE)
    paused = await site.settled({"input": {"scenario": "asks"}}, **ALICE)
    return Scene(site, mine, other, bobs, used, paused)


def too_long_headers(call: Wanted, scene: Scene) -> None:
    call.headers["X-Long"] = "x" * 2_000


def no_such_path(call: Wanted, scene: Scene) -> None:
    call.path = "/v2" + call.path.removeprefix("/v1")


def no_such_method(call: Wanted, scene: Scene) -> None:
    call.method = "DELETE"


def said_to_be_too_long(call: Wanted, scene: Scene) -> None:
    call.headers["Content-Length"] = "2001"


def no_token(call: Wanted, scene: Scene) -> None:
    call.authorization.append("Bearer nobody")


def no_rights(call: Wanted, scene: Scene) -> None:
    call.authorization[0] = "Bearer e1"


def wrong_body_type(call: Wanted, scene: Scene) -> None:
    call.headers["Content-Type"] = "text/plain"


def wrong_answer_type(call: Wanted, scene: Scene) -> None:
    call.headers["Accept"] = "text/html"


def too_much(call: Wanted, scene: Scene) -> None:
    scene.site.engine.overload(60_000, 503)


def unknown_run(call: Wanted, scene: Scene) -> None:
    """Another's: the cursors of the later rows are cursors of that run."""
    call.path = call.path.replace(scene.mine["id"], scene.bobs["id"])


def senseless_parameter(call: Wanted, scene: Scene) -> None:
    call.query["names"] = "perhaps"
    call.query["limit"] = "0"


def asked_run(call: Wanted, scene: Scene) -> dict[str, Any]:
    return scene.bobs if scene.bobs["id"] in call.path else scene.mine


def malformed(call: Wanted, scene: Scene) -> None:
    call.query["after"] = "%00" + call.query.get("after", "")


def foreign(call: Wanted, scene: Scene) -> None:
    sequence = call.query.get("after", "x.7").rpartition(".")[2]
    call.query["after"] = f"{scene.other['epoch']}.{sequence}"


def other_epoch(call: Wanted, scene: Scene) -> None:
    epoch, _, sequence = call.query.get("after", "x.7").rpartition(".")
    if epoch in ("x", scene.mine["epoch"], scene.bobs["epoch"]):
        call.query["after"] = f"{asked_run(call, scene)['epoch']}0.{sequence}"


def expired(call: Wanted, scene: Scene) -> None:
    epoch = call.query.get("after", "x.").rpartition(".")[0]
    call.query["after"] = f"{asked_run(call, scene)['epoch'] if epoch == 'x' else epoch}.2"


def ahead(call: Wanted, scene: Scene) -> None:
    epoch = call.query.get("after", "x.").rpartition(".")[0]
    call.query["after"] = f"{asked_run(call, scene)['epoch'] if epoch == 'x' else epoch}.99"


def no_key(call: Wanted, scene: Scene) -> None:
    call.headers.pop("Idempotency-Key")


def too_long_body(call: Wanted, scene: Scene) -> None:
    call.padding = 2_001


def no_json(call: Wanted, scene: Scene) -> None:
    call.body = b"{"


def used_key(call: Wanted, scene: Scene) -> None:
    call.headers["Idempotency-Key"] = "used"


def unknown_paused_run(call: Wanted, scene: Scene) -> None:
    call.value["continues"] = scene.bobs["id"]


def senseless_member(call: Wanted, scene: Scene) -> None:
    call.value["metadata"] = 7


def busy_session(call: Wanted, scene: Scene) -> None:
    call.value["session_id"] = "busy"


def unknown_session(call: Wanted, scene: Scene) -> None:
    call.path = call.path.replace("busy", "none")


def senseless_after(call: Wanted, scene: Scene) -> None:
    call.query["after"] = scene.mine["id"]  # a run, of another session


def unknown_operation(call: Wanted, scene: Scene) -> None:
    call.path = call.path.replace(operation_of(scene), "op_none")


def no_key_to_look_for(call: Wanted, scene: Scene) -> None:
    call.query.pop("idempotency_key")


def operation_of(scene: Scene) -> str:
    return str(scene.paused["required_actions"][0]["operation_id"])


BEFORE: list[tuple[Row, str]] = [
    (too_long_headers, "headers_too_large"),
    (no_such_path, "not_found"),
    (no_such_method, "method_not_allowed"),
    (said_to_be_too_long, "body_too_large"),
    (no_token, "unauthenticated"),
    (no_rights, "forbidden"),
]
CURSORS: list[tuple[Row, str]] = [
    (malformed, "cursor_malformed"),
    (foreign, "cursor_foreign"),
    (other_epoch, "epoch_changed"),
    (expired, "cursor_expired"),
    (ahead, "cursor_ahead"),
]
ATTACH: list[tuple[Row, str]] = [
    *BEFORE,
    (wrong_answer_type, "not_acceptable"),
    (too_much, "overloaded"),
    (unknown_run, "run_not_found"),
    (senseless_parameter, "invalid_request"),
    *CURSORS,
]
PAGE = [row for row in ATTACH if row[0] is not too_much]
"""Reads by id are answered by a server that has too much to do."""
CREATE: list[tuple[Row, str]] = [
    *BEFORE,
    (wrong_body_type, "unsupported_media_type"),
    (wrong_answer_type, "not_acceptable"),
    (no_key, "idempotency_key_missing"),
    (too_long_body, "body_too_large"),
    (no_json, "invalid_request"),
    (used_key, "idempotency_conflict"),
    (too_much, "overloaded"),
    (unknown_paused_run, "run_not_found"),
    (senseless_member, "invalid_request"),
    (busy_session, "session_busy"),
]
BY_ID: list[tuple[Row, str]] = [*BEFORE, (wrong_answer_type, "not_acceptable")]
RUN = [*BY_ID, (unknown_run, "run_not_found")]
SESSION = [*BY_ID, (unknown_session, "session_not_found"), (senseless_after, "invalid_request")]
OPERATION = [*BY_ID, (unknown_operation, "operation_not_found")]
BY_KEY = [*BY_ID, (no_key_to_look_for, "invalid_request")]
RESUME = [(no_rights, "forbidden"), (too_much, "overloaded"), (unknown_run, "run_not_found"), *CURSORS]
"""What a socket's resume can be refused for, in answer to it."""

IMPOSSIBLE = {
    frozenset({expired, ahead}),  # no number is both
    frozenset({no_key, used_key}),
    frozenset({no_json, used_key}),  # a body that is no value equals none, and differs from none
    frozenset({no_json, unknown_paused_run}),  # nor has it members
    frozenset({no_json, senseless_member}),
    frozenset({no_json, busy_session}),
}


def pairs(rows: list[tuple[Row, str]]) -> list[Any]:
    return [
        pytest.param(earlier, later, code, id=f"{earlier.__name__}-{later.__name__}")
        for (earlier, code), (later, _) in itertools.combinations(rows, 2)
        if frozenset({earlier, later}) not in IMPOSSIBLE
    ]


def an_attach(scene: Scene) -> Wanted:
    return Wanted("GET", f"/v1/runs/{scene.mine['id']}/events", {"Accept": "text/event-stream"})


def a_page(scene: Scene) -> Wanted:
    return Wanted("GET", f"/v1/runs/{scene.mine['id']}/events", {})


def a_create(scene: Scene) -> Wanted:
    return Wanted("POST", "/v1/runs", {"Idempotency-Key": "fresh"}, value={"input": "x"})


def a_cancel(scene: Scene) -> Wanted:
    return Wanted("POST", f"/v1/runs/{scene.mine['id']}/cancel", {})


def a_run(scene: Scene) -> Wanted:
    return Wanted("GET", f"/v1/runs/{scene.mine['id']}", {})


def a_snapshot(scene: Scene) -> Wanted:
    return Wanted("GET", f"/v1/runs/{scene.mine['id']}/snapshot", {})


def a_sessions_runs(scene: Scene) -> Wanted:
    return Wanted("GET", "/v1/sessions/busy/runs", {})


def an_operation(scene: Scene) -> Wanted:
    return Wanted("GET", f"/v1/operations/{operation_of(scene)}", {})


def a_run_by_key(scene: Scene) -> Wanted:
    return Wanted("GET", "/v1/runs", {}, query={"idempotency_key": "used"})


CALLS = [
    (an_attach, ATTACH),
    (a_page, PAGE),
    (a_create, CREATE),
    (a_cancel, RUN),
    (a_run, RUN),
    (a_snapshot, RUN),
    (a_sessions_runs, SESSION),
    (an_operation, OPERATION),
    (a_run_by_key, BY_KEY),
]


@pytest.mark.parametrize(("call", "rows"), CALLS)
async def test_of_any_two_faults_the_earlier_row_answers(sites, call, rows):
    """Each row alone is answered with its own code; and no refusal, of hundreds, leaves a trace."""
    scene = await staged(sites)
    before = (
        await scene.site.engine.log.counts(),
        [await scene.site.engine.log.run(run["id"]) for run in (scene.mine, scene.bobs)],
    )
    for row, code in rows:
        wanted = call(scene)
        row(wanted, scene)
        assert await wanted.answer(scene.site) == code, row.__name__
        scene.site.engine.overload(-1, 503)
    for each in pairs(rows):
        earlier, later, code = each.values
        wanted = call(scene)
        earlier(wanted, scene)
        later(wanted, scene)
        assert await wanted.answer(scene.site) == code, each.id
        scene.site.engine.overload(-1, 503)
    after = (
        await scene.site.engine.log.counts(),
        [await scene.site.engine.log.run(run["id"]) for run in (scene.mine, scene.bobs)],
    )
    assert after == before


async def test_of_any_two_faults_of_a_sockets_resume_the_same_row_answers(sites):
    """The table is one for both faces: whatever an attach with these two faults is told, a resume is told."""
    scene = await staged(sites)
    for each in pairs(RESUME):
        earlier, later, code = each.values
        wanted = an_attach(scene)
        earlier(wanted, scene)
        later(wanted, scene)
        run_id, cursor = wanted.path.split("/")[3], wanted.query.get("after")
        headers = {"Authorization": wanted.authorization[0]}
        (message,), closed = await played(scene.site, run_id, cursor and unquote(cursor), **headers)
        assert (message["type"], message["code"], closed) == ("resume_rejected", code, 1000), each.id
        assert await wanted.answer(scene.site) == code
        scene.site.engine.overload(-1, 503)
