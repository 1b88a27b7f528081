"""`reattach record` in processes that die: killed at any moment and run again, the file has each event once.

Nobody sleeps: a run goes on for as long as the test needs it, and a test goes on when a line has come.
"""

import json
import subprocess
import sys

import httpx
import pytest

from reattach_mockserver.live import LiveServer
from reattach_mockserver.scenarios.recording import load_recording
from reattach_mockserver.scenarios.script import Repeat, Say, Script, Wait

PATIENCE = 60.0  # seconds; only a broken program takes longer
SLOW = Script(
    name="slow", steps=(Repeat(times=100_000, steps=(Say(text="tick {i} – 🙂", split="whole"), Wait(ms=20))),)
)


@pytest.fixture
def server():
    with LiveServer(scripts={"slow": SLOW}) as running:
        yield running


def post(server, path, **more):
    return httpx.post(f"{server.url}{path}", trust_env=False, timeout=PATIENCE, **more).json()


def recorder(server, run, path):
    words = ["record", server.url, run, "-o", str(path), "--json"]
    command = [sys.executable, "-c", "import sys; from reattach.cli import main; sys.exit(main())", *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def new_lines(process, count):
    """Return the ids of the next events that it says are recorded."""
    found = []
    while len(found) < count:
        line = process.stdout.readline()
        assert line, process.stderr.read().decode()
        told = json.loads(line)
        found += [told["id"]] if told["kind"] == "recorded" else []
    return found


def test_killed_and_run_again_nothing_is_lost_or_doubled(server, tmp_path):
    """By SIGKILL, by SIGTERM, while the server restarts: what was said to be recorded is, once, and then the rest."""
    run = post(server, "/v1/runs", json={"input": "x"}, headers={"Idempotency-Key": "k"})["id"]
    path = tmp_path / "run.jsonl"
    with recorder(server, run, path) as process:
        said = new_lines(process, 10)
        server.restart()
        said += new_lines(process, 10)
        process.kill()
    assert said[-1] in path.read_text()
    with recorder(server, run, path) as process:
        said += new_lines(process, 10)
        process.terminate()
        _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 143
    assert b"the same command is run again: reattach record" in err
    with recorder(server, run, path) as process:
        said += new_lines(process, 5)
        post(server, f"/v1/runs/{run}/cancel")
        out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, err
    log = [json.loads(body) for body in server.log(run)]
    recorded = [json.loads(line) for line in path.read_bytes().splitlines()[1:]]
    assert [(line["id"], line["data"]) for line in recorded] == [(event["id"], event["data"]) for event in log]
    last = json.loads(out.splitlines()[-1])
    assert (last["kind"], last["events"], last["status"]) == ("finished", len(log), "cancelled")
    assert len(set(said)) == len(said), "no event was recorded twice"
    assert [name.name for name in tmp_path.iterdir()] == ["run.jsonl"]
    assert load_recording(path).ending.status == "cancelled"
