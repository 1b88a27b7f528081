"""Many at once: creates of one key, cancels, answers, and a cancel against the end; each has one outcome, on every face and log.

RS-42, RS-53, RS-54, RS-56, RS-89. What runs at the same moment is decided by hooks where it matters, by the loop elsewhere.
"""

import asyncio
from typing import Any

import pytest

from mockserver_moments import by_poll, by_socket, by_sse
from mockserver_stage import OPEN
from reattach_mockserver.hooks import Hooks
from reattach_mockserver.scenarios.ready import load_ready
from reattach_mockserver.scenarios.script import RawEvent, Script

pytestmark = pytest.mark.anyio

SHORT = Script(name="short", clock="virtual", steps=(RawEvent(type="note", data={"n": 1}),))
SETTLING = ("run.completed", "run.cancelled", "run.failed", "run.paused")


async def kinds(site, run_id: str) -> list[str]:
    return [event.type for event in await site.engine.log.read(run_id, 0, 1_000, 1 << 24)]


async def one_outcome(site, run_id: str) -> str:
    """Return how the run settled, once every witness says the same."""
    run = await site.until_settled(run_id)
    names = await kinds(site, run_id)
    assert [name for name in names if name in SETTLING] == names[-1:]
    stream, socket, polled = [await reader(site, run_id) for reader in (by_sse, by_socket, by_poll)]
    assert stream.bodies == socket.bodies == polled.bodies
    assert len(stream.bodies) == len(names) == run["last_sequence"]
    assert names[-1] == f"run.{run['status']}" or run["status"] == "requires_action"
    snapshot = (await site.get(f"/v1/runs/{run_id}/snapshot")).json
    assert snapshot["status"] == run["status"]
    return run["status"]


async def test_fifty_creates_of_one_key_at_once_make_one_run(sites, a_log):
    """RS-42, B43: JSON, stream and socket alike, one 201, the others its replay, the run played once."""
    site = await sites(SHORT, log=a_log)
    answers = await asyncio.gather(*(site.create(key="k") for _ in range(50)))
    assert sorted(answer.status for answer in answers) == [200] * 49 + [201]
    assert len({answer.json["id"] for answer in answers}) == 1
    assert (await site.engine.log.counts()).runs == 1
    assert await one_outcome(site, answers[0].json["id"]) == "completed"


async def test_fifty_creates_of_one_key_and_two_bodies_make_one_run(sites, a_log):
    """RS-43: whichever was first has it; every other body is a conflict."""
    site = await sites(SHORT, log=a_log)
    answers = await asyncio.gather(*(site.create({"input": number % 2}, key="k") for number in range(50)))
    assert sorted(answer.status for answer in answers) == [200] * 24 + [201] + [422] * 25
    assert (await site.engine.log.counts()).runs == 1


async def test_creates_of_one_session_at_once_make_one_run(sites, a_log):
    """Other keys, one session: one run, the others refused and their keys unused."""
    site = await sites(OPEN, log=a_log)
    body = {"input": "x", "session_id": "s"}
    answers = await asyncio.gather(*(site.create(body, key=f"k{number}") for number in range(20)))
    assert sorted(answer.status for answer in answers) == [201] + [409] * 19
    assert (await site.engine.log.counts()).runs == 1
    (made,) = [answer for answer in answers if answer.status == 201]
    assert {answer.json["run_id"] for answer in answers if answer.status == 409} == {made.json["id"]}


async def test_twenty_that_supersede_at_once_leave_one_run_open(sites, a_log):
    """`on_active: cancel` from all sides: each run settles once, the last one stays, no two are open together."""
    site = await sites(OPEN, log=a_log)
    body = {"input": "x", "session_id": "s", "on_active": "cancel"}
    answers = await asyncio.gather(*(site.create(body, key=f"k{number}") for number in range(20)))
    assert {answer.status for answer in answers} <= {201, 503}
    made = [answer.json["id"] for answer in answers if answer.status == 201]
    still_open = await site.engine.log.unfinished()
    assert len(still_open) == 1
    for run_id in made:
        if run_id != still_open[0].id:
            assert await one_outcome(site, run_id) == "cancelled"


async def test_twenty_cancels_at_once_are_one_cancel(sites, a_log):
    """RS-53: each is answered, one settling event, the same words on all faces."""
    site = await sites(OPEN, log=a_log)
    run = await site.run()
    path = f"/v1/runs/{run['id']}/cancel"
    answers = await asyncio.gather(*(site.call("POST", path) for _ in range(20)))
    assert {answer.status for answer in answers} <= {200, 202}
    assert await one_outcome(site, run["id"]) == "cancelled"


@pytest.mark.parametrize(
    "turns", [0, 1, 2, 3, 5, *(pytest.param(turns, marks=pytest.mark.slow) for turns in range(6, 40))]
)
async def test_a_cancel_against_completion_has_one_outcome(sites, a_log, turns):
    """RS-54: the cancel comes so many turns of the loop after the create; whatever wins, all witnesses agree, for ever."""
    site = await sites(SHORT, log=a_log)
    run = await site.run()
    for _ in range(turns):
        await asyncio.sleep(0)
    answer = await site.call("POST", f"/v1/runs/{run['id']}/cancel")
    assert answer.status in (200, 202)
    outcome = await one_outcome(site, run["id"])
    if answer.status == 200:
        assert answer.json["status"] == outcome
    again = await site.call("POST", f"/v1/runs/{run['id']}/cancel")
    assert (again.status, again.json["status"]) == (200, outcome)


@pytest.mark.parametrize("moment", ["appending", "durable", "woken"])
async def test_a_cancel_exactly_at_the_settling_event_has_one_outcome(sites, a_log, moment):
    """RS-54: before it is asked of the log, before it is told, and after; what the run became first stands."""
    said: list[Any] = []

    async def cancel(run_id: str, sequence: int) -> None:
        names = await kinds(site, run_id)
        if not said and (moment == "appending" or names[-1] in SETTLING):
            said.append(await site.call("POST", f"/v1/runs/{run_id}/cancel"))

    site = await sites(SHORT, log=a_log, hooks=Hooks(**{moment: cancel}))
    run = await site.run()
    outcome = await one_outcome(site, run["id"])
    assert said[0].status in (200, 202)
    if moment != "appending":
        assert (said[0].status, outcome) == (200, "completed"), "it had settled"


async def test_twenty_equal_answers_at_once_are_one_continuation(sites, a_log):
    """RS-56, RS-89: under twenty keys, one run, every other answer its replay."""
    site, paused, answers = await asked(sites, a_log)
    bodies = [{"continues": paused["id"], "responses": answers} for _ in range(20)]
    found = await asyncio.gather(*(site.create(body, key=f"a{number}") for number, body in enumerate(bodies)))
    assert sorted(answer.status for answer in found) == [200] * 19 + [201]
    assert len({answer.json["id"] for answer in found}) == 1
    assert (await site.engine.log.counts()).runs == 2
    after = (await site.get(f"/v1/runs/{paused['id']}")).json
    assert after["continued_by"] == found[0].json["id"]


async def test_twenty_answers_of_two_minds_at_once_are_one_continuation(sites, a_log):
    """RS-56: the first decision counts; whoever says otherwise is told that it was resolved."""
    site, paused, yes = await asked(sites, a_log)
    no = [{**each, "decision": "reject"} for each in yes]
    bodies = [{"continues": paused["id"], "responses": (yes, no)[number % 2]} for number in range(20)]
    found = await asyncio.gather(*(site.create(body, key=f"a{number}") for number, body in enumerate(bodies)))
    statuses = sorted(answer.status for answer in found)
    assert statuses == [200] * 9 + [201] + [409] * 10
    assert {answer.code for answer in found if answer.status == 409} == {"action_resolved"}
    assert (await site.engine.log.counts()).runs == 2
    made = next(answer.json["id"] for answer in found if answer.status == 201)
    mind = {
        answer["decision"]
        for answer in ((yes, no)[number % 2][0] for number in range(20) if found[number].status < 300)
    }
    resolved = {each["resolution"] for each in (await site.get(f"/v1/runs/{paused['id']}")).json["required_actions"]}
    assert resolved == {{"approve": "approved", "reject": "rejected"}[word] for word in mind}
    await one_outcome(site, made)


async def test_an_answer_against_a_cancel_of_the_pause_has_one_outcome(sites, a_log):
    """PROTOCOL, section 5: answered or cancelled, never both, whoever comes first."""
    site, paused, answers = await asked(sites, a_log)
    body = {"continues": paused["id"], "responses": answers}
    path = f"/v1/runs/{paused['id']}/cancel"
    found = await asyncio.gather(
        *(site.create(body, key=f"a{number}") if number % 2 else site.call("POST", path) for number in range(10))
    )
    after = (await site.get(f"/v1/runs/{paused['id']}")).json
    (resolution,) = {each["resolution"] for each in after["required_actions"]}
    answered = [answer for number, answer in enumerate(found) if number % 2]
    if resolution == "cancelled":
        assert {answer.code for answer in answered} == {"action_resolved"}
        assert after["continued_by"] is None
    else:
        assert resolution == "approved"
        assert after["continued_by"] in {answer.json["id"] for answer in answered}


async def asked(sites, a_log):
    """Return a site, a paused run of it, and an answer to each of its actions."""
    site = await sites(load_ready("approval"), log=a_log)
    paused = await site.settled()
    assert paused["status"] == "requires_action"
    return site, paused, [{"action_id": each["id"], "decision": "approve"} for each in paused["required_actions"]]
