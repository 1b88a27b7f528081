"""SIGKILL between every two steps of a publish: create, append, wake-up (the contract: "killed at any instruction").

A process plays a script on a log in a file, with a hook that kills it at a moment and a sequence; then it is
started again without. What anybody could have seen is there byte for byte, the run ends, its effects count once. RS-61, RS-62.
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from mockserver_stage import Site
from reattach_mockserver.app import create_app
from reattach_mockserver.hooks import Hooks
from reattach_mockserver.library import Library
from reattach_mockserver.logs.sqlite import SqliteLog
from reattach_mockserver.scenarios.parse import loads_script
from reattach_mockserver.settings import Settings

PATIENCE = 60.0  # seconds
SCRIPT = """
reattach: scenario/1
name: charged
steps:
  - {say: "one two three", every_ms: 2}
  - {tool: charge, id: c1, operation_id: op_1, takes_ms: 3, result: {ok: true}}
  - {say: "four five", every_ms: 2}
"""
QUICK = {("durable", 7)}
PLACES = [
    ("created", 1),
    ("appending", 1),
    *((moment, since) for moment in ("durable", "woken") for since in range(2, 13)),
]
"""The run has twelve events; how many of them one publish takes is the clock's affair."""


async def life(log: Path, key: str, hooks: Hooks, seen: Path) -> None:
    """Create the run of the key, or find it, and follow it to its end; write down each event that a reader was given."""
    app = create_app(
        Settings(scripts=Library({"charged": loads_script(SCRIPT)}), default="charged", log=SqliteLog(log), hooks=hooks)
    )
    await app.engine.start()
    site = Site(app)
    run = (await site.create({"input": "x"}, key=key)).json
    exchange = site.attach(run["id"])
    with seen.open("ab") as file:
        while (block := await exchange.block()) is not None:
            if block.id is not None:
                file.write(f"{block.id} {block.data}\n".encode())
                file.flush()
    await site.close()


def killing(moment: str, since: int) -> Hooks:
    async def kill(run_id: str, sequence: int) -> None:
        if sequence >= since:
            os.kill(os.getpid(), signal.SIGKILL)

    return Hooks(**{moment: kill})


def lived(folder: Path, moment: str, since: int) -> int:
    """Live once, in a process; return how it ended."""
    command = [sys.executable, __file__, str(folder / "log.db"), str(folder / "seen"), moment, str(since)]
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    }
    return subprocess.run(command, timeout=PATIENCE, check=False, env=environment).returncode


@pytest.mark.parametrize(
    ("moment", "since"),
    [pytest.param(*place, marks=[] if place in QUICK else [pytest.mark.slow]) for place in PLACES],
)
def test_killed_between_two_steps_what_was_seen_stands_and_the_run_ends(tmp_path, moment, since):
    assert lived(tmp_path, moment, since) == -signal.SIGKILL
    before = (tmp_path / "seen").read_bytes().splitlines() if (tmp_path / "seen").exists() else []
    assert lived(tmp_path, "", 0) == 0
    after = (tmp_path / "seen").read_bytes().splitlines()[len(before) :]
    assert after[: len(before)] == before, "what was seen is there, under the same cursors, byte for byte"
    sequences = [json.loads(line.partition(b" ")[2])["sequence"] for line in after]
    assert sequences == list(range(1, len(sequences) + 1))
    kinds = [json.loads(line.partition(b" ")[2])["type"] for line in after]
    assert kinds[-1] == "run.completed"
    assert kinds.count("tool.result") == 1

    async def counts():
        log = SqliteLog(tmp_path / "log.db")
        await log.open()
        try:
            return await log.counts()
        finally:
            await log.close()

    found = asyncio.run(counts())
    assert (found.runs, found.effects) == (1, 1)


if __name__ == "__main__":
    path, notes, at, number = sys.argv[1:]
    asyncio.run(life(Path(path), "k", killing(at, int(number)) if at else Hooks(), Path(notes)))
