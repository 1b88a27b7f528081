"""The server's process dies by SIGKILL, again and again, and is started again on its log by whoever started it."""

import json
import os
import select
import signal
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from reattach_mockserver.logs.tables import counts_of

PATIENCE = 30.0  # seconds
SCRIPT = """
reattach: scenario/1
name: killed
limits: {heartbeat_ms: 3000}
steps:
  - {say: "one two three four five six", every_ms: 5}
  - {tool: charge, id: c1, operation_id: op_1, takes_ms: 20, result: {ok: true}}
  - {server: kill}
  - {repeat: 12, steps: [{say: "tick {i}", split: 3, every_ms: 4}, {tool: mail, takes_ms: 5, result: {i: "{i}"}}]}
  - {server: kill}
  - {tool: charge, id: c2, operation_id: op_2, takes_ms: 20, result: {ok: true}}
  - {end: completed, result: {done: true}}
"""

ASKS = """
reattach: scenario/1
name: asks
steps:
  - {say: "May I?", split: whole}
  - ask: [{id: a, tool: charge, arguments: {cents: 9}}, {id: c, kind: client_tool, tool: look}]
    approved:
      - {tool: charge, id: c1, arguments: {cents: 9}, takes_ms: 10, result: {ok: true}}
      - {server: kill}
      - {tool: mail, id: c2, takes_ms: 10, result: {sent: true}}
  - {end: completed, result: {done: true}}
"""


class Server:
    """A server process on one port and one log; `start` waits until it accepts."""

    def __init__(self, folder: Path, script: str) -> None:
        self.log = folder / "log.db"
        self.script = folder / "killed.yaml"
        self.script.write_text(script)
        self.port = "0"
        self.url = ""
        self.process: subprocess.Popen[str] | None = None
        self.starts = 0

    def start(self) -> None:
        command = [sys.executable, "-m", "reattach_mockserver.cli", "--port", self.port, "--json"]
        self.process = subprocess.Popen(
            [*command, "--log", str(self.log), "--scenario", str(self.script)], stdout=subprocess.PIPE, text=True
        )
        ready, _, _ = select.select([self.process.stdout], [], [], PATIENCE)
        assert ready, "the server did not start"
        self.url = json.loads(self.process.stdout.readline())["url"]
        self.port = self.url.rsplit(":", 1)[1]
        self.starts += 1

    def kill(self) -> None:
        self.process.kill()
        self.wait()

    def wait(self) -> int:
        code = self.process.wait(PATIENCE)
        self.process.stdout.close()
        return code

    def counts(self):
        connection = sqlite3.connect(self.log)
        try:
            return counts_of(connection)
        finally:
            connection.close()


@contextmanager
def a_server(folder: Path, script: str = SCRIPT) -> Iterator[Server]:
    server = Server(folder, script)
    server.start()
    try:
        yield server
    finally:
        if server.process.poll() is None:
            server.kill()


def blocks(response: httpx.Response) -> Iterator[tuple[str, str]]:
    """Yield (cursor, text) of every event that came whole."""
    cursor = text = ""
    for line in response.iter_lines():
        name, _, value = line.partition(": ")
        if name == "id":
            cursor = value
        elif name == "data":
            text = value
        elif not line:
            if cursor and text:
                yield cursor, text
            cursor = text = ""


@pytest.mark.parametrize(("every", "most"), [(3, 4), (17, 2)])
def test_a_run_outlives_its_servers_deaths(tmp_path, every, most):
    """RS-45, RS-61, RS-62: what was seen stays, in order and in bytes; every effect counts once; the run ends.

    The reader kills the server after each `every` events, `most` times; the script kills it twice itself, once with nothing in
    flight and once in the middle.
    """
    shown: list[str] = []
    with a_server(tmp_path) as server, httpx.Client(trust_env=False, timeout=PATIENCE) as client:
        body, key = {"input": "x"}, {"Idempotency-Key": "k"}
        run = client.post(f"{server.url}/v1/runs", json=body, headers=key).json()
        cursor = f"{run['epoch']}.0"
        kills = 0
        while not shown or '"run.completed"' not in shown[-1]:
            assert server.starts < 60, "the run makes no progress"
            headers = {"Accept": "text/event-stream", "Last-Event-ID": cursor}
            since = 0
            try:
                with client.stream("GET", f"{server.url}/v1/runs/{run['id']}/events", headers=headers) as response:
                    assert response.status_code == 200, response.read()
                    for shown_at, text in blocks(response):
                        cursor = shown_at
                        shown.append(text)
                        since += 1
                        if since == every and kills < most:
                            os.kill(server.process.pid, signal.SIGKILL)
                            kills += 1
            except httpx.TransportError:
                pass  # the death that this test is about
            if '"run.completed"' not in shown[-1]:
                assert server.wait() == -signal.SIGKILL
                server.start()
        again = client.post(f"{server.url}/v1/runs", json=body, headers=key)
        log, after = [], ""
        while page := client.get(f"{server.url}/v1/runs/{run['id']}/events?limit=1000{after}").json():
            log += page["events"]
            after = f"&after={page['next']}"
            if not page["events"]:
                break
        assert (again.status_code, again.json()["id"]) == (200, run["id"])
        assert [json.loads(text) for text in shown] == log
        assert [event["sequence"] for event in log] == list(range(1, len(log) + 1))
        calls = [event for event in log if event["type"] == "tool.call"]
        assert len(calls) == len({event["data"]["operation_id"] for event in calls}) == 14
        server.kill()
        counts = server.counts()
        assert (counts.runs, counts.effects, counts.events) == (1, 14, len(log))
        assert server.starts == 1 + most + 2


def until_settled(client: httpx.Client, server: Server, run_id: str) -> dict:
    """Follow the run through its server's deaths; return it."""
    while True:
        try:
            run = client.get(f"{server.url}/v1/runs/{run_id}").json()
            if run["status"] not in ("queued", "running"):
                return run
            client.get(f"{server.url}/v1/runs/{run_id}/events?after={run['cursor']}&wait_ms=20000")
        except httpx.TransportError:
            assert server.wait() == -signal.SIGKILL
            assert server.starts < 60, "the run makes no progress"
            server.start()


def test_an_answer_counts_once_whenever_the_server_dies(tmp_path):
    """RS-56, RS-61, RS-89: killed while the answer is on its way, and by the continuation itself; sent again under other keys.

    When the kill comes is left to chance on purpose: whether the answer was kept or not, sending it again must do.
    """
    responses = [{"action_id": "a", "decision": "approve"}, {"action_id": "c", "result": {"seen": True}}]
    with a_server(tmp_path, ASKS) as server, httpx.Client(trust_env=False, timeout=PATIENCE) as client:
        for number in range(2):
            asked = {"input": "x", "session_id": f"s{number}"}
            create = {"Idempotency-Key": f"k{number}"}
            run_id = client.post(f"{server.url}/v1/runs", json=asked, headers=create).json()["id"]
            paused = until_settled(client, server, run_id)
            body = {"continues": run_id, "responses": responses}
            address = urlsplit(server.url)
            with socket.create_connection((address.hostname, address.port), timeout=PATIENCE) as link:
                content = json.dumps(body).encode()
                head = f"POST /v1/runs HTTP/1.1\r\nHost: x\r\nIdempotency-Key: lost{number}\r\nContent-Length: {len(content)}"
                link.sendall(head.encode() + b"\r\n\r\n" + content)
                if number % 2:
                    link.recv(1)
                server.kill()
            server.start()
            keys = [f"lost{number}", f"new{number}", f"new{number}"]
            made = set()
            for key in keys:
                made |= {continuation(client, server, body, key)}
            assert len(made) == 1
            (after,) = made
            assert until_settled(client, server, after)["status"] == "completed"
            now = client.get(f"{server.url}/v1/runs/{run_id}").json()
            assert now["continued_by"] == after
            assert [action["resolution"] for action in now["required_actions"]] == ["approved", "answered"]
            listed = client.get(f"{server.url}/v1/sessions/s{number}/runs").json()["runs"]
            assert [run["id"] for run in listed] == [run_id, after]
            operation = client.get(f"{server.url}/v1/operations/{paused['required_actions'][0]['operation_id']}").json()
            assert (operation["status"], operation["run_id"]) == ("committed", after)
        server.kill()
        counts = server.counts()
        assert (counts.runs, counts.effects) == (4, 4)


def continuation(client: httpx.Client, server: Server, body: dict, key: str) -> str:
    """Answer under a key until an answer comes back; return the continuation's id."""
    while True:
        try:
            answer = client.post(f"{server.url}/v1/runs", json=body, headers={"Idempotency-Key": key})
            assert answer.status_code in (200, 201), answer.text
            return str(answer.json()["id"])
        except httpx.TransportError:
            assert server.wait() == -signal.SIGKILL
            assert server.starts < 60, "the answer is never taken"
            server.start()
