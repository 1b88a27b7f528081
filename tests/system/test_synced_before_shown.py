"""What the log states about power loss, seen from outside of the process: strace's record of what it asks the system for."""

import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

PATIENCE = 60.0  # seconds; strace makes everything slow
SCRIPT = """
reattach: scenario/1
name: watched
steps:
  - {say: "one two three four", every_ms: 3}
  - {tool: charge, id: c1, takes_ms: 3, result: {ok: true}}
  - {end: completed, result: {done: true}}
"""
WATCHED = "trace=fsync,fdatasync,write,pwrite64,writev,pwritev,sendto,sendmsg"


def strace() -> str:
    """Return the program; else skip loudly, or fail where everything is required."""
    if found := shutil.which("strace"):
        return found
    missing = "strace is not installed; whether events are synced before they are shown was not looked at"
    if os.environ.get("REATTACH_REQUIRE_ALL") == "1":
        pytest.fail(missing)
    pytest.skip(missing)


def test_an_event_is_on_disk_before_anybody_is_told_of_it(tmp_path: Path) -> None:
    """RS-93: of each event: written to the log's file, then synced, and only then sent to a reader.

    Nothing else would show it: a process that is killed loses nothing that it wrote, synced or not.
    """
    record, script = tmp_path / "calls", tmp_path / "watched.yaml"
    script.write_text(SCRIPT)
    server = [
        sys.executable,
        "-m",
        "reattach_mockserver.cli",
        "--port",
        "0",
        "--json",
        "--log",
        str(tmp_path / "log.db"),
    ]
    command = [
        strace(),
        "-f",
        "-y",
        "-s",
        "200000",
        "-e",
        WATCHED,
        "-o",
        str(record),
        *server,
        "--scenario",
        str(script),
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        try:
            ready, _, _ = select.select([process.stdout], [], [], PATIENCE)
            assert ready, "the server did not start"
            url = json.loads(process.stdout.readline())["url"]
            with httpx.Client(trust_env=False, timeout=PATIENCE) as client:
                told = client.get(f"{url}/.well-known/reattach").json()
                headers = {"Idempotency-Key": "k", "Accept": "text/event-stream"}
                answer = client.post(f"{url}/v1/runs", json={"input": "x"}, headers=headers)
                ids = re.findall(r'^data: \{"id":"(evt_[0-9a-f]+)"', answer.text, re.MULTILINE)
        finally:
            os.killpg(process.pid, signal.SIGTERM)
            process.wait(PATIENCE)
    assert told["durability"] == "power"
    assert len(ids) == 10
    calls = record.read_text(errors="replace").splitlines()
    written = {each: _first(calls, each, "log.db-wal>", "write") for each in ids}
    shown = {each: _first(calls, each, "socket:", "send") for each in ids}
    synced = [
        number for number, call in enumerate(calls) if re.search(r"f(data)?sync.*= 0$", call) and _is_wal(call, calls)
    ]
    for each in ids:
        assert any(written[each] < number < shown[each] for number in synced), f"{each} was shown before it was synced"


def _first(calls: list[str], event_id: str, where: str, what: str) -> int:
    """Return the number of the first call of this kind that has the event in it."""
    return next(n for n, call in enumerate(calls) if event_id in call and where in call.lower() and what in call)


def _is_wal(call: str, calls: list[str]) -> bool:
    """Tell whether the sync that ends here is one of the log's file; it may have been interrupted by another thread's call."""
    if "resumed>" not in call:
        return "log.db-wal>" in call
    thread = call.split(maxsplit=1)[0]
    begun = [line for line in calls[: calls.index(call)] if line.startswith(thread) and "sync(" in line]
    return bool(begun) and "log.db-wal>" in begun[-1]
