"""A user's transaction: their rows and "this event is done" become durable together (surface.md 1.2, architecture.md)."""

import sqlite3
import threading

import pytest

from client_stage import collected, in_memory, sequences
from reattach import errors
from reattach.testing import Seams

pytestmark = pytest.mark.anyio

TABLE = "CREATE TABLE IF NOT EXISTS bill (event TEXT, cents INTEGER)"
ROW = "INSERT INTO bill VALUES (?, ?)"


def rows(journal, sql="SELECT cents FROM bill ORDER BY cents"):
    with sqlite3.connect(journal) as connection:
        found = [row[0] for row in connection.execute(sql)]
    connection.close()
    return found


def applied(journal):
    return max(rows(journal, "SELECT applied FROM reattach_marks"), default=0)


@pytest.fixture
def stage(journal):
    """A client's arguments, and its journal with the user's table in it."""
    _, args = in_memory()
    connection = sqlite3.connect(journal)
    connection.execute(TABLE)
    connection.close()
    return {"journal": journal, **args}


async def test_rows_and_mark_are_durable_together_when_the_block_ends(face, stage, journal):
    async with face.client(**stage) as client:
        run = await client.start("work", key="k")
        async for event in run:
            async with run.transaction() as tx:
                assert tx.event == event
                assert await tx.execute(ROW, (event.id, event.sequence)) == []
                assert await tx.execute("SELECT max(cents) FROM bill") == [(event.sequence,)]
                assert rows(journal) == list(range(1, event.sequence)), "nobody else sees it yet"
            assert rows(journal) == list(range(1, event.sequence + 1))
            assert applied(journal) == event.sequence


async def test_a_block_that_raises_undoes_rows_and_mark_and_the_event_comes_again_though_swallowed(
    face, stage, journal
):
    seen = []
    async with face.client(**stage) as client:
        run = await client.start("work", key="k")
        async for event in run:
            seen.append((event.sequence, event.redelivered))
            try:
                async with run.transaction() as tx:
                    await tx.execute(ROW, (event.id, event.sequence))
                    if seen.count((2, True)) < 2 and event.sequence == 2:
                        raise LookupError("the handler's own")
            except LookupError:
                assert applied(journal) == 1
    assert seen == [(1, False), (2, False), (2, True), (2, True), (3, False), (4, False), (5, False)]
    assert rows(journal) == [1, 2, 3, 4, 5]


async def test_ack_skips_an_event_whose_transaction_was_rolled_back(face, stage, journal):
    seen = []
    async with face.client(**stage) as client:
        run = await client.start("work", key="k")
        async for event in run:
            seen.append(event.sequence)
            try:
                async with run.transaction() as tx:
                    await tx.execute(ROW, (event.id, event.sequence))
                    if event.sequence == 2:
                        raise LookupError
            except LookupError:
                await run.ack()
    assert seen == [1, 2, 3, 4, 5]
    assert rows(journal) == [1, 3, 4, 5]


async def test_a_rolled_back_event_comes_first_in_the_next_process(face, stage, journal):
    async def work():
        async with face.client(**stage) as client:
            run = await client.start("work", key="k")
            async for event in run:
                async with run.transaction() as tx:
                    await tx.execute(ROW, (event.id, event.sequence))
                    if event.sequence == 3:
                        raise LookupError

    with pytest.raises(LookupError):
        await work()
    assert rows(journal) == [1, 2]
    async with face.client(**stage) as client:
        events = await collected(await client.start("work", key="k"))
    assert (events[0].sequence, events[0].redelivered) == (3, True)


@pytest.mark.parametrize("way", ["break", "continue"])
async def test_leaving_the_block_normally_commits_however_it_is_left(face, stage, journal, way):
    async with face.client(**stage) as client:
        run = await client.start("work", key="k")
        async for event in run:
            async with run.transaction() as tx:
                await tx.execute(ROW, (event.id, event.sequence))
                if way == "break":
                    break
                continue
    assert rows(journal) == ([1] if way == "break" else [1, 2, 3, 4, 5])


async def test_a_transaction_without_a_statement_confirms_durably(face, stage, journal):
    async with face.client(**stage) as client:
        run = await client.start("work", key="k")
        await anext(run)
        async with run.transaction():
            pass
        assert applied(journal) == 1


async def test_call_gets_the_drivers_connection_on_the_writers_thread(face, stage, journal):
    """An ORM's session lives in it; what it returns is returned, what it raises passes."""
    async with face.client(**stage) as client:
        run = await client.start("work", key="k")
        event = await anext(run)

        def work(connection):
            connection.executemany(ROW, [(event.id, 7), (event.id, 8)])
            return isinstance(connection, sqlite3.Connection), threading.current_thread().name

        async with run.transaction() as tx:
            assert await tx.call(work) == (True, "reattach-writer")
        assert rows(journal) == [7, 8]
        await anext(run)
        with pytest.raises(ZeroDivisionError):
            async with run.transaction() as tx:
                await tx.call(lambda connection: 1 / 0)


@pytest.mark.parametrize(
    "sql",
    [
        "COMMIT",
        "ROLLBACK",
        "SAVEPOINT x",
        "UPDATE reattach_marks SET applied = 0",
        "DELETE FROM reattach_runs",
        "CREATE TABLE reattach_mine (x)",
        "ATTACH ':memory:' AS other",
        "PRAGMA journal_mode = DELETE",
    ],
)
async def test_sql_that_would_break_the_bond_is_refused_and_the_rest_goes_on(face, stage, journal, sql):
    async with face.client(**stage) as client:
        run = await client.start("work", key="k")
        await anext(run)
        async with run.transaction() as tx:
            await tx.execute(ROW, ("x", 1))
            with pytest.raises(errors.UsageError, match="Leave the with block"):
                await tx.execute(sql)
            with pytest.raises(errors.UsageError):
                await tx.call(lambda connection: connection.execute(sql))
            await tx.execute(ROW, ("x", 2))
        assert rows(journal) == [1, 2]


async def test_the_users_own_sql_errors_pass_as_the_driver_raised_them(face, stage, journal):
    async with face.client(**stage) as client:
        run = await client.start("work", key="k")
        await anext(run)
        async with run.transaction() as tx:
            with pytest.raises(sqlite3.OperationalError, match="no such table: nowhere"):
                await tx.execute("SELECT * FROM nowhere")
            await tx.execute(ROW, ("x", 1))
        assert rows(journal) == [1]


async def test_what_would_wait_for_itself_is_refused_at_once(face, stage):
    async with face.client(**stage) as client:
        run = await client.start("work", key="k")
        await anext(run)
        other = client.attach(run.id, after="beginning")
        async with run.transaction() as tx:
            await tx.execute(ROW, ("x", 1))

            async def views():
                return [view async for view in run.views()]

            async def nested():
                async with run.transaction():
                    pass

            refused = {
                "next": lambda: anext(run),
                "next of another": lambda: anext(other),
                "ack": run.ack,
                "start": lambda: client.start("more", key="k2"),
                "runs": client.runs,
                "view": run.view,
                "views": views,
                "wait": run.wait,
                "result": run.result,
                "status": run.status,
                "cancel": run.cancel,
                "detach": run.detach,
                "nested": nested,
            }
            for name, act in refused.items():
                with pytest.raises(errors.UsageError, match="a transaction is open here"):
                    raise AssertionError(name, await act())
            if face.name == "blocking":
                with pytest.raises(errors.UsageError, match="a transaction is open here"):
                    await tx.call(lambda connection: run._inner.view())
        assert sequences(await collected(run)) == [2, 3, 4, 5]


async def test_others_wait_for_an_open_transaction_and_never_fail_for_it(face, stage):
    """The log goes on being read; a second run's start waits for its turn."""
    async with face.client(**stage) as client:
        run = await client.start("work", key="k")
        await anext(run)
        async with run.transaction() as tx:
            await tx.execute(ROW, ("x", 1))
            starting = face.beside(lambda: client.start("more", key="k2"))
            for _ in range(20):
                await tx.execute("SELECT 1")
            assert not starting.done
        assert (await starting.result()).id == "run_2"


async def test_open_for_too_long_it_is_rolled_back_and_the_next_statement_says_so(face, stage, journal):
    stage["_seams"] = Seams(clock=stage["_seams"].clock, turn_limit=0.05)
    async with face.client(**stage) as client:
        run = await client.start("work", key="k")
        await anext(run)
        with pytest.raises(errors.StoreBusy, match=r"was open for 0\.05 s and was rolled back"):  # noqa: PT012 (what is entered or left raises)
            async with run.transaction() as tx:
                await tx.execute(ROW, ("x", 1))
                await face.beside(lambda: client.start("more", key="k2")).result()  # it waits until time is over
                await tx.execute(ROW, ("x", 2))
        assert rows(journal) == []
        again = await anext(run)
        assert (again.sequence, again.redelivered) == (1, True)


async def test_a_full_disk_undoes_all_and_the_event_comes_again(face, stage, journal):
    """The journal is full: nothing was kept, and the loop goes on with the same event once there is room."""
    async with face.client(**stage) as client:
        run = await client.start("work", key="k")
        await run.wait()
        await anext(run)
        with pytest.raises(sqlite3.OperationalError, match="full"):  # noqa: PT012 (what is entered or left raises)
            async with run.transaction() as tx:
                await tx.execute("PRAGMA page_count")
                await tx.call(fill)
        assert rows(journal) == []
        again = await anext(run)
        assert (again.sequence, again.redelivered) == (1, True)


def fill(connection):
    connection.set_authorizer(None)
    ((pages,),) = connection.execute("PRAGMA page_count").fetchall()
    connection.execute(f"PRAGMA max_page_count = {pages}")
    try:
        connection.execute("INSERT INTO bill SELECT zeroblob(1 << 20), 1")
    finally:
        connection.execute("PRAGMA max_page_count = 1073741823")


async def test_closing_meanwhile_rolls_it_back_and_who_goes_on_gets_closed(face, stage, journal):
    reached, go_on = threading.Event(), threading.Event()

    async def other(client, run):
        async with run.transaction() as tx:
            await tx.execute(ROW, ("x", 1))
            reached.set()
            await face.until(go_on.is_set)
            await tx.execute(ROW, ("x", 2))

    async with face.client(**stage) as client:
        run = await client.start("work", key="k")

        async def reader():
            await anext(run)
            await other(client, run)

        reading = face.beside(reader)
        await face.until(reached.is_set)
        await client.close()
        go_on.set()
        assert isinstance(await reading.error(), errors.Closed)
    assert rows(journal) == []
    assert applied(journal) == 0


async def test_there_is_none_without_an_event_in_hand_or_without_sql(face, stage):
    async with face.client(**stage) as client:
        run = await client.start("work", key="k")
        with pytest.raises(errors.UsageError, match="there is none"):
            async with run.transaction():
                pass
    _, args = in_memory()
    async with face.client(journal=":memory:", **args) as client:
        run = await client.start("work", key="k")
        await anext(run)
        with pytest.raises(errors.UsageError, match=r"no transaction here: .*Use a SQLite journal"):
            async with run.transaction() as tx:
                await tx.execute("SELECT 1")
