"""The client under test, in a process of its own: `python -m reattach_chaos.demo.follower JOURNAL`.

It uses the client's public door, as any application would. One JSON line on stdin says what to do: `{"url": …, "run": ID}` to
attach, `{"url": …, "key": …, "input": …}` to start, and `"hold": {"sequence": N, "when": "after" | "before"}` to stop for ever with
that event in hand, just after or just before showing it: whoever started us kills us there. What is shown is a JSON line on stdout,
flushed: `run`, `rendered`, `holding`, `finished`, `error`.

It ends when its stdin does. Never here: a cursor, a retry, a comparison.
"""

import sys

from reattach import Client, Policy, ReattachError
from reattach_chaos.demo import speech
from reattach_chaos.demo.speech import say

# Short, because on loopback a healthy server answers in milliseconds, and a stall costs the idle limit.
POLICY = Policy(
    give_up_after=30.0,
    retry_floor=0.02,
    retry_base=0.05,
    retry_ceiling=0.5,
    connect_timeout=5.0,
    idle_timeout=1.0,
    poll_interval=2.0,
)


def main() -> int:
    """Follow one run to its end; return the exit code."""
    order = speech.order()
    try:
        with Client(order["url"], sys.argv[1], policy=POLICY) as client:
            run = client.attach(order["run"]) if order.get("run") else client.start(order["input"], key=order["key"])
            say("run", run=run.id)
            hold = order.get("hold") or {}
            for event in run:
                held = event.sequence == hold.get("sequence")
                if held and hold["when"] == "before":
                    speech.hold(event.sequence)
                say(
                    "rendered",
                    id=event.id,
                    sequence=event.sequence,
                    type=event.type,
                    text=event.text,
                    data=event.data,
                    redelivered=event.redelivered,
                )
                if held:
                    speech.hold(event.sequence)
            say("finished", status=str(run.wait(timeout=10.0).status))
    except ReattachError as error:
        say("error", code=type(error).__name__, message=str(error))
        return 1
    return 0


if __name__ == "__main__":
    speech.use_utf8()
    sys.exit(main())
