"""Broken HTTP and WebSocket bytes, by the thousand and from a seed, at a `reattach serve` of its own process.

Afterwards the process lives, answers as before, holds as many files and threads as before, and no run has changed. A failure
prints the seed and the conversation that came before it; the long leg draws more. Section 8 of the protocol; B56, B57.
"""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from hostile_client import UPGRADE, RawClient, frame
from hostile_server import Server, until

LEAKS = (b"Traceback", b'File "', b"site-packages", b".py", b"secret-token", b"log.db")


class Fuzz:
    """Conversations that no client would have, drawn from a seed."""

    def __init__(self, seed: int, run: dict) -> None:
        self.draw = random.Random(seed)
        self.run = run
        self.well = self._well_formed()

    def _well_formed(self) -> list[bytes]:
        """Return whole requests, to be broken."""
        run_id, cursor = self.run["id"], self.run["cursor"]
        lines = [
            "GET /.well-known/reattach",
            f"GET /v1/runs/{run_id}",
            f"GET /v1/runs/{run_id}/snapshot",
            f"GET /v1/runs/{run_id}/events?after={cursor}&wait_ms=50",
            f"HEAD /v1/runs/{run_id}/events",
            "GET /v1/runs?idempotency_key=k",
            "GET /v1/sessions/s/runs?after=x",
            "OPTIONS /v1/runs",
        ]
        extra = [
            "",
            "Authorization: Bearer secret-token-b1\r\n",
            "Accept: text/event-stream\r\n",
            f"Last-Event-ID: {cursor}\r\n",
        ]
        requests = [f"{line} HTTP/1.1\r\nHost: x\r\n{more}\r\n".encode() for line in lines for more in extra]
        # No right to anything: what is broken here and happens to be whole all the same must change nothing.
        body = b'{"input": {"scenario": "hello"}}'
        head = b"POST /v1/runs HTTP/1.1\r\nHost: x\r\nIdempotency-Key: f\r\nContent-Type: application/json\r\n"
        requests.append(head + b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        requests.append(head + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (len(body), body))
        requests.append(f"POST /v1/runs/{run_id}/cancel HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        return requests

    def conversation(self) -> list[bytes]:
        """Return what is sent on one connection, piece by piece."""
        kind = self.draw.choice(
            [self.broken, self.broken, self.spliced, self.noise, self.headers, self.chunks, self.frames]
        )
        data = kind()
        if self.draw.random() < 0.3:
            return [data]
        cuts = sorted(self.draw.randrange(len(data) + 1) for _ in range(self.draw.randrange(4)))
        return [data[low:high] for low, high in zip([0, *cuts], [*cuts, len(data)], strict=True)]

    def broken(self) -> bytes:
        data = bytearray(self.draw.choice(self.well))
        for _ in range(self.draw.randrange(1, 6)):
            at = self.draw.randrange(len(data) + 1)
            match self.draw.randrange(4):
                case 0:
                    data[at:at] = self.draw.choice(
                        [b"\r\n", b"\n", b"\0", b"\xff", b" ", b":", b"\r", b"%", b"?", b"\t"]
                    )
                case 1:
                    del data[at : at + self.draw.randrange(1, 20)]
                case 2 if data:
                    data[min(at, len(data) - 1)] = self.draw.randrange(256)
                case _:
                    data[at:at] = data[at : at + self.draw.randrange(40)]
        return bytes(data)

    def spliced(self) -> bytes:
        pieces = [self.draw.choice(self.well) for _ in range(self.draw.randrange(2, 12))]
        return b"".join(
            piece[: self.draw.randrange(len(piece) + 1)] if self.draw.random() < 0.3 else piece for piece in pieces
        )

    def noise(self) -> bytes:
        return self.draw.randbytes(self.draw.randrange(1, 4_000))

    def headers(self) -> bytes:
        names = [
            *(b"Host", b"Content-Length", b"Transfer-Encoding", b"Connection", b"Upgrade", b"Expect", b"Authorization"),
            *(b"Origin", b"Last-Event-ID", b"Accept", b"Idempotency-Key", b"Content-Type"),
            b"X" * self.draw.randrange(1, 9_000),
        ]
        values = [
            *(b"", b"-1", b"9" * 30, b"chunked", b"gzip, chunked", b"close", b"upgrade", b"websocket", b"h2c"),
            *(b"100-continue", b"\xff\xfe", b"*/*", b"http://localhost", b"e-1.0", b"Bearer \xff"),
            b"x" * self.draw.randrange(1, 20_000),
        ]
        line = self.draw.choice(self.well).partition(b"\r\n")[0]
        chosen = [(self.draw.choice(names), self.draw.choice(values)) for _ in range(self.draw.randrange(1, 40))]
        return b"\r\n".join(
            [line, *(name + b": " + value for name, value in chosen), b"", self.draw.choice([b"", b"{}", b"0\r\n\r\n"])]
        )

    def chunks(self) -> bytes:
        head = b"POST /v1/runs HTTP/1.1\r\nHost: x\r\nIdempotency-Key: f\r\nTransfer-Encoding: chunked\r\n\r\n"
        sizes = [b"0", b"1", b"5", b"ffffffffffffffff", b"-1", b"0x5", b"5;" + b"x" * 500, b"", b"\xff", b"05", b"5 "]
        return head + b"".join(
            self.draw.choice(sizes)
            + b"\r\n"
            + self.draw.randbytes(self.draw.randrange(8))
            + self.draw.choice([b"\r\n", b"\n", b""])
            for _ in range(self.draw.randrange(1, 12))
        )

    def frames(self) -> bytes:
        """Return an upgrade, mostly a good one, and frames of little sense."""
        messages = [b"{}", b"[" * 2_000, b'{"type":"auth","token":"x"}', b'{"type":"resume","run_id":"\\ud800"}', b"\xff", b"",
                    b'{"type":"start"}', b"\x03\xe8", b"\x00", self.draw.randbytes(300)]  # fmt: skip
        sent = b"".join(
            frame(
                self.draw.choice([0, 1, 1, 1, 2, 8, 9, 10, self.draw.randrange(16)]),
                self.draw.choice(messages),
                fin=self.draw.random() < 0.8,
                masked=self.draw.random() < 0.9,
                reserved=self.draw.choice([0, 0, 0, 0, self.draw.randrange(8)]),
            )
            for _ in range(self.draw.randrange(1, 30))
        )
        return UPGRADE + b"\r\n" + sent


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    running = Server(tmp_path)
    try:
        yield running
    finally:
        written = running.stop()
        assert b"Traceback" not in written, written[-3_000:]
        assert not any(token in written for token in (b"secret-token",))


def converse(url: str, pieces: list[bytes]) -> bytes:
    """Say it, hear a little of what is answered, and go away, one way or the other."""
    heard = b""
    with RawClient(url) as client:
        upgrade = pieces and b"".join(pieces).startswith(UPGRADE)
        if upgrade:
            # The rest only once the upgrade was answered, or it would be dropped with the head.
            client.send(UPGRADE + b"\r\n")
            heard += client.until(b"\r\n\r\n")
            pieces = [b"".join(pieces)[len(UPGRADE) + 2 :]]
        for piece in pieces:
            if not client.send(piece):
                break
        heard += client.some(0.02).data
    return heard


@pytest.mark.parametrize(
    ("seed", "conversations"),
    [(20261130, 250), *(pytest.param(seed, 8_000, marks=pytest.mark.slow) for seed in range(1, 4))],
)
def test_whatever_bytes_come_the_process_answers_as_before_and_no_run_changed(server, seed, conversations):
    """Every answer is of HTTP and tells nothing of the server; afterwards nothing is held and nothing was made or changed."""
    run = server.settled(server.create("hello", "k")["id"])
    waiting = server.create("quiet", "q")
    fuzz = Fuzz(seed, run)
    converse(server.url, fuzz.conversation())  # what is opened once and kept is open now
    files, threads = server.files(), server.threads()
    before = [
        server.client.get(f"/v1/runs/{run['id']}{tail}").content for tail in ("", "/events?limit=1000", "/snapshot")
    ]
    for number in range(conversations):
        pieces = fuzz.conversation()
        heard = converse(server.url, pieces)
        said = f"seed {seed}, conversation {number}: {pieces!r:.2000} was answered {heard[:600]!r}"
        assert server.process.poll() is None, f"the server died; {said}"
        assert not any(leak in heard for leak in LEAKS), said
        assert b" 500 " not in heard[:16], said
    after = [
        server.client.get(f"/v1/runs/{run['id']}{tail}").content for tail in ("", "/events?limit=1000", "/snapshot")
    ]
    assert after == before, f"seed {seed}"
    assert server.client.get(f"/v1/runs/{waiting['id']}").json()["status"] in ("running", "completed")
    for token in ("secret-token-a1", "secret-token-b1"):
        found = server.client.get("/v1/runs?idempotency_key=f", headers={"Authorization": f"Bearer {token}"})
        assert found.json() == {"runs": []}, f"seed {seed}: a run was made"
    until(lambda: server.files() <= files + 1, lambda: f"seed {seed}: {server.files()} files, {files} before")
    assert server.threads() <= threads
    follow = server.create("hello", "afterwards")
    assert server.settled(follow["id"])["status"] == "completed"


def test_many_who_connect_and_say_little_disturb_nobody(server):
    """Idle, half a head, half a body, half a frame: two hundred of them; a run is made and followed as before."""
    begun = [b"", b"G", b"GET / HTTP/1.1\r\nHost:", b"POST /v1/runs HTTP/1.1\r\nContent-Length: 9\r\n\r\n{", UPGRADE]
    held = [RawClient(server.url) for _ in range(200)]
    try:
        for number, client in enumerate(held):
            client.send(begun[number % len(begun)])
        run = server.create("hello", "k")
        with server.client.stream(
            "GET", f"/v1/runs/{run['id']}/events", headers={"Accept": "text/event-stream"}
        ) as stream:
            assert "run.completed" in stream.read().decode()
        files = server.files()
    finally:
        for client in held:
            client.socket.close()
    until(lambda: server.files() < files - 150, lambda: f"{server.files()} files are still open")
