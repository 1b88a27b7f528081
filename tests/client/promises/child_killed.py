"""A process that is killed: it follows a run, writes rows in transactions or not, and dies by SIGKILL at a named step.

    python child_killed.py URL JOURNAL KEY FACE STEP SEQUENCE OUT

Steps: "handed" (the event was handed out), "inside" (a row is written, the block is open), "committed" (the block was left),
"confirmed" (the next event was asked for), "acked". Each event that is shown is a line of OUT, flushed before anything else.
"""

import asyncio
import os
import signal
import sys

import reattach

url, journal, key, face, step, sequence, out = sys.argv[1:]
shown = open(out, "a", buffering=1)  # noqa: SIM115 (open to the end, which is sudden)


def at(name: str, event: reattach.Event) -> None:
    if name == step and event.sequence == int(sequence):
        os.kill(os.getpid(), signal.SIGKILL)


def show(event: reattach.Event) -> None:
    print(event.sequence, int(event.redelivered), file=shown, flush=True)


ROW = "INSERT INTO bill VALUES (?, ?)"


def blocking() -> None:
    with reattach.Client(url, journal) as client:
        run = client.start({"scenario": "words"}, key=key)
        last = None
        for event in run:
            if last is not None:
                at("confirmed", last)
            last = event
            show(event)
            at("handed", event)
            if step == "acked":
                run.ack()
                at("acked", event)
            if step in ("inside", "committed"):
                with run.transaction() as tx:
                    tx.execute(ROW, (event.id, event.sequence))
                    at("inside", event)
                at("committed", event)


async def awaited() -> None:
    async with reattach.AsyncClient(url, journal) as client:
        run = await client.start({"scenario": "words"}, key=key)
        last = None
        async for event in run:
            if last is not None:
                at("confirmed", last)
            last = event
            show(event)
            at("handed", event)
            if step == "acked":
                await run.ack()
                at("acked", event)
            if step in ("inside", "committed"):
                async with run.transaction() as tx:
                    await tx.execute(ROW, (event.id, event.sequence))
                    at("inside", event)
                at("committed", event)


if face == "blocking":
    blocking()
else:
    asyncio.run(awaited())
