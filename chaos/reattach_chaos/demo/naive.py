"""What most programs do today, for comparison: post, then loop over httpx-sse until the loop ends.

`python -m reattach_chaos.demo.naive STATE`, with the orders and lines of `follower.py`. A create that failed is sent again, as a
retry decorator would, under the new key that each request makes for itself. The run's id is kept in the file STATE; after a restart
the stream is read again. No cursor, no journal, no reconnect: it must be found to lose, to double, and to start the work twice.
"""

import sys
import uuid
from pathlib import Path
from typing import Any

import httpx
import httpx_sse

from reattach_chaos.demo import speech
from reattach_chaos.demo.speech import say

TRIES = 2


def main() -> int:
    """Show what comes until the loop ends; return the exit code."""
    order = speech.order()
    state = Path(sys.argv[1])
    hold = (order.get("hold") or {}).get("sequence")
    try:
        with httpx.Client(base_url=order["url"]) as client:
            run_id = order.get("run") or (state.read_text() if state.exists() else _create(client, order["input"]))
            state.write_text(run_id)
            say("run", run=run_id)
            with httpx_sse.connect_sse(client, "GET", f"/v1/runs/{run_id}/events") as source:
                for sse in source.iter_sse():
                    if sse.data and not sse.event.startswith("stream."):
                        _show(sse.json(), hold)
    except (httpx.HTTPError, httpx_sse.SSEError) as error:
        say("error", code=type(error).__name__, message=str(error))
        return 1
    return 0


def _create(client: httpx.Client, task: Any) -> str:
    for left in reversed(range(TRIES)):
        try:
            answer = client.post("/v1/runs", json={"input": task}, headers={"Idempotency-Key": str(uuid.uuid4())})
            answer.raise_for_status()
            return str(answer.json()["id"])
        except httpx.TransportError:
            if not left:
                raise
    raise AssertionError("unreachable")


def _show(event: dict[str, Any], hold: int | None) -> None:
    say("rendered", **{name: event.get(name) for name in ("id", "sequence", "type", "data")}, text=_text(event))
    if event.get("sequence") == hold:
        speech.hold(hold)


def _text(event: dict[str, Any]) -> str:
    return str(event["data"]["text"] if event["type"] == "message.delta" else event.get("text") or "")


if __name__ == "__main__":
    speech.use_utf8()
    sys.exit(main())
