"""A client without reattach that does it right, in eighty lines, for the demo to be tested with; or wrong in one way.

Journal: a file of JSON lines, each written before it is shown; a second file holds how many were confirmed. The environment's
PLAIN_RESUMER_FAULT names what it does wrong: "inclusive" (asks once more for the event that it has), "unmarked" (shows the one in
hand again without the mark), "skip" (drops an event after a reconnect), "early end" (takes the end of a stream for the end),
"second key" (makes a new key when a create's answer is lost), "changed" (shows another content), "hang" (stops for ever).
"""

import http.client
import json
import os
import sys
import threading
import time
import uuid
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

FAULT = os.environ.get("PLAIN_RESUMER_FAULT", "")
IDLE_S = 0.5


def say(kind: str, **facts: Any) -> None:
    sys.stdout.write(json.dumps({"kind": kind, **facts}) + "\n")
    sys.stdout.flush()


class Journal:
    def __init__(self, path: Path) -> None:
        self.path, self.mark = path, path.with_suffix(".applied")
        lines = path.read_text().splitlines() if path.exists() else []
        self.frames: list[tuple[str, str]] = [tuple(json.loads(line)) for line in lines]
        self.applied = int(self.mark.read_text() or 0) if self.mark.exists() else 0

    def commit(self, cursor: str, data: str) -> None:
        self.frames.append((cursor, data))
        with self.path.open("a") as file:
            file.write(json.dumps([cursor, data]) + "\n")

    def apply(self) -> None:
        self.applied = len(self.frames)
        fresh = self.mark.with_suffix(".new")
        fresh.write_text(str(self.applied))
        fresh.replace(self.mark)


def create(url: str, order: dict[str, Any]) -> str:
    key = order["key"]
    while True:
        connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=5)
        try:
            connection.request(
                "POST",
                "/v1/runs",
                json.dumps({"input": order["input"]}),
                {"Idempotency-Key": key, "Content-Type": "application/json"},
            )
            return str(json.loads(connection.getresponse().read())["id"])
        except OSError:
            key = str(uuid.uuid4()) if FAULT == "second key" else key
        finally:
            connection.close()


def show(journal: Journal, data: str, hold: dict[str, Any], *, redelivered: bool = False) -> bool:
    """Show one committed event; return whether it settles the run."""
    event = json.loads(data)
    if hold.get("sequence") == event["sequence"] and hold["when"] == "before":
        wait_for_death(event["sequence"])
    text = event["data"].get("text", "") if event["type"] == "message.delta" else event.get("text") or ""
    shown = {**event["data"], "x": 1} if FAULT == "changed" else event["data"]
    say("rendered", id=event["id"], sequence=event["sequence"], type=event["type"], text=text, data=shown,
        redelivered=redelivered and FAULT != "unmarked")  # fmt: skip
    if hold.get("sequence") == event["sequence"]:
        wait_for_death(event["sequence"])
    if FAULT == "hang" and event["sequence"] == 4:
        threading.Event().wait()
    journal.apply()
    if event["type"] in ("run.completed", "run.failed", "run.cancelled", "run.paused"):
        say("finished", status=event["type"].partition(".")[2])
        return True
    return False


def wait_for_death(sequence: int) -> None:
    say("holding", sequence=sequence)
    threading.Event().wait()


def stream(url: str, run: str, journal: Journal, hold: dict[str, Any]) -> bool:
    """Read one connection until it ends; return whether the run has."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=IDLE_S)
    frames = journal.frames
    back = 2 if FAULT == "inclusive" else 1
    after = {"Last-Event-ID": frames[-back][0]} if len(frames) >= back else {}
    skip = FAULT == "skip" and len(frames) == 3  # once: without the end it would never stop
    try:
        connection.request("GET", f"/v1/runs/{run}/events", headers={"Accept": "text/event-stream", **after})
        answer = connection.getresponse()
        cursor = ""
        while line := answer.readline():
            text = line.decode().rstrip("\n")
            if text.startswith("id: "):
                cursor = text[4:]
            elif text.startswith("data: ") and cursor:
                if not skip:
                    journal.commit(cursor, text[6:])
                    if show(journal, text[6:], hold):
                        return True
                skip, cursor = False, ""
    except (TimeoutError, OSError, http.client.HTTPException):
        pass
    finally:
        connection.close()
    return FAULT == "early end"


def main() -> None:
    order = json.loads(sys.stdin.readline())
    threading.Thread(target=lambda: (sys.stdin.read(), os._exit(3)), daemon=True).start()
    journal = Journal(Path(sys.argv[1]))
    name = Path(sys.argv[1]).with_suffix(".run")
    run = order.get("run") or (name.read_text() if name.exists() else create(order["url"], order))
    name.write_text(run)
    say("run", run=run)
    hold = order.get("hold") or {}
    for _, data in journal.frames[journal.applied :]:
        if show(journal, data, hold, redelivered=True):
            return
    while not stream(order["url"], run, journal, hold):
        time.sleep(0.01)


if __name__ == "__main__":
    main()
