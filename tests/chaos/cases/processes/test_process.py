"""One process of a client under test, as the shell runs it."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from reattach_chaos.cases.processes.process import LINE_BYTES, BornProcess, ShellProcess

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend():
    return "asyncio"


async def started(command, tmp_path):
    return await ShellProcess.spawn(command, os.environ, tmp_path / "stderr")


async def said(process):
    """Return all lines, and the exit code."""
    lines = []
    while (line := await process.line()) is not None:
        lines.append(line)
    return lines, await process.code()


async def test_lines_come_whole_and_the_exit_code_last(tmp_path):
    """Half a line at the end was not said; stderr is kept apart."""
    process = await started("echo one; echo lost >&2; printf 'two\\r\\nhalf'; exit 5", tmp_path)
    assert await said(process) == (["one", "two"], 5)
    assert (tmp_path / "stderr").read_text() == "lost\n"


async def test_a_line_of_more_than_a_mebibyte_is_cut_off_and_the_next_one_is_whole(tmp_path):
    """It is none of the contract's, and ends nothing."""
    process = await started(f"head -c {3 * LINE_BYTES} /dev/zero | tr '\\0' x; echo; echo next", tmp_path)
    lines, code = await said(process)
    assert (len(lines), lines[-1], code) == (2, "next", 0)
    assert set(lines[0]) == {"x"}


async def test_a_kill_takes_all_that_the_command_started(tmp_path):
    """The child of the shell holds the stdout: its end is the end of the lines."""
    process = await started("sleep 600 & echo started; wait", tmp_path)
    assert await process.line() == "started"
    process.signal("kill")
    assert await said(process) == ([], -signal.SIGKILL)


def state(pid):
    """Return what the kernel says of a process: "T" stands still."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


async def becomes(pid, wanted):
    """Wait until a process is in one of these states, for a while."""
    with anyio.fail_after(20):
        while state(pid) not in wanted:  # noqa: ASYNC110 -- the kernel tells nobody
            await anyio.sleep(0.01)


@pytest.mark.skipif(sys.platform != "linux", reason="the state of a process is read from /proc")
async def test_a_suspended_command_stands_still_and_goes_on(tmp_path):
    """All of its group, and it is none the worse for it."""
    process = await started("sleep 600 & echo $!; wait", tmp_path)
    pid = int(await process.line())
    process.signal("stop")
    await becomes(pid, "T")
    process.signal("cont")
    await becomes(pid, "SR")
    process.signal("kill")
    assert await said(process) == ([], -signal.SIGKILL)


@pytest.fixture
def nursery(tmp_path):
    """One of our own: its only child is the client of the test."""
    words = [sys.executable, "-m", "reattach_chaos.cases.processes.nursery", str(tmp_path / "nursery")]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        yield process
        process.stdin.close()


def child(pid):
    """Return the only child of a process."""
    (found,) = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return int(found)


@pytest.mark.skipif(sys.platform != "linux", reason="the state of a process is read from /proc")
async def test_a_suspended_client_of_the_nursery_stands_still_and_goes_on(nursery, tmp_path):
    """The nursery sends it the signals, and lives on itself."""
    module, argv = "reattach_chaos.cases.processes.worker", [str(tmp_path / "worker")]
    process = await BornProcess.bear(tmp_path / "nursery", module, argv, os.environ, tmp_path / "stderr")
    assert await process.line() is not None
    pid = child(nursery.pid)
    process.signal("stop")
    await becomes(pid, "T")
    process.signal("cont")
    await becomes(pid, "SR")
    process.signal("kill")
    assert await said(process) == ([], -signal.SIGKILL)
    assert nursery.poll() is None
