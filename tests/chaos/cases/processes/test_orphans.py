"""However a run is ended, kill -9 too, nothing that it started stays: no server, no nursery, no client."""

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from reattach_chaos.socket_path import short

LIMIT_S = 60.0
NURSERY = [sys.executable, "-m", "reattach_chaos.cases.processes.nursery"]
RUN = [
    sys.executable,
    "-c",
    "import sys; from reattach.cli import main; sys.exit(main())",
    "chaos",
    "run",
    "-q",
    "--seed",
    "7",
    "--backend",
    "embedded",
]


def below(pid):
    """Return what a process started, and what that started."""
    found = []
    with contextlib.suppress(OSError):  # it ends while it is looked at
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                found += [int(child), *below(int(child))]
    return found


@contextlib.contextmanager
def held(pids):
    """Hold processes by descriptors, which no later process can be taken for."""
    with contextlib.ExitStack() as stack:
        descriptors = []
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):  # it has ended since it was looked at
                descriptors.append(os.pidfd_open(pid))
                stack.callback(os.close, descriptors[-1])
        try:
            yield descriptors
        finally:
            for descriptor in descriptors:  # what a broken kit would leave behind
                with contextlib.suppress(ProcessLookupError):
                    signal.pidfd_send_signal(descriptor, signal.SIGKILL)


@contextlib.contextmanager
def started(words, folder):
    """Start a run; it is ended with the test, also where that fails."""
    with subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, cwd=folder) as run:
        try:
            yield run
        finally:
            run.kill()


def until_ended(descriptors):
    """Wait until all of them have ended; return how many have not within the limit."""
    left = set(descriptors)
    while left and (ready := select.select(left, [], [], LIMIT_S)[0]):
        left -= set(ready)
    return len(left)


@pytest.mark.parametrize("how", ["stdin", pytest.param("term", marks=pytest.mark.slow), "kill"])
def test_clients_end_with_their_nursery(how, tmp_path):
    """One that waits for its next order, for which nothing else would ever come."""
    path = tmp_path / "nursery"
    with subprocess.Popen([*NURSERY, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as nursery:
        nursery.stdout.readline()
        with socket.socket(socket.AF_UNIX) as client:
            with short(path) as address:
                client.connect(address)
            order = {"module": "reattach_chaos.cases.processes.worker", "argv": [str(tmp_path / "worker")], "env": {}}
            client.sendall(json.dumps({**order, "stderr": str(tmp_path / "stderr")}).encode() + b"\n")
            assert client.recv(64), "it listens"
            with held(below(nursery.pid)) as descriptors:
                assert len(descriptors) == 1
                if how == "stdin":
                    nursery.stdin.close()
                else:
                    nursery.send_signal(signal.SIGTERM if how == "term" else signal.SIGKILL)
                assert until_ended(descriptors) == 0
        nursery.wait(LIMIT_S)


@pytest.mark.parametrize("word", [pytest.param(signal.SIGTERM, marks=pytest.mark.slow), signal.SIGKILL])
def test_a_run_that_is_killed_leaves_no_server_and_no_command(word, tmp_path):
    """Not what the command started either, which knows nothing of who started it."""
    born = tmp_path / "born"
    os.mkfifo(born)
    command = f"sleep 600 & echo $! > {born}; wait"
    words = [*RUN, "--out", str(tmp_path / "out"), "--only", "fin-after-event-3", "--client", command]
    with started(words, tmp_path) as run:
        # Both ways, so that opening it waits for nobody.
        fifo = os.open(born, os.O_RDWR)
        try:
            assert select.select([fifo], [], [], LIMIT_S)[0], "no client was started"
            sleeper = int(os.read(fifo, 64).split()[0])
        finally:
            os.close(fifo)
        found = below(run.pid)
        with held(found) as descriptors:
            assert sleeper in found
            run.send_signal(word)
            assert until_ended(descriptors) == 0
        assert run.wait(LIMIT_S) in (143, -signal.SIGKILL)


@pytest.mark.slow
@pytest.mark.parametrize("sample", [["quick"], ["sim"], ["quick", "--faults", "server-restart"]], ids=str)
@pytest.mark.parametrize("word", [signal.SIGTERM, signal.SIGKILL])
def test_a_run_of_our_own_client_leaves_nothing(word, sample, tmp_path):
    """Neither of the nursery's processes, a case's own server among them, nor of the simulation's."""
    words = [*RUN, "--out", str(tmp_path / "out"), "--json", "--sample", *sample]
    with started(words, tmp_path) as run:
        run.stdout.readline()
        with held(below(run.pid)) as descriptors:
            assert descriptors
            run.send_signal(word)
            assert until_ended(descriptors) == 0
        assert run.wait(LIMIT_S) in (143, -signal.SIGKILL)
