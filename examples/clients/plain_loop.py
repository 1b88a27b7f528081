"""What most programs do: a loop over httpx-sse, without a memory. It must be found to lose.

reattach chaos run --client 'python examples/clients/plain_loop.py' --faults fin
"""

import json
import os

import httpx
import httpx_sse

headers = {"Authorization": f"Bearer {os.environ['REATTACH_TOKEN']}"}
ENDS = ("run.completed", "run.failed", "run.cancelled", "run.paused")
with (
    httpx.Client(headers=headers, trust_env=False) as client,
    httpx_sse.connect_sse(client, "GET", os.environ["REATTACH_EVENTS_URL"]) as source,
):
    for event in source.iter_sse():
        if event.data and not event.event.startswith("stream."):
            print(json.dumps({"kind": "rendered", "id": event.id, "data": event.json()}), flush=True)
        if event.event in ENDS:
            print(json.dumps({"kind": "finished", "status": event.event.removeprefix("run.")}), flush=True)
