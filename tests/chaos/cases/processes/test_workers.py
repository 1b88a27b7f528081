"""A process that is one client after the other: each has its own streams and environment, and a kill takes one of them only."""

import os
import signal
import socket
import subprocess
import sys

import pytest

from reattach_chaos.cases.processes import workers as room
from reattach_chaos.cases.processes.workers import Workers

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture(scope="module")
def nursery(tmp_path_factory):
    """Where they are born; ends with its stdin."""
    path = tmp_path_factory.mktemp("nursery") / "nursery"
    with subprocess.Popen(
        [sys.executable, "-m", "reattach_chaos.cases.processes.nursery", str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": f"{path.parent}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"},
    ) as process:
        process.stdout.readline()
        yield path
        process.stdin.close()


async def said(process):
    """Return all lines, and the exit code."""
    lines = []
    while (line := await process.line()) is not None:
        lines.append(line)
    return lines, await process.code()


async def test_one_process_is_many_clients_each_with_streams_of_its_own(nursery, tmp_path, monkeypatch):
    """After so many it goes, and another comes; what one says is never another's."""
    monkeypatch.setattr(room, "LIVES", 3)
    workers = Workers(nursery, tmp_path)
    for number in range(4):
        errors = tmp_path / f"stderr-{number}"
        client = await workers.start("reattach.cli", ["--version"] if number % 2 else ["rum"], os.environ, errors)
        lines, code = await said(client)
        if number % 2:
            assert (len(lines), lines[0].split()[0], code, errors.read_text()) == (1, "reattach", 0, "")
        else:
            assert (lines, code) == ([], 64)
            assert "did you mean 'run'?" in errors.read_text()
    assert len(list(tmp_path.glob("worker-?"))) == 2
    workers.close()


LINGERS = """
import threading

def main(argv):
    threading.Thread(target=threading.Event().wait, daemon=True).start()
    print("here", flush=True)
    return 0
"""


async def test_who_comes_as_a_process_goes_is_given_another(nursery, tmp_path):
    """A client has left a thread behind: its process takes nobody any more once it has told that client's end."""
    (nursery.parent / "lingers.py").write_text(LINGERS)
    workers = Workers(nursery, tmp_path)
    for _ in range(40):
        client = await workers.start("lingers", [], os.environ, tmp_path / "stderr")
        assert await said(client) == (["here"], 0)
    assert len(list(tmp_path.glob("worker-*"))) > 10
    workers.close()


async def test_a_killed_client_takes_its_process_and_no_other_client(nursery, tmp_path):
    """The next one is born as if nothing had been; it does not wait for the silent server of the first."""
    workers = Workers(nursery, tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        words = ["follow", url, "run_1", "--json", "--journal", str(tmp_path / "j.db")]
        client = await workers.start("reattach.cli", words, os.environ, tmp_path / "stderr")
        assert await client.line() is not None
        client.signal("kill")
        assert (await said(client))[1] == -signal.SIGKILL
    after = await workers.start("reattach.cli", ["--version"], os.environ, tmp_path / "stderr")
    assert (await said(after))[1] == 0
    workers.close()
