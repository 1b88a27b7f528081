"""LaunchDarkly's event stream client for Python: it reconnects by itself, after the last id, and retries refusals.

pip install launchdarkly-eventsource && reattach chaos run --client 'python examples/clients/launchdarkly.py' --faults fin,rst

Silence it knows only by the limit of a read, here twice the server's heartbeat interval and a second.
"""

import json
import os

import urllib3
from ld_eventsource import SSEClient
from ld_eventsource.config import ConnectStrategy, ErrorStrategy

ENDS = ("run.completed", "run.failed", "run.cancelled", "run.paused")
silence_s = 2 * float(os.environ["REATTACH_HEARTBEAT_S"]) + 1
connection = ConnectStrategy.http(
    os.environ["REATTACH_EVENTS_URL"],
    headers={"Authorization": f"Bearer {os.environ['REATTACH_TOKEN']}"},
    urllib3_request_options={"timeout": urllib3.Timeout(connect=5, read=silence_s)},
)
with SSEClient(connection, initial_retry_delay=0.1, error_strategy=ErrorStrategy.always_continue()) as source:
    for event in source.events:
        if event.data and not event.event.startswith("stream."):
            line = {"kind": "rendered", "id": event.last_event_id, "data": json.loads(event.data)}
            print(json.dumps(line), flush=True)
        if event.event in ENDS:
            print(json.dumps({"kind": "finished", "status": event.event.removeprefix("run.")}), flush=True)
            break
