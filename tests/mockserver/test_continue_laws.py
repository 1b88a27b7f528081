"""Laws of answering, over random histories: answers, other answers, cancels, new runs, time, restarts, in any order.

One: a pause has at most one continuation, and that never changes. Two: what an action came to never changes. Three: the same
answers are the same run, under whatever key, for ever; other answers are refused once one was taken. Four: what is refused
changes nothing. Five: a key names one run for ever. Six: of the effects that were approved each happens once.
"""

import random

import pytest

from reattach_mockserver.logs.memory import MemoryLog
from reattach_mockserver.logs.sqlite import SqliteLog
from reattach_mockserver.scenarios.script import Action, Ask, Script, Tool

pytestmark = pytest.mark.anyio

STEPS = 40
SCRIPT = Script(
    name="s",
    clock="virtual",
    steps=(
        Ask(
            actions=(Action(id="a", tool="pay", expires_in_ms=10_000), Action(id="b", tool="pay", release_in_ms=5_000)),
            approved=(Tool(tool="pay"), Tool(tool="pay")),
            rejected=(),
        ),
    ),
)
CHOICES = tuple(
    tuple({"action_id": name, "decision": word} for name, word in zip("ab", words, strict=True))
    for words in (("approve", "approve"), ("reject", "reject"), ("approve", "reject"))
)


class History:
    """What was seen so far, and whether what is seen next may be."""

    def __init__(self, site) -> None:
        self.site = site
        self.paused: list[str] = []
        self.continuations: dict[str, str] = {}
        self.resolutions: dict[tuple[str, str], str] = {}
        self.taken: dict[str, int] = {}
        self.keys: dict[str, str] = {}

    async def begin(self, session: str) -> None:
        run = await self.site.settled({"input": "x", "session_id": session})
        self.paused.append(run["id"])

    async def answer(self, run_id: str, choice: int, key: str) -> None:
        before = (await self.site.engine.log.counts()).runs
        responses = list(CHOICES[choice])
        answer = await self.site.create({"continues": run_id, "responses": responses}, key=key)
        made = (await self.site.engine.log.counts()).runs - before
        if answer.status >= 400:
            assert made == 0
            if answer.code != "idempotency_conflict":
                assert self.taken.get(run_id) != choice, "equal answers were refused"
                assert answer.code in ("action_resolved", "action_expired", "approval_stale")
            return
        assert made == (answer.status == 201)
        assert self.keys.setdefault(key, answer.json["id"]) == answer.json["id"]
        assert answer.json["continues"] == run_id
        assert self.taken.setdefault(run_id, choice) == choice
        assert self.continuations.setdefault(run_id, answer.json["id"]) == answer.json["id"]
        await self.site.until_settled(answer.json["id"])

    async def check(self) -> None:
        for run_id in self.paused:
            run = (await self.site.get(f"/v1/runs/{run_id}")).json
            assert run["continued_by"] == self.continuations.get(run_id)
            for action in run["required_actions"]:
                place = (run_id, action["id"])
                if action["resolution"] is None:
                    assert place not in self.resolutions
                else:
                    assert self.resolutions.setdefault(place, action["resolution"]) == action["resolution"]
        for key, run_id in self.keys.items():
            found = (await self.site.get(f"/v1/runs?idempotency_key={key}")).json["runs"]
            assert [run["id"] for run in found] == [run_id]
        done = await self.site.engine.log.counts()
        assert done.effects == done.effect_attempts == 2 * sum(choice == 0 for choice in self.taken.values())


@pytest.mark.parametrize("seed", range(12))
async def test_the_laws_of_answering_hold_over_any_history(sites, tmp_path, seed):
    """The seed is the test's parameter."""
    draw = random.Random(f"answers:{seed}")
    clock = [1_000_000]
    log = SqliteLog(tmp_path / "log.db") if seed % 4 == 0 else MemoryLog()
    site = await sites(SCRIPT, log=log, now=lambda: clock[0])
    history = History(site)
    for session in ("s0", "s1"):
        await history.begin(session)
    for _ in range(STEPS):
        run_id = draw.choice(history.paused[-3:])
        match draw.choice(["answer", "answer", "answer", "again", "begin", "cancel", "time", "restart"]):
            case "answer":
                await history.answer(run_id, draw.randrange(len(CHOICES)), f"k{draw.randrange(12)}")
            case "again":
                for known, choice in list(history.taken.items())[-2:]:
                    await history.answer(known, choice, f"k{draw.randrange(12)}")
            case "begin":
                await history.begin(f"s{draw.randrange(8)}")
            case "cancel":
                assert (await site.call("POST", f"/v1/runs/{run_id}/cancel")).status == 200
            case "time":
                clock[0] += draw.choice([500, 1_000, -800, 4_000, 9_000])
            case "restart":
                await site.engine.restart()
        await history.check()
    assert history.taken, "the history has no answer in it"
