"""A vendor without a log or a stream: its status and its state are polled; what came between is a gap, and said so.

A profile is written once per vendor. Run it, kill it, run it again: what the journal shows is what the vendor had.

python examples/jobs_vendor.py &
python examples/10_poll_only_vendor.py http://127.0.0.1:8710 jobs.db
"""

import json
import sys
from collections.abc import Mapping
from typing import Any

import reattach
from reattach.core.messages import Mark
from reattach.profiles import Polled
from reattach.profiles.base import Call, Created, Reading, Unreadable

URL = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8710"
JOURNAL = sys.argv[2] if len(sys.argv) > 2 else "jobs.db"
WORDS = {"waiting": "queued", "working": "running", "done": "completed", "broken": "failed"}


class Jobs(Polled):
    """POST /jobs gives {id}; GET /jobs/ID gives {id, state, revision, messages: [{id, text}], result}."""

    name = "jobs"

    def create(self, request: Mapping[str, Any], key: str) -> Call:
        return Call("POST", "/jobs", {}, request)

    def created(self, status: int, headers: Mapping[str, str], body: bytes) -> Created:
        job = told(body)
        return Created(job["id"], None, reattach.Status.QUEUED, replayed=False)

    def status(self, run_id: str) -> Call:
        return Call("GET", f"/jobs/{run_id}")

    def cancel(self, run_id: str) -> Call:
        return Call("POST", f"/jobs/{run_id}/stop")

    def reading(self, run_id: str, body: bytes) -> Reading:
        job = told(body)
        status = reattach.Status(WORDS.get(job["state"], "unknown"))
        outcome = None
        if status.settled:
            outcome = reattach.Outcome(run_id=run_id, status=status, result=job.get("result"), evidence="status")
        return Reading(status, None, job["revision"], outcome)

    def boundary(self, run_id: str, body: bytes) -> tuple[Mark, Any]:
        job = told(body)
        messages = [{"message_id": each["id"], "text": each["text"], "completed": True} for each in job["messages"]]
        state = {"status": WORDS.get(job["state"], "unknown"), "messages": messages}
        return Mark(sequence=job["revision"], cursor=str(job["revision"])), state


def told(body: bytes) -> dict[str, Any]:
    job: dict[str, Any] = json.loads(body)
    if "id" not in job:
        raise Unreadable("no job")
    return job


policy = reattach.Policy(poll_interval=0.2)
with reattach.Client(URL, JOURNAL, profile=Jobs(), on_gap="snapshot", policy=policy) as client:
    run = client.start({"task": "count"}, key="count-1")
    for event in run:
        print(f"[{event.gap}]", run.view().messages[-1].text if run.view().messages else "nothing yet")
    print(run.result())
