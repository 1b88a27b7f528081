"""A process that starts work, or answers a pause, and dies by SIGKILL: at a named step of its journal, or by who relays it.

    python child_creates.py URL JOURNAL FACE WORK STEP SESSION

WORK: "start" (of the scenario, under the key "k-SESSION") or "respond" (to the only paused run of the journal). STEP:
"intend-before" and "intend-after" (the intent is durable, nothing has left), "created-before" (the answer is here, its id is not
on disk), "created-after"; or of none of them.
"""

import asyncio
import os
import signal
import sys

import reattach
from reattach.stores import open_store

url, journal, face, work, step, session = sys.argv[1:]
store = open_store(journal)
intend, created = store.intend, store.created


def at(name):
    if name == step:
        os.kill(os.getpid(), signal.SIGKILL)


def intending(intent):
    at("intend-before")
    found = intend(intent)
    at("intend-after")
    return found


def creating(*args, **rest):
    at("created-before")
    found = created(*args, **rest)
    at("created-after")
    return found


def answers(outcome):
    return [each.approve() if each.kind == "approval" else each.answer(12) for each in outcome.required_actions]


def blocking():
    with reattach.Client(url, store) as client:
        if work == "start":
            client.start({"scenario": "asks"}, key=f"k-{session}", session_id=session)
            return
        (run,) = client.runs()
        run.respond(*answers(run.wait()))


async def awaited():
    async with reattach.AsyncClient(url, store) as client:
        if work == "start":
            await client.start({"scenario": "asks"}, key=f"k-{session}", session_id=session)
            return
        (run,) = await client.runs()
        await run.respond(*answers(await run.wait()))


async def prepared():
    """The journal opens, and its first lease is there, before anything can be killed."""
    store.open()
    store.intend, store.created = intending, creating


asyncio.run(prepared())
if face == "blocking":
    blocking()
else:
    asyncio.run(awaited())
