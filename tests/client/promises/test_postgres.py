"""Promise 4 for a fleet: one journal in PostgreSQL, both faces: exactly once, one writer a run, takeover, a server away."""

import re

import pytest

import reattach
from client_stage import collected, in_memory, sequences
from postgres_proxy import Proxy
from postgres_stage import database
from reattach import errors
from reattach.runtime import leases
from reattach.stores.leases import current_holder
from reattach.stores.postgres import line
from reattach.testing.memory_server import URL

__all__ = ["database"]

pytestmark = pytest.mark.anyio

TABLE = "CREATE TABLE bill (event text, n bigint)"
ROW = "INSERT INTO bill VALUES (%s, %s)"


def billed(database):
    return [n for (n,) in database.sql("SELECT n FROM bill ORDER BY n")]


async def bill(run, event):
    async with run.transaction() as tx:
        await tx.execute(ROW, (event.id, event.sequence))


async def test_rows_and_marks_are_one_and_the_next_process_goes_on_after_them(face, database):
    """Promise 4: a handler that raised sees its event again; each row is there once; the end needs no network."""
    _, stage = in_memory()
    database.sql(TABLE)
    seen = []

    async def work():
        async with face.client(journal=database.url, **stage) as client:
            run = await client.start("work", key="k")
            async for event in run:
                seen.append((event.sequence, event.redelivered))
                async with run.transaction() as tx:
                    await tx.execute(ROW, (event.id, event.sequence))
                    if seen[-1] == (3, False):
                        raise LookupError
            return await run.result()

    with pytest.raises(LookupError):
        await work()
    assert billed(database) == [1, 2]
    assert await work() == "ok"
    assert seen[:4] == [(1, False), (2, False), (3, False), (3, True)]
    assert [number for number, _ in seen[4:]] == [4, 5]
    assert billed(database) == [1, 2, 3, 4, 5]


async def test_a_second_process_is_told_who_follows_and_others_read_the_journal(face, database):
    """Promise 4, surface 1.4: the same consumer is busy; `after=` and other consumers read what the one writes."""
    _, stage = in_memory()
    async with face.client(journal=database.url, **stage) as one, face.client(journal=database.url, **stage) as two:
        run = await one.start("work", key="k")
        await anext(aiter(run))
        with pytest.raises(errors.RunBusy) as busy:
            await collected(two.attach(run.id))
        assert re.search(r"by pid \d+ on .+ since ", str(busy.value))
        assert sequences(await collected(run)) == [1, 2, 3, 4, 5], "entered again, what was not confirmed comes again"
        assert sequences(await collected(two.attach(run.id, after="beginning"))) == [1, 2, 3, 4, 5]
        assert sequences(await collected(two.attach(run.id, consumer="billing"))) == [1, 2, 3, 4, 5]


async def test_a_host_that_is_silent_is_replaced_and_writes_nothing_more(face, database, monkeypatch):
    """Promise 4: taken over when its time is over by the server's clock; its rows and marks then are refused, none is double."""
    _, stage = in_memory(jumps=False, inline=False)
    database.sql(TABLE)

    def elsewhere(client):
        return current_holder(client)._replace(host="silent.example", boot="another")

    async with face.client(journal=database.url, **stage) as here:
        monkeypatch.setattr(leases, "current_holder", elsewhere)
        async with face.client(journal=database.url, **stage) as silent:
            run = await silent.start("work", key="k")
            monkeypatch.undo()
            loop = aiter(run)
            for _ in range(2):
                await bill(run, await anext(loop))
            await anext(loop)
            with pytest.raises(errors.RunBusy, match=r"silent\.example"):
                await collected(here.attach(run.id))
            database.sql("UPDATE reattach_leases SET expires_at = '2000-01-01T00:00:00.000000Z'")
            mine = here.attach(run.id)
            async for event in mine:
                await bill(mine, event)
            with pytest.raises(errors.LeaseLost):
                async with run.transaction() as tx:
                    await tx.execute(ROW, ("late", 99))
    assert billed(database) == [1, 2, 3, 4, 5]


@pytest.mark.slow
async def test_a_server_that_goes_away_fails_the_loop_and_iterating_again_goes_on(face, database, monkeypatch):
    """Promises 2 and 4: bounded; nothing undurable is shown, nothing is missing afterwards. The password is in no text."""
    _, stage = in_memory(beats=30)
    seen = []
    with Proxy(database.server.port) as proxy:
        async with face.client(journal=database.through(proxy.port), **stage) as client:
            run = await client.start("work", key="k")
            proxy.refuse(True)
            monkeypatch.setattr(line, "PATIENCE", 0.3)  # only while nobody answers: a busy server may need longer
            with pytest.raises(errors.CommitFailed) as failed:
                await collected(run, into=seen)
            assert "geheim" not in str(failed.value)
            proxy.refuse(False)
            monkeypatch.undo()
            await collected(run, into=seen)
            assert sorted(set(sequences(seen))) == list(range(1, 33))
            assert await run.result() == "ok"


async def test_an_address_that_nobody_answers_is_told_without_its_password(face):
    """The first use says it; nothing was sent."""
    with pytest.raises(reattach.StoreError, match=r"postgresql://me@127\.0\.0\.1:9/runs could not be reached") as told:
        async with face.client(URL, "postgresql://me:geheim@127.0.0.1:9/runs") as client:
            await client.start("work", key="k")
    assert "geheim" not in str(told.value)
