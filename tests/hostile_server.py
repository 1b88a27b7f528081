"""A `reattach serve` of its own process on a log in a file, and what it looks like from outside: files, threads, memory."""

import json
import os
import select
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import httpx

PATIENCE = 60.0  # seconds; only a broken server takes longer
TOKENS = "alice secret-token-a1\nbob secret-token-b1\n"
AS_ALICE = {"Authorization": "Bearer secret-token-a1"}


class Server:
    """A server process with a log in a file, and what it looks like from outside."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        (folder / "tokens").write_text(TOKENS)
        command = [sys.executable, "-m", "reattach_mockserver.cli", "--port", "0", "--json"]
        command += ["--log", str(folder / "log.db"), "--tokens", str(folder / "tokens"), *arguments]
        self.errors = (folder / "stderr").open("wb+")
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self.errors, text=True)
        ready, _, _ = select.select([self.process.stdout], [], [], PATIENCE)
        assert ready, "the server did not start"
        self.url = json.loads(self.process.stdout.readline())["url"]
        self.client = httpx.Client(base_url=self.url, headers=AS_ALICE, timeout=PATIENCE, trust_env=False)

    def files(self) -> int:
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def threads(self) -> int:
        return len(os.listdir(f"/proc/{self.process.pid}/task"))

    def memory(self) -> int:
        """Return the bytes of memory that it holds."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return 1024 * int(status.partition("VmRSS:")[2].split()[0])

    def settled(self, run_id: str) -> dict:
        while (run := self.client.get(f"/v1/runs/{run_id}").json())["ended_at"] is None:
            self.client.get(f"/v1/runs/{run_id}/events?after={run['cursor']}&wait_ms=10000")
        return run

    def create(self, scenario: str, key: str) -> dict:
        answer = self.client.post("/v1/runs", json={"input": {"scenario": scenario}}, headers={"Idempotency-Key": key})
        return answer.json()

    def stop(self) -> bytes:
        """End it, and return what it wrote to stderr."""
        self.client.close()
        self.process.terminate()
        try:
            self.process.wait(PATIENCE)
        finally:
            self.process.kill()
            self.process.stdout.close()
        self.errors.seek(0)
        with self.errors:
            return self.errors.read()


def until(condition: Callable[[], bool], why: Callable[[], str]) -> None:
    """Wait, at most so long, for what the server does once it notices that somebody has gone."""
    ended = time.monotonic() + PATIENCE
    pause = threading.Event()
    while not condition():
        assert time.monotonic() < ended, why()
        pause.wait(0.05)
