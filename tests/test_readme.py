"""The README says what is true: its program runs, is killed and goes on; its commands are the ones that exist."""

from __future__ import annotations

import contextlib
import itertools
import json
import pathlib
import re
import signal
import sqlite3
import subprocess
import sys
import textwrap

import pytest

from reattach_mockserver.live import LiveServer
from reattach_mockserver.scenarios.parse import loads_script

ROOT = pathlib.Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()

SLOW = json.dumps(
    {
        "reattach": "scenario/1",
        "name": "summary",
        "steps": [
            {"say": " ".join(f"word{number}" for number in range(200)) + ".", "every_ms": 5},
            {"end": "completed", "result": 42},
        ],
    }
)


def program(url: str) -> str:
    (code,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert "http://127.0.0.1:8700" in code
    return str(code.replace("http://127.0.0.1:8700", url))


@pytest.mark.timeout(60)
def test_the_program_of_the_readme_survives_a_kill(tmp_path: pathlib.Path) -> None:
    """Killed in the middle and run again: the text goes on, with at most the event in hand again; one run."""
    script = tmp_path / "program.py"
    with LiveServer(scripts={"summary": loads_script(SLOW, "summary")}) as server:
        script.write_text(program(server.url))
        first = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, cwd=tmp_path)
        assert first.stdout is not None
        begin = first.stdout.read(400)
        first.send_signal(signal.SIGKILL)
        begin += first.stdout.read()
        first.wait()
        first.stdout.close()
        second = subprocess.run(
            [sys.executable, str(script)], capture_output=True, cwd=tmp_path, timeout=40, check=True
        )
        shown = begin + second.stdout
        third = subprocess.run([sys.executable, str(script)], capture_output=True, cwd=tmp_path, timeout=40, check=True)
        assert server.counts.runs == 1
    words = re.findall(rb"word\d+", shown)
    told = [int(word[4:]) for word in words]
    again = sum(late <= early for early, late in itertools.pairwise(told))
    assert sorted(set(told)) == list(range(200))
    assert again <= 1, "at most the event in hand comes again"
    assert shown.rstrip().endswith(b"42")
    assert third.stdout.strip() == b"42", "when the work is done, running it again prints the result"


def test_the_code_of_the_clients_readme_runs(tmp_path: pathlib.Path) -> None:
    """As it stands, inside the `with` that it names, with the table that it asks for; and twice."""
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "client/README.md").read_text(), re.DOTALL)
    head = """
import sqlite3, sys, reattach
with sqlite3.connect("runs.db") as database:
    database.execute("CREATE TABLE IF NOT EXISTS bill (event TEXT PRIMARY KEY, tool TEXT)")
with reattach.Client(sys.argv[1], "runs.db") as client:
"""
    tail = "assert not client.runs(unfinished=True)\nassert sum(1 for event in again) > 10\n"
    script = tmp_path / "program.py"
    script.write_text(head + textwrap.indent(code + tail, "    "))
    with LiveServer() as server:
        for _ in range(2):
            subprocess.run([sys.executable, str(script), server.url], cwd=tmp_path, timeout=40, check=True)
        assert server.counts.runs == 1
    with contextlib.closing(sqlite3.connect(tmp_path / "runs.db")) as database:
        assert database.execute("SELECT count(*) FROM bill").fetchone() == (8,)


def test_the_scenarios_that_are_always_there_are_named() -> None:
    text = (ROOT / "mockserver/README.md").read_text()
    for ready in (ROOT / "mockserver/reattach_mockserver/scenarios/ready").glob("*.yaml"):
        assert f"`{ready.stem}`" in text, ready


def test_the_scenario_to_play_with_can_be_played() -> None:
    assert "--scenario examples/minute.yaml" in README
    assert loads_script((ROOT / "examples/minute.yaml").read_text(), "minute.yaml").steps


def test_the_two_commands_are_those_of_the_package() -> None:
    """One runs the main job, one passes the tests; both do all set-up."""
    commands = [line.strip() for line in README.splitlines() if line.startswith("    python3 -m venv")]
    assert commands == [
        "python3 -m venv .venv && .venv/bin/pip install -e '.[all]' && .venv/bin/reattach demo",
        "python3 -m venv .venv && .venv/bin/pip install -e '.[dev]' && .venv/bin/pytest",
    ]


def test_every_room_of_the_map_exists() -> None:
    for link in re.findall(r"\]\(([^)]+)\)", README):
        assert (ROOT / link).exists(), link
