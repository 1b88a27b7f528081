"""Nothing is left: after many readers that were cut, cancelled and detached, sockets, tasks and descriptors are back."""

import asyncio
import gc
import os
import threading

import pytest

from client_stage import PATIENCE, collected

pytestmark = pytest.mark.anyio


def held():
    gc.collect()
    writers = sum(thread.name == "reattach-writer" for thread in threading.enumerate())
    return len(os.listdir("/proc/self/fd")), writers


async def read_and_leave(face, client, run_id, number):
    """Leave a reader in one of the ways in which readers are left."""
    run = client.attach(run_id, after="beginning")
    if number % 3 == 0:
        await collected(run, 2)
        await run.detach()
    elif number % 3 == 1:
        await collected(run, 1)  # dropped
    elif face.name == "async":
        task = asyncio.ensure_future(collected(run))
        for _ in range(number % 40):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
    else:
        views = run.views()
        await anext(views)
        await views.aclose()


@pytest.mark.parametrize("cycles", [200, pytest.param(10_000, marks=pytest.mark.slow)])
async def test_after_many_cuts_and_cancels_all_is_as_before(face, live, tmp_path, cycles):
    async with face.client(live.url, tmp_path / "runs.db") as client:
        # A cancelled task's traceback is a cycle: `held` collects it, and with it the reader that nobody detached.
        run_id = (await client.start({"scenario": "slow"}, key=f"cycles-{face.name}-{cycles}")).id
        await read_and_leave(face, client, run_id, 0)
        await face.until(lambda: live.readers(run_id) == 0)
        tasks, before = len(asyncio.all_tasks()), held()
        for number in range(cycles):
            await read_and_leave(face, client, run_id, number)
            if number % 10 == 9:
                live.restart()
        await face.until(lambda: held()[0] <= before[0] + 1)
        await face.until(lambda: live.readers(run_id) == 0)
        assert held()[1] == before[1]
        await face.until(lambda: len(asyncio.all_tasks()) <= tasks)
        assert len(await collected(client.attach(run_id), 3)) == 3


@pytest.mark.parametrize("clients", [12, pytest.param(300, marks=pytest.mark.slow)])
async def test_after_many_clients_all_is_as_before(face, live, tmp_path, clients):
    async def one(number):
        async with face.client(live.url, tmp_path / f"{number % 7}.db") as client:
            run = await client.start({"scenario": "slow"}, key=f"clients-{face.name}-{number}")
            await collected(run, 2)
            await run.status()

    await one(0)
    before = held()
    for number in range(clients):
        await asyncio.wait_for(one(number), PATIENCE)
    await face.until(lambda: held()[0] <= before[0] + 1 and held()[1] == before[1])
