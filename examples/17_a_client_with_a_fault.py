"""The same with respx: the address of the client stays, its httpx is answered by the reference server, cut in the middle of a body.

    pytest examples/17_a_client_with_a_fault.py

The client here has a fault: it remembers an event one too late. These tests fail, and say so.
"""

import asyncio

import httpx
import pytest
import respx


async def follow(url, shown):
    """The client under test: appends the id of each event that it shows."""
    after = None
    async with httpx.AsyncClient(headers={"Accept": "text/event-stream"}) as client:
        while True:
            resume = {"Last-Event-ID": after} if after else {}
            try:
                async with client.stream("GET", url, headers=resume) as answer:
                    async for line in answer.aiter_lines():
                        name, _, value = line.partition(": ")
                        if name == "id":
                            after = shown[-1] if shown else None  # wrong: should be `value`
                            shown.append(value)
                        if (name, value) == ("event", "run.completed"):
                            return
            except httpx.TransportError:
                continue


@pytest.mark.reattach_cuts("hello", faults=("fin", "rst"))  # respond plays no stall
def test_my_client_survives_every_cut(reattach_chaos):
    shown = []
    with respx.mock:
        respx.get(host="api.example.com").mock(side_effect=reattach_chaos.respond)
        asyncio.run(follow(f"https://api.example.com/v1/runs/{reattach_chaos.run_id}/events", shown))
        reattach_chaos.check(shown)
