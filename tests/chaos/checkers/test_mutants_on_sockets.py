"""The small clients as processes, by the contract for clients under test."""

import json
import os
import subprocess
import sys
import urllib.request

import pytest

from reattach_chaos.checkers import judge
from reattach_chaos.history import Born, Died, Exited, History, Logged, content_sha256, record_of

ENDS = {"run.completed": "completed"}


def environment(server, folder, **more):
    return {**os.environ, "REATTACH_URL": server.url, "REATTACH_STATE": str(folder), **more}


def process(mutant, env):
    return subprocess.Popen(
        [sys.executable, "-m", "reattach_chaos.mutants", mutant],
        env=env,
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )


def truth(server, run):
    with urllib.request.urlopen(f"{server.url}/v1/runs/{run}", timeout=30) as answer:
        epoch = json.load(answer)["epoch"]
    return [
        Logged(
            who="control",
            run=run,
            id=event["id"],
            cursor=f"{epoch}.{event['sequence']}",
            sequence=event["sequence"],
            sha256=content_sha256(event["data"]),
            settles=ENDS.get(event["type"]),
        )
        for event in server.log(run)
    ]


def test_the_right_client_starts_dies_and_goes_on(reattach_server, tmp_path):
    """Killed with an event in hand and started again, it shows the whole log; the laws find nothing."""
    start = {"REATTACH_MODE": "start", "REATTACH_KEY": "k1", "REATTACH_INPUT": "say something"}
    records = [Born()]
    first = process("right", environment(reattach_server, tmp_path, **start))
    for line in first.stdout:
        records.append(record_of(json.loads(line)))
        if records[-1].kind == "applied":
            first.kill()
            break
    rest, _ = first.communicate(timeout=60)
    records += [record_of(json.loads(line)) for line in rest.splitlines(keepends=True) if line.endswith("\n")]
    records += [Died(), Born(life=2)]
    second = process("right", environment(reattach_server, tmp_path, **start))
    lines, _ = second.communicate(timeout=60)
    records += [record_of(json.loads(line), life=2) for line in lines.splitlines()]
    records.append(Exited(code=second.returncode, life=2))
    run = json.loads((tmp_path / "client.json").read_text(encoding="utf-8"))["run"]
    verdict = judge(History([*truth(reattach_server, run), *records]))
    assert verdict.word == "valid", verdict.sentence()
    assert {"I1", "I2", "I4"} <= {law for law, ruling in verdict.rulings.items() if ruling.compared}


@pytest.mark.parametrize("mutant", ["deliver-first"])
def test_a_mutant_is_the_same_mutant_on_sockets(mutant, reattach_server, tmp_path):
    """It follows a run that exists, and is found by the law that it is named for."""
    run = reattach_server.start("hello")
    env = environment(reattach_server, tmp_path, REATTACH_RUN=run)
    lines, _ = process(mutant, env).communicate(timeout=60)
    records = [record_of(json.loads(line)) for line in lines.splitlines()]
    assert set(judge(History([*truth(reattach_server, run), *records, Exited(code=0)])).broken) == {"I4"}


def test_wrong_arguments_are_a_usage_error(tmp_path):
    """64, as everywhere."""
    told = subprocess.run(
        [sys.executable, "-m", "reattach_chaos.mutants", "nobody"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert told.returncode == 64
    assert "usage" in told.stderr
