"""Promise 1: killed before, during and after a create, the next process goes on with the same key: one run, whatever was committed.

B45: the process dies by SIGKILL at each step of the intent; the request left or did not, the server took it or did not.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from client_relay import Relay
from client_stage import PATIENCE, Facts
from reattach import Status, errors, profiles

pytestmark = pytest.mark.anyio

CHILD = Path(__file__).with_name("child_creates.py")
STEPS = ["intend-before", "intend-after", "swallowed", "answered", "created-before", "created-after"]


def answers(outcome):
    return [each.approve() if each.kind == "approval" else each.answer(12) for each in outcome.required_actions]


@pytest.fixture
def relay(live):
    with Relay(live.url) as relay:
        yield relay


def die(relay, journal, face, work, step, session):
    """Run the child until it is dead."""
    child = subprocess.Popen(
        [sys.executable, CHILD, relay.url, journal, face.name, work, step, session],
        stderr=subprocess.PIPE,
        text=True,
    )
    if step in ("swallowed", "answered"):
        relay.lose(step, lambda: os.kill(child.pid, signal.SIGKILL))
    _, told = child.communicate(timeout=3 * PATIENCE)
    assert child.returncode == -9, told


@pytest.mark.parametrize("step", STEPS)
async def test_a_start_that_was_killed_is_one_run(face, relay, journal, step):
    """B45. What the journal knows is listed; the same key gives the one run that there is, made now or by the dead process."""
    session = f"killed-{face.name}-{step}"
    die(relay, journal, face, "start", step, session)
    async with face.client(relay.url, journal) as client:
        listed = [(run.key, run.id != "", run.needs) for run in await client.runs(unfinished=True)]
        known = {"intend-before": [], "created-after": [(f"k-{session}", True, "follow")]}
        assert listed == known.get(step, [(f"k-{session}", False, "follow")])
        run = await client.start({"scenario": "asks"}, key=f"k-{session}", session_id=session)
        assert (await run.wait()).status is Status.REQUIRES_ACTION
        assert [each.id for each in await client.session_runs(session)] == [run.id]
        assert len(await client.runs()) == 1


@pytest.mark.parametrize("step", STEPS)
async def test_a_response_that_was_killed_is_one_continuation(face, relay, journal, step):
    """B45, for answers. Giving them again is safe whatever the dead process had done, and start() gives the same newest run."""
    session = f"respond-{face.name}-{step}"
    async with face.client(relay.url, journal) as client:
        await client.start({"scenario": "asks"}, key=f"k-{session}", session_id=session)
    die(relay, journal, face, "respond", step, session)
    async with face.client(relay.url, journal) as client:
        needs = sorted(run.needs for run in await client.runs(unfinished=True))
        assert needs == (["respond"] if step == "intend-before" else ["follow"])
        paused = next(run for run in await client.runs() if run.key)
        made = await paused.respond(*answers(await paused.wait()))
        assert (await made.wait()).result == "restarted"
        newest = await client.start({"scenario": "asks"}, key=f"k-{session}", session_id=session)
        assert newest.id == made.id
        assert [each.id for each in await client.session_runs(session)] == [paused.id, made.id]


@pytest.mark.parametrize("step", ["swallowed", "answered"])
async def test_a_server_without_keys_is_never_sent_a_create_twice(face, relay, journal, step):
    """B43: the profile says that keys are not kept. Lost, it may or may not have happened: a person must look, by name."""
    keyless = profiles.Native(keyed=False)
    session = f"keyless-{face.name}-{step}"
    relay.lose(step)
    async with face.client(relay.url, journal, profile=keyless) as client:
        for _ in range(2):
            with pytest.raises(errors.AmbiguousOutcome, match="It was not repeated") as caught:
                await client.start({"scenario": "asks"}, key=session, session_id=session)
        assert relay.creates == 1
        assert f"client.reconcile('{session}', run_id=" in str(caught.value)
        assert caught.value.key == session
        assert [(run.key, run.id, run.needs) for run in await client.runs(unfinished=True)] == [
            (session, "", "reconcile")
        ]
        if step == "answered":
            (found,) = await client.session_runs(session)
            await client.reconcile(session, run_id=found.id)
        else:
            with pytest.raises(errors.NotFound):
                await client.session_runs(session)
            await client.reconcile(session, run_id=None)
        run = await client.start({"scenario": "asks"}, key=session, session_id=session)
        assert (await run.wait()).status is Status.REQUIRES_ACTION
        assert [each.id for each in await client.session_runs(session)] == [run.id]
    assert relay.creates == (1 if step == "answered" else 2)


@pytest.mark.parametrize("step", ["intend-after", "created-before"])
async def test_an_intent_of_a_dead_process_is_never_sent_to_a_server_without_keys(face, relay, journal, step):
    """Whether the request had left is not known: the one that may have must not be followed by another."""
    session = f"orphan-{face.name}-{step}"
    die(relay, journal, face, "start", step, session)
    before = relay.creates
    facts = Facts()
    async with face.client(relay.url, journal, profile=profiles.Native(keyed=False), observer=facts) as client:
        with pytest.raises(errors.AmbiguousOutcome):
            await client.start({"scenario": "asks"}, key=f"k-{session}", session_id=session)
        (run,) = await client.runs(unfinished=True)
        assert (run.id, run.needs) == ("", "reconcile")
        with pytest.raises(errors.AmbiguousOutcome):
            await run.wait()
    assert relay.creates == before
