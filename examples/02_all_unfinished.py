"""At application start: follow everything that still needs something, side by side, on asyncio.

python examples/02_all_unfinished.py
"""

import asyncio
import sys

import reattach

URL = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8700"
JOURNAL = sys.argv[2] if len(sys.argv) > 2 else "runs.db"


async def follow(run: reattach.AsyncRun) -> None:
    try:
        async for event in run:
            if event.kind == "tool_call":
                print(f"{run.key}: {event.data['tool']}")
        print(f"{run.key}: {await run.result()}")
    except reattach.ReattachError as error:
        print(f"{run.key}: {error}")  # the message says what to do now


async def main() -> None:
    async with reattach.AsyncClient(URL, JOURNAL) as client:
        for number in (1, 2, 3):
            await client.start({"order": number}, key=f"order-{number}")  # starting twice is attaching
        async with asyncio.TaskGroup() as tasks:
            for run in await client.runs(unfinished=True):
                tasks.create_task(follow(run))


asyncio.run(main())
