"""Many who read slowly or not at all, by stream and by socket, at a server of its own process (RS-23, RS-80; section 8).

What they cost is measured: the process' memory, against the bytes that a queue for each of them would hold.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from hostile_client import UPGRADE, RawClient, frame
from hostile_server import AS_ALICE, PATIENCE, Server, until

EVENTS, BYTES = 30, 400_000
SCENARIO = f"""
reattach: scenario/1
name: heavy
steps:
  - {{repeat: {EVENTS}, steps: [{{blob: {{bytes: {BYTES}}}}}, {{wait_ms: 10}}]}}
"""
EACH = (
    2_000_000  # bytes that a reader who takes nothing may cost: a page, its copy, a full buffer; measured: about 1.3 MB
)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    (tmp_path / "heavy.yaml").write_text(SCENARIO)
    running = Server(tmp_path, "--scenario", str(tmp_path / "heavy.yaml"))
    try:
        yield running
    finally:
        written = running.stop()
        assert b"Traceback" not in written, written[-3_000:]


def attached(server: Server, run_id: str, number: int) -> RawClient:
    """Return a reader that has asked for the run and takes no byte of it: every other one by a socket."""
    client = RawClient(
        server.url, receive_buffer=4_096 if number > 1 else 500_000
    )  # the first two are to read on, later
    token = b"Authorization: " + AS_ALICE["Authorization"].encode() + b"\r\n"
    if number % 2:
        client.send(UPGRADE + token + b"\r\n")
        client.until(b"\r\n\r\n")
        client.send(frame(1, json.dumps({"type": "resume", "run_id": run_id, "cursor": None}).encode()))
    else:
        head = f"GET /v1/runs/{run_id}/events HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\n"
        client.send(head.encode() + token + b"\r\n")
    return client


def blobs_up_to_the_end(client: RawClient) -> int:
    """Read on until the settling event, and count."""
    data = bytearray()
    while b'"type":"run.completed"' not in data[-8_000:]:
        piece = client.socket.recv(1_000_000)
        assert piece, "ended before the run had"
        data += piece
    return data.count(b'"type":"blob"')


@pytest.mark.parametrize("readers", [24, pytest.param(200, marks=pytest.mark.slow)])
def test_readers_that_take_nothing_cost_bounded_memory_and_delay_nobody(server, readers):
    """The run ends while none of them has taken anything, who reads has everything, and each can still read on from the log."""
    server.settled(server.create("heavy", "warm")["id"])
    before = server.memory()
    run = server.create("heavy", "k")
    held = [attached(server, run["id"], number) for number in range(readers)]
    try:
        with httpx.Client(base_url=server.url, headers=AS_ALICE, timeout=PATIENCE, trust_env=False) as good:
            stream = good.stream("GET", f"/v1/runs/{run['id']}/events", headers={"Accept": "text/event-stream"})
            with stream as answer:
                seen = sum(line.startswith("event: blob") for line in answer.iter_lines())
        assert seen == EVENTS
        settled = server.settled(run["id"])
        assert settled["status"] == "completed"
        cost = server.memory() - before
        assert cost < 30_000_000 + readers * EACH, f"{cost / readers:.0f} bytes a reader"
        assert readers * EACH < readers * EVENTS * BYTES / 2, "a queue for each would have been found out"
        for late in held[:2]:
            assert blobs_up_to_the_end(late) == EVENTS, "never thinned: the log is read at the reader's pace"
    finally:
        for client in held:
            client.socket.close()
    files = server.files()
    until(lambda: server.files() < files or files < 40, lambda: f"{server.files()} files are still open")
