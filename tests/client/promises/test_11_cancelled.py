"""Promise 11: a consumer that is cancelled at any moment whatever loses nothing, sees nothing doubled, leaves nothing behind.

The moments are enumerated, not drawn: a script that uses the whole face is run again and again, and cancelled at its first
suspension, its second, and so on to the last, under asyncio and trio; then the same client goes on.
"""

import asyncio
import gc
import itertools
import sqlite3
import threading
import types

import anyio
import anyio.lowlevel
import pytest

import reattach
from client_stage import PATIENCE, in_memory
from reattach.testing import Beat, Leg

pytestmark = pytest.mark.anyio

STORY = [*[Beat(data={"message_id": "m1", "text": f"{number} "}) for number in range(1, 5)], Beat(do="end", data="ok")]
LAST = len(STORY) + 1  # run.created is the first


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request):
    """Both loops that there are."""
    return request.param


@pytest.fixture
def frozen():
    """What is there already is not looked at by each collection."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


class Interrupter:
    """Runs a coroutine and cancels it at its suspension number `at`, and at `again` suspensions after that."""

    def __init__(self, at, again=0):
        self.at = at
        self.again = again
        self.suspensions = 0
        self.struck = False

    async def run(self, work):
        """Run it; whatever is done to it, return when it has ended."""
        if asyncio_runs():
            task = asyncio.ensure_future(self._counted(work(), lambda: task.cancel()))
            await asyncio.wait([task])
            if not task.cancelled() and task.exception() is not None:
                raise task.exception()
            return
        with anyio.CancelScope() as scope:
            await self._counted(work(), scope.cancel)

    @types.coroutine
    def _counted(self, coroutine, cancel):
        send, value = coroutine.send, None
        while True:
            try:
                suspended = send(value)
            except StopIteration:
                return
            self.suspensions += 1
            if self.at <= self.suspensions <= self.at + self.again:
                self.struck = True
                cancel()
            try:
                send, value = coroutine.send, (yield suspended)
            except BaseException as error:
                send, value = coroutine.throw, error


def asyncio_runs():
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


async def script(client, key, seen):
    """Use the face: start, read, bill in transactions, confirm durably, look on, ask, read to the end."""
    run = await client.start("work", key=key)
    views = run.views(interval=0)
    try:
        await anext(views)
        async for event in run:
            seen.append((event.sequence, event.redelivered))
            if event.sequence in (2, 4):
                async with run.transaction() as tx:
                    await tx.execute("INSERT INTO bill VALUES (?, ?)", (key, event.sequence))
            elif event.sequence == 3:
                await run.ack()
                await run.status()
                await run.detach()
    finally:
        with anyio.CancelScope(shield=True):
            await views.aclose()
    assert (await run.wait(timeout=1e6)).status == "completed"
    assert key in [each.key for each in await client.runs()]


def billing(journal):
    connection = sqlite3.connect(journal)
    connection.execute("CREATE TABLE bill (key TEXT, sequence INTEGER)")
    connection.commit()
    connection.close()


def check(journal, key, seen):
    order = [sequence for sequence, _ in seen]
    fresh = [sequence for sequence, redelivered in seen if not redelivered]
    assert sorted(set(order)) == list(range(1, LAST + 1)), f"{key} lost: {seen}"
    assert len(set(fresh)) == len(fresh), f"{key} doubled without a mark: {seen}"
    for before, now in itertools.pairwise(order):
        assert now <= before + 1, f"{key} has a hole: {seen}"
    connection = sqlite3.connect(journal)
    rows = connection.execute("SELECT sequence FROM bill WHERE key = ? ORDER BY rowid", (key,)).fetchall()
    connection.close()
    assert rows == [(2,), (4,)], f"{key}: {rows}"


@pytest.mark.parametrize(
    ("anyio_backend", "again"),
    [
        pytest.param("asyncio", 3, marks=pytest.mark.slow),
        pytest.param("trio", 0, marks=pytest.mark.slow),
        pytest.param("asyncio", 0, marks=pytest.mark.slow),
        pytest.param("trio", 3, marks=pytest.mark.slow),
    ],
    indirect=["anyio_backend"],
)
@pytest.mark.usefixtures("frozen")
async def test_cancelled_at_every_suspension_of_a_script_nothing_is_lost_doubled_or_left(tmp_path, again):
    """At each of them, and with more cancellations while it cleans up; the same client then goes through the script whole."""
    journal = tmp_path / "runs.db"
    billing(journal)
    server, args = in_memory(story=STORY, legs=[Leg(cut=(3, 5), how="reset")] * 9_999)
    interrupter, at = Interrupter(1, again), 0
    async with reattach.AsyncClient(journal=journal, **args) as client:
        while at == 0 or interrupter.struck:
            at += 1
            interrupter, key, seen = Interrupter(at, again), f"k{at}", []
            await interrupter.run(lambda key=key, seen=seen: script(client, key, seen))
            await anyio.lowlevel.checkpoint()  # the loop itself still holds what it threw last
            gc.collect()  # the cancelled task's traceback holds its run, and by it the lease
            with anyio.fail_after(PATIENCE):
                await script(client, key, seen)
            check(journal, key, seen)
        with anyio.fail_after(PATIENCE):
            while client._engine._followed or client._engine.leases._held or client._engine._callers:
                await anyio.lowlevel.checkpoint()  # no event tells of all three
    assert at > 30, "the script has more suspensions than that"
    assert server.wire.open_streams == 0
    assert len(server.runs) == at, "a cancelled start has created a second run"


async def test_cancelled_while_a_client_opens_or_closes_everything_is_closed(tmp_path):
    """At every suspension of `async with`, a start and a first event; a new client on the same journal goes on."""
    journal = tmp_path / "runs.db"
    server, args = in_memory(story=STORY)
    interrupter, at, threads = Interrupter(1), 0, writers()
    while at == 0 or interrupter.struck:
        at += 1
        interrupter, key, seen = Interrupter(at, 2), f"k{at}", []

        async def whole(key=key, seen=seen):
            async with reattach.AsyncClient(journal=journal, **args) as client:
                async for event in await client.start("work", key=key):
                    seen.append(event.sequence)
                    if event.sequence == 2:
                        break

        await interrupter.run(whole)
        assert server.wire.open_streams == 0
        assert writers() == threads, "a cancelled client's writer goes on"
        async with reattach.AsyncClient(journal=journal, **args) as client:
            seen += [event.sequence async for event in await client.start("work", key=key)]
        assert sorted(set(seen)) == list(range(1, LAST + 1)) or seen == list(range(3, LAST + 1)), (at, seen)
    assert at > 10, "opening and closing have more suspensions than that"


def writers():
    return sum(thread.name == "reattach-writer" for thread in threading.enumerate())
