"""The examples of the surface that this version covers, as a user would type them. Checked by mypy and pyright, never run."""

import asyncio
import json
import logging
import ssl
from collections.abc import AsyncIterator
from threading import Thread

import httpx

import reattach

log = logging.getLogger("app")
url = "http://127.0.0.1:8700"
context = ssl.create_default_context()


def read_token() -> str:
    return "token"


async def fetch_token() -> str:
    return "token"


def handle(event: reattach.Event) -> None:
    print(event.text)


def draw(text: str, tools: tuple[reattach.ToolCall, ...], gaps: tuple[reattach.Gap, ...], connection: str) -> None:
    print(text, tools, gaps, connection)


# 1.1 ---------------------------------------------------------------------------------------------------------------------

with reattach.Client("http://127.0.0.1:8700", "runs.db") as client:
    run = client.start("Summarise these 400 files", key="summary-41")
    for event in run:
        print(event.text, end="", flush=True)
    print(run.result())


async def main() -> None:
    async with reattach.AsyncClient("http://127.0.0.1:8700", "runs.db") as client:
        run = await client.start("Summarise these 400 files", key="summary-41")
        async for event in run:
            print(event.text, end="", flush=True)
        print(await run.result())


# 1.2 ---------------------------------------------------------------------------------------------------------------------


def ok(action: reattach.RequiredAction) -> bool:
    return action.tool != "refund"


def the_rest(client: reattach.Client, run_id: str) -> None:
    for event in client.attach("run_7f3a"):
        print(event.text, end="")

    def follow(run: reattach.Run) -> None:
        try:
            for event in run:
                handle(event)
        except reattach.ReattachError as error:
            log.warning("%s", error)

    for run in client.runs(unfinished=True):
        Thread(target=follow, args=[run]).start()
    for view in client.attach(run_id).views():
        draw(view.text, view.tools, view.gaps, str(view.connection))
    run = client.attach(run_id)
    for event in run:
        with run.transaction() as tx:
            if event.kind == "tool_result":
                tx.execute("INSERT INTO bill (event, cents) VALUES (?, ?)", (event.id, event.data["result"]["cents"]))
    outcome = run.wait()
    while outcome.required_actions:
        run = run.respond(*[a.approve() if ok(a) else a.reject("too dear") for a in outcome.required_actions])
        outcome = run.wait()
    outcome = client.attach("run_7f3a").cancel()
    for op in outcome.operations:
        print(op.tool, op.id, op.status, op.reversible)
    print(client.start({"order": 41}, key="order-41").result(timeout=3600))


reattach.Client(url, "runs.db", token=read_token, headers={"X-Team": "billing"}, ssl_context=context)
reattach.Client(url, "runs.db", token=read_token, proxy="http://proxy:3128")
reattach.AsyncClient(url, "runs.db", http_client=httpx.AsyncClient(), token=fetch_token)
reattach.AsyncClient(url, "runs.db", token=read_token, observer=reattach.observe.to_logging(log))
reattach.Client(url, reattach.stores.MemoryStore(), profile="native", policy=reattach.Policy(give_up_after=None))
reattach.Client(url, "runs.db", transport=reattach.testing.Wire(), profile=reattach.profiles.Native())


async def side_by_side() -> None:
    async def handle(run: reattach.AsyncRun) -> None:
        async for event in run:
            print(event.id)

    async with reattach.AsyncClient(url, "runs.db") as client, asyncio.TaskGroup() as tasks:
        for run in await client.runs(unfinished=True):
            tasks.create_task(handle(run))


async def relay(client: reattach.AsyncClient, run_id: str, last: str | None) -> AsyncIterator[str]:
    async with client.attach(run_id, after=last or "beginning") as run:
        async for event in run:
            yield f"id: {event.cursor}\ndata: {json.dumps(event.data)}\n\n"


async def awaited(client: reattach.AsyncClient) -> None:
    run = client.attach("run_7f3a")
    async for view in run.views(interval=0.2):
        draw(view.text, view.tools, view.gaps, str(view.connection))
    async for event in run:
        async with run.transaction() as tx:
            await tx.execute("INSERT INTO bill (event, cents) VALUES (:event, :cents)", {"event": event.id, "cents": 1})
    print((await run.wait(timeout=60)).status)
    await run.ack()
    await run.detach()
