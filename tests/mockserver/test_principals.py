"""Nothing of one principal is visible to another: by no face, id, cursor, key, count or refusal, nor by the work it costs.

B56; RS-06, RS-65, RS-66, RS-67. That absent and another's cost the same is tested by the calls that reach the log, not by a clock.
"""

import asyncio
from typing import Any

import pytest

from mockserver_dialogue import Dialogue
from mockserver_stage import OPEN, quiet
from reattach_mockserver import bearer
from reattach_mockserver.bearer import parse_tokens
from reattach_mockserver.logs.memory import MemoryLog
from reattach_mockserver.scenarios.ready import load_ready
from reattach_mockserver.settings import Limits

pytestmark = pytest.mark.anyio

TOKENS = parse_tokens(["alice a1", "alice a2", "bob b1", "carol c1 none"])
ALICE, BOB, CAROL = ({"Authorization": f"Bearer {token}"} for token in ("a1", "b1", "c1"))
NONE = "0" * 20
AGED = quiet(retention_ms=1_000)


class Watched:
    """A log that notes what is asked of it, by the names of its methods."""

    def __init__(self, log: Any) -> None:
        self._log = log
        self.asked: list[str] = []

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._log, name)
        if not callable(found):
            return found

        def noted(*given: Any, **named: Any) -> Any:
            self.asked.append(name)
            return found(*given, **named)

        return noted


async def aged(sites, a_log):
    """Return a site with a run, operation, session and key of Alice's that has much to be let go of, and Bob's own run."""
    clock = [1_800_000_000_000]
    log = Watched(a_log)
    site = await sites(AGED, log=log, tokens=TOKENS, now=lambda: clock[0])
    made = await site.create({"input": "x", "session_id": "shared"}, key="k", **ALICE)
    mine = await site.create({"input": "x", "session_id": "bobs"}, key="bobs", **BOB)
    for run in (made.json, mine.json):
        await site.until_head(run["id"], 3)
    clock[0] += 60_000
    await site.get(f"/v1/runs/{mine.json['id']}", BOB)  # what had to be let go of in his own is gone now
    return site, log, made.json, mine.json


def calls(
    run_id: str, session_id: str, operation_id: str, epoch: str, bobs: str
) -> dict[str, tuple[str, str, dict, bytes]]:
    """Return a call of every kind that names something of somebody's."""
    sse = {"Accept": "text/event-stream"}
    return {
        "run": ("GET", f"/v1/runs/{run_id}", {}, b""),
        "head": ("HEAD", f"/v1/runs/{run_id}", {}, b""),
        "snapshot": ("GET", f"/v1/runs/{run_id}/snapshot", {}, b""),
        "page": ("GET", f"/v1/runs/{run_id}/events", {}, b""),
        "page after": ("GET", f"/v1/runs/{run_id}/events?after={epoch}.2", {}, b""),
        "poll": ("GET", f"/v1/runs/{run_id}/events?after={epoch}.3&wait_ms=30000", {}, b""),
        "stream": ("GET", f"/v1/runs/{run_id}/events", sse, b""),
        "stream after": ("GET", f"/v1/runs/{run_id}/events", {**sse, "Last-Event-ID": f"{epoch}.2"}, b""),
        "cancel": ("POST", f"/v1/runs/{run_id}/cancel", {}, b""),
        "continue": ("POST", "/v1/runs", {"Idempotency-Key": "c"}, b'{"continues":"%b","responses":[]}' % run_id.encode()),
        "session": ("GET", f"/v1/sessions/{session_id}", {}, b""),
        "session runs": ("GET", f"/v1/sessions/{session_id}/runs", {}, b""),
        "session runs after": ("GET", f"/v1/sessions/bobs/runs?after={run_id}", {}, b""),
        "operation": ("GET", f"/v1/operations/{operation_id}", {}, b""),
        "cursor on a page": ("GET", f"/v1/runs/{bobs}/events?after={epoch}.2", {}, b""),
        "cursor on a stream": ("GET", f"/v1/runs/{bobs}/events", {**sse, "Last-Event-ID": f"{epoch}.2"}, b""),
    }  # fmt: skip


@pytest.mark.parametrize("kind", calls("", "", "", "", ""))
async def test_what_is_anothers_is_absent_in_words_in_work_and_in_deed(sites, a_log, kind):
    """RS-65: same answer, same calls to the log, and nothing of it was changed by being asked for."""
    site, log, alices, bobs = await aged(sites, a_log)
    before = await a_log.run(alices["id"])
    answers, asked = [], []
    for tag, run_id, session in ((alices["epoch"], alices["id"], "shared"), (f"{NONE}-1", f"run_{NONE}", "nobodys")):
        log.asked.clear()
        method, path, headers, body = calls(run_id, session, f"op_{session}", tag, bobs["id"])[kind]
        answer = await site.call(method, path, {**headers, **BOB}, body)
        text = answer.body.decode().replace(alices["id"], f"run_{NONE}").replace(alices["epoch"], f"{NONE}-1")
        answers.append((answer.status, answer.headers | {"content-length": ""}, text.replace("shared", "nobodys")))
        asked.append(list(log.asked))
    assert answers[0] == answers[1]
    assert answers[0][0] >= 400
    assert asked[0] == asked[1]
    assert len(asked[0]) >= 1
    assert await a_log.run(alices["id"]) == before


@pytest.mark.parametrize("say", ["resume", "start"])
async def test_on_the_socket_too_anothers_run_is_absent_in_words_in_work_and_in_deed(sites, a_log, say):
    """RS-65, on the WebSocket."""
    site, log, alices, _ = await aged(sites, a_log)
    before = await a_log.run(alices["id"])
    said, asked = [], []
    for run_id in (alices["id"], f"run_{NONE}"):
        dialogue = await Dialogue(site, BOB).opened()
        log.asked.clear()
        if say == "resume":
            dialogue.say("resume", run_id=run_id, cursor=None)
        else:
            dialogue.say("start", idempotency_key="c", continues=run_id, responses=[])
        text = await dialogue.text()
        said.append(text.replace(alices["id"], f"run_{NONE}"))
        asked.append(list(log.asked))
        await dialogue.messages()
    assert said[0] == said[1]
    assert "run_not_found" in said[0]
    assert asked[0] == asked[1]
    assert await a_log.run(alices["id"]) == before


@pytest.mark.parametrize("kind", calls("", "", "", "", ""))
async def test_without_the_right_nothing_is_looked_up(sites, a_log, kind):
    """RS-65: 403 comes before the log is asked anything, so it says and costs the same for whatever was named."""
    site, log, alices, bobs = await aged(sites, a_log)
    answers = []
    for tag, run_id in ((alices["epoch"], alices["id"]), (f"{NONE}-1", f"run_{NONE}")):
        log.asked.clear()
        method, path, headers, body = calls(run_id, "shared", "op_1", tag, bobs["id"])[kind]
        answer = await site.call(method, path, {**headers, **CAROL}, body)
        assert log.asked == []
        answers.append((answer.status, answer.body))
    assert answers[0] == answers[1]
    assert answers[0][0] == 403


async def test_a_key_a_session_and_an_operation_are_each_principals_own(sites, a_log):
    """The same key, session id and operation id of two principals are two things, and neither hinders the other."""
    site = await sites(load_ready("tools"), OPEN, log=a_log, tokens=TOKENS)
    body = {"input": {"scenario": "tools"}, "session_id": "s"}
    alices = await site.create(body, key="k", **ALICE)
    assert (await site.get("/v1/runs?idempotency_key=k", BOB)).json == {"runs": []}
    bobs = await site.create({**body, "input": {"scenario": "open"}}, key="k", **BOB)
    assert (alices.status, bobs.status) == (201, 201)
    assert alices.json["id"] != bobs.json["id"]
    await site.until_settled(alices.json["id"], ALICE)
    page = (await site.get(f"/v1/runs/{alices.json['id']}/events", ALICE)).json
    operation = next(event["data"]["operation_id"] for event in page["events"] if event["type"] == "tool.call")
    assert (await site.get(f"/v1/operations/{operation}", ALICE)).status == 200
    assert (await site.get(f"/v1/operations/{operation}", BOB)).code == "operation_not_found"
    for token, run in ((ALICE, alices), (BOB, bobs)):
        found = (await site.get("/v1/sessions/s/runs", token)).json["runs"]
        assert [each["id"] for each in found] == [run.json["id"]]
        assert (await site.get("/v1/sessions/s", token)).json["last_run_id"] == run.json["id"]
        assert (await site.get("/v1/runs?idempotency_key=k", token)).json["runs"][0]["id"] == run.json["id"]


async def test_what_one_does_shows_in_no_answer_to_another(sites, a_log):
    """Discovery, an empty session, limits and refusals: the same bytes before and after a busy neighbour."""
    site = await sites(OPEN, log=a_log, tokens=TOKENS, limits=Limits(runs_per_principal=3, streams_per_principal=2))

    async def seen() -> list[tuple[int, bytes]]:
        found = [
            await site.get(path, BOB)
            for path in (
                "/.well-known/reattach",
                "/v1/sessions/s",
                "/v1/runs?idempotency_key=k0",
                f"/v1/runs/run_{NONE}",
            )
        ]
        return [(answer.status, answer.body) for answer in found]

    before = await seen()
    runs = [await site.create({"input": "x"}, key=f"k{number}", **ALICE) for number in range(3)]
    held = [site.attach(runs[0].json["id"], **ALICE) for _ in range(2)]
    for exchange in held:
        await exchange.started()
    assert (await site.create(**ALICE)).status == 429
    assert await seen() == before
    mine = await site.run(**BOB)
    assert (await site.attach(mine["id"], **BOB).started())[0] == 200


async def test_an_event_of_anothers_run_is_on_no_stream_of_mine(sites, a_log):
    """RS-06: two runs in the same session id, side by side, each reader with the bytes of its own."""
    site = await sites(OPEN, log=a_log, tokens=TOKENS)
    runs = [(await site.run({"input": "x", "session_id": "s"}, **token), token) for token in (ALICE, BOB)]
    streams = [site.attach(run["id"], **token) for run, token in runs]
    for number in range(5):
        for run, token in runs:
            await site.append(run["id"], f"{token['Authorization'][7:]}-{number}")
    for (run, token), exchange in zip(runs, streams, strict=True):
        await exchange.block()
        found = [(await exchange.block()).json for _ in range(7)]
        assert {event["run_id"] for event in found} == {run["id"]}
        names = [event["data"]["name"] for event in found if event["type"] == "note"]
        assert {name[:2] for name in names[1:]} == {token["Authorization"][7:]}


def test_a_token_is_compared_in_constant_time(monkeypatch):
    """The same comparison of equal lengths whether it is known or not; what is compared are digests."""
    compared = []

    def noting(one, other):
        compared.append((one, other))
        return one == other

    monkeypatch.setattr(bearer, "compare_digest", noting)
    assert TOKENS.caller("a1").principal == "alice"
    assert TOKENS.caller("a") is None
    assert [(len(one), len(other)) for one, other in compared] == [(64, 64), (64, 64)]
    assert compared[0] == (bearer.digest("a1"), bearer.digest("a1"))


class Late(MemoryLog):
    """A log whose reads of a run take a turn of the event loop."""

    late = False

    async def run(self, run_id):
        for _ in range(3 * self.late):
            await asyncio.sleep(0)
        return await super().run(run_id)


@pytest.mark.parametrize("face", ["sse", "socket"])
async def test_attaches_at_the_same_moment_do_not_outrun_the_limit_on_streams(sites, face):
    """RS-81: all were checked before the first had joined; the log answers late, as one over a network does."""
    log = Late()
    site = await sites(OPEN, log=log, limits=Limits(streams_per_principal=2))
    run = await site.run()
    log.late = True
    if face == "sse":
        found = await asyncio.gather(*(site.attach(run["id"]).started() for _ in range(8)))
        refused = sum(status == 429 for status, _ in found)
    else:
        dialogues = [await Dialogue(site).opened() for _ in range(8)]
        for dialogue in dialogues:
            dialogue.say("resume", run_id=run["id"], cursor=None)
        first = [await dialogue.message() for dialogue in dialogues]
        refused = sum(message["type"] == "resume_rejected" for message in first)
        for dialogue in dialogues:
            dialogue.leave()
            await dialogue.messages()
    assert refused == 6
