"""Clients that we did not write follow a run: curl, and a browser's own EventSource."""

import http.server
import json
import os
import queue
import shutil
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from reattach_mockserver.live import LiveServer
from reattach_mockserver.scenarios.script import Say, Script, Status, Wait

PATIENCE = 60

TALK = Script(name="talk", steps=(Say(text="Grüße 🙂 aus\u2028Köln", every_ms=10), Status(text="fertig")))
OPEN = Script(name="open", steps=(Say(text="Grüße 🙂 aus\u2028Köln"), Wait(ms=3_600_000)))
"""Characters that break readers; the second is open until it is cancelled."""


def program(*names: str) -> str:
    """Return the first of these programs that is there; else skip loudly, or fail where everything is required."""
    for name in names:
        if found := shutil.which(name):
            return found
    missing = f"none of {', '.join(names)} is installed; nothing was tested with it"
    if os.environ.get("REATTACH_REQUIRE_ALL") == "1":
        pytest.fail(missing)
    pytest.skip(missing)


@pytest.fixture
def server() -> Iterator[LiveServer]:
    with LiveServer(scripts={"open": OPEN, "talk": TALK}) as running:
        yield running


def create(server: LiveServer, scenario: str = "talk") -> dict[str, str]:
    body, key = {"input": {"scenario": scenario}}, {"Idempotency-Key": "k"}
    return httpx.post(f"{server.url}/v1/runs", json=body, headers=key, trust_env=False).json()


def curl(*arguments: str) -> str:
    command = [program("curl"), "--noproxy", "*", "-sN", "-m", str(PATIENCE), *arguments]
    return subprocess.run(command, capture_output=True, check=True, timeout=PATIENCE).stdout.decode()


def events(stream: str) -> list[dict[str, object]]:
    found = [json.loads(line.removeprefix("data: ")) for line in stream.split("\n") if line.startswith("data: ")]
    return [event for event in found if "sequence" in event]


def test_curl_follows_and_resumes(server):
    """`curl -N -H 'Last-Event-ID: …'`: strictly after, to the settling event, then curl ends by itself."""
    run = create(server)
    stream = "Accept: text/event-stream"
    first = events(curl("-H", stream, server.events_url(run["id"])))
    rest = events(curl("-H", stream, "-H", f"Last-Event-ID: {run['epoch']}.{len(first)}", server.events_url(run["id"])))
    log = [json.loads(text) for text in server.log(run["id"])]
    assert first + rest == log
    assert log[-1]["type"] == "run.completed"
    last = f"Last-Event-ID: {run['epoch']}.{len(log)}"
    assert curl("-w", "%{http_code}", "-H", stream, "-H", last, server.events_url(run["id"])) == "204"


def test_curl_creates_and_follows_in_one_call(server):
    """A create whose answer is the stream: repeated with its key it is the same run from the beginning."""
    call = ["-X", "POST", "-H", "Accept: text/event-stream", "-H", "Content-Type: application/json",
            "-H", "Idempotency-Key: k", "-d", '{"input": {"scenario": "hello"}}', f"{server.url}/v1/runs"]  # fmt: skip
    first, again = events(curl(*call)), events(curl(*call))
    assert first == again
    assert first[-1]["type"] == "run.completed"
    assert server.counts.runs == 1


PAGE = """<!doctype html><meta charset="utf-8"><title>watching</title><script>
const seen = [];
const source = new EventSource(%r);
source.addEventListener("stream.closing", () => fetch("/closing", {method: "POST", body: "[]"}));
source.addEventListener("stream.attached", () => fetch("/attached", {method: "POST", body: "[]"}));
source.onmessage = (event) => {
  const data = JSON.parse(event.data);
  seen.push({id: event.lastEventId, event: data});
  if (/^run\\.(completed|failed|cancelled|paused)$/.test(data.type)) {
    source.close();
    fetch("/settled", {method: "POST", body: JSON.stringify(seen)});
  }
};
</script>"""


class Watching(http.server.ThreadingHTTPServer):
    """Serves the page from an origin of its own and takes what the browser saw."""

    def __init__(self, page: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.page = page.encode()
        self.seen: list[dict] = []
        self.told: queue.Queue[str] = queue.Queue()


class _Handler(http.server.BaseHTTPRequestHandler):
    server: Watching

    def do_GET(self) -> None:
        self._answer(self.server.page if self.path == "/" else b"")

    def do_POST(self) -> None:
        self.server.seen = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self._answer(b"")
        self.server.told.put(self.path)

    def _answer(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


def test_a_browsers_own_event_source_follows_and_resumes(server: LiveServer, tmp_path: Path):
    """RS-82: from another origin, over a planned close, by `Last-Event-ID` alone; every event once, in order.

    With `?names=off` its `onmessage` sees every event and no control frame.
    """
    browser = program("chromium", "chromium-browser", "google-chrome")
    run = create(server, "open")
    with Watching(PAGE % f"{server.events_url(run['id'])}?names=off") as pages:
        serving = threading.Thread(target=pages.serve_forever, daemon=True)
        serving.start()
        command = [browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                   "--no-first-run", "--no-proxy-server", f"--user-data-dir={tmp_path}/profile",
                   f"http://127.0.0.1:{pages.server_address[1]}/"]  # fmt: skip
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            try:
                told = [pages.told.get(timeout=PATIENCE)]
                server.call(lambda: closed(server, run["id"]))
                told += [pages.told.get(timeout=PATIENCE) for _ in range(2)]
                httpx.post(f"{server.url}/v1/runs/{run['id']}/cancel", trust_env=False)
                told.append(pages.told.get(timeout=PATIENCE))
            finally:
                process.terminate()
        pages.shutdown()
        serving.join()
    assert told == ["/attached", "/closing", "/attached", "/settled"]
    log = [json.loads(text) for text in server.log(run["id"])]
    assert [entry["event"] for entry in pages.seen] == log
    assert [entry["id"] for entry in pages.seen] == [f"{run['epoch']}.{n + 1}" for n in range(len(log))]


async def closed(server: LiveServer, run_id: str) -> None:
    server.engine.hub.close("max_age", run_id)
