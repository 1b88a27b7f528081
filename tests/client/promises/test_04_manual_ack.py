"""Promise 4, ack="manual": only what `ack` or a transaction confirmed is confirmed, durably, from whichever thread."""

import gc
import random
import sqlite3

import pytest

from client_stage import collected, in_memory, sequences
from reattach import errors
from reattach.stores import MemoryStore

pytestmark = pytest.mark.anyio


def applied(journal, consumer="main"):
    connection = sqlite3.connect(journal)
    found = connection.execute("SELECT applied FROM reattach_marks WHERE consumer = ?", (consumer,)).fetchall()
    connection.close()
    return found[0][0] if found else 0


async def begun(client, **rest):
    run = await client.start("work", key="k")
    return client.attach(run.id, ack="manual", **rest)


async def test_asking_for_the_next_event_confirms_nothing(face, journal):
    """Promise 4: neither does the end of the loop, nor leaving a `with` normally; all comes again, marked."""
    _, args = in_memory()
    async with face.client(journal=journal, **args) as client, await begun(client) as run:
        assert sequences(await collected(run)) == [1, 2, 3, 4, 5]
    assert applied(journal) == 0
    async with face.client(journal=journal, **args) as client:
        again = await collected(await begun(client))
    assert sequences(again) == [1, 2, 3, 4, 5]
    assert all(event.redelivered for event in again)


async def test_ack_confirms_up_to_its_event_and_is_durable_when_it_returns(face, journal):
    """Promise 4: cumulative; what lies behind it comes again."""
    _, args = in_memory()
    async with face.client(journal=journal, **args) as client:
        run = await begun(client)
        events = await collected(run, 4)
        await run.ack(events[2])
        assert applied(journal) == 3
        await run.ack(events[0])
        assert applied(journal) == 3, "an ack of an older event takes nothing back"
    async with face.client(journal=journal, **args) as client:
        again = await collected(await begun(client))
    assert sequences(again) == [4, 5]
    assert again[0].redelivered


async def test_ack_without_an_event_means_the_one_in_hand(face, journal):
    _, args = in_memory()
    async with face.client(journal=journal, **args) as client:
        run = await begun(client)
        async for event in run:
            if event.sequence == 3:
                await run.ack()
                assert applied(journal) == 3
                break


async def test_a_loop_entered_again_begins_behind_the_last_acked(face, journal):
    """Promise 4: what was handed out and not confirmed comes again, marked, and then what is new."""
    _, args = in_memory()
    async with face.client(journal=journal, **args) as client:
        run = await begun(client)
        events = await collected(run, 3)
        await run.ack(events[0])
        again = await collected(run)
    assert sequences(again) == [2, 3, 4, 5]
    assert [event.redelivered for event in again] == [True, True, False, False]


@pytest.mark.parametrize("seed", range(3))
async def test_workers_may_ack_in_any_order(face, journal, seed):
    """Promise 4: from other threads or tasks, while the loop goes on and after it has ended."""
    _, args = in_memory(20)
    async with face.client(journal=journal, **args) as client:
        run = await begun(client)
        events: list = []
        workers = []
        async for event in run:
            events.append(event)
            if event.sequence == 10:
                batch = random.Random(seed).sample(events, 6)
                workers = [face.beside(acking(run, each)) for each in batch]
        for worker in workers:
            await worker.result()
        assert applied(journal) == max(each.position for each in batch)
        for each in random.Random(seed + 1).sample(events, len(events)):
            await face.beside(acking(run, each)).result()
        assert applied(journal) == len(events) == 22
        assert (await client.runs(unfinished=True)) == []


def acking(run, event):
    async def work():
        await run.ack(event)

    return work


async def test_after_the_end_the_lease_is_kept_until_the_last_ack(face, journal):
    """Promise 4: meanwhile nobody else gets the same events as this consumer; then it is free."""
    _, args = in_memory()
    async with face.client(journal=journal, **args) as client, face.client(journal=journal, **args) as other:
        run = await begun(client)
        events = await collected(run)
        await run.ack(events[3])
        with pytest.raises(errors.RunBusy):
            await collected(other.attach(run.id))
        await run.ack(events[4])
        assert await collected(other.attach(run.id)) == []
        assert await collected(run) == []


async def test_what_was_not_acked_at_the_end_comes_again_to_the_same_handle(face):
    _, args = in_memory()
    async with face.client(journal=":memory:", **args) as client:
        run = await begun(client)
        events = await collected(run)
        await run.ack(events[2])
        again = await collected(run)
        assert sequences(again) == [4, 5]
        assert all(event.redelivered for event in again)


async def test_detaching_gives_the_run_away_and_a_late_ack_still_counts(face, journal):
    """Promise 4: unless somebody else reads as this consumer by then: they see the event again."""
    _, args = in_memory()
    async with face.client(journal=journal, **args) as client, face.client(journal=journal, **args) as other:
        run = await begun(client)
        events = await collected(run, 4)
        await run.detach()
        await run.ack(events[1])
        assert applied(journal) == 2
        with pytest.raises(errors.UsageError, match="nothing to confirm"):
            await run.ack()
        elsewhere = other.attach(run.id)
        assert sequences(await collected(elsewhere, 1)) == [3]
        with pytest.raises(errors.RunBusy):
            await run.ack(events[3])
        assert applied(journal) == 2


async def test_what_an_earlier_loop_was_handed_comes_marked_however_often_the_loop_is_entered(face):
    """Promise 4: also when a loop in between saw less of it; and its acks still count."""
    _, args = in_memory()
    async with face.client(journal=":memory:", **args) as client:
        run = await begun(client)
        events = await collected(run, 4)
        await run.detach()
        await collected(run, 1)
        await run.detach()
        again = await collected(run)
        assert [(event.sequence, event.redelivered) for event in again] == [
            (number, number <= 4) for number in range(1, 6)
        ]
        await run.detach()
        await collected(run, 1)
        await run.detach()
        await run.ack(events[3])
        assert sequences(await collected(run)) == [5]


async def test_what_another_process_may_have_shown_stays_marked_when_the_loop_is_left_early(face, journal):
    """Promise 4: a second loop of the same client knows no more about the first process than its first loop did."""
    _, args = in_memory()
    async with face.client(journal=journal, **args) as client:
        await collected(await begun(client), 4)
    async with face.client(journal=journal, **args) as client:
        run = await begun(client)
        assert [event.redelivered for event in await collected(run, 1)] == [True]
        await run.detach()
        again = await collected(run, 4)
        assert [(event.sequence, event.redelivered) for event in again] == [(number, True) for number in range(1, 5)]


async def test_a_late_ack_does_not_unmark_what_another_client_was_handed(face, journal):
    """Promise 4: somebody else read as this consumer between the loop and its ack."""
    _, args = in_memory()
    async with face.client(journal=journal, **args) as client, face.client(journal=journal, **args) as other:
        run = await begun(client)
        events = await collected(run, 2)
        await run.detach()
        elsewhere = other.attach(run.id, ack="manual")
        await collected(elsewhere, 4)
        await elsewhere.detach()
        await run.ack(events[0])
        assert all(event.redelivered for event in await collected(run, 3))


async def test_late_acks_and_a_loop_that_is_entered_again_never_find_the_run_busy_with_each_other(face, journal):
    """Promise 4: each takes the consumer's lease for a moment; all of one client's threads come to their turn."""
    _, args = in_memory(12)
    async with face.client(journal=journal, **args) as client:
        run = await begun(client)
        done = 0
        while done < 12:
            events = await collected(run, 3)
            assert sequences(events)[0] == done + 1
            await run.detach()
            late = [face.beside(acking(run, event)) for event in events]
            again = await collected(run, 1)
            for each in late:
                await each.result()
            await run.detach()
            done += 3
            assert applied(journal) == done
            assert again[0].sequence <= done + 1


async def test_only_what_was_handed_out_can_be_acked(face):
    _, args = in_memory()
    async with face.client(journal=":memory:", **args) as client:
        run = await begun(client)
        everything = await collected(client.attach(run.id, after="beginning"))
        await collected(run, 2)
        with pytest.raises(errors.UsageError, match="was not handed out"):
            await run.ack(everything[2])
        await run.detach()
        with pytest.raises(errors.UsageError, match="was not handed out"):
            await run.ack(everything[2])


async def test_a_transaction_confirms_up_to_the_event_in_hand(face, journal):
    """Promise 4: with the rows, or neither; an event that is acked already has no transaction."""
    _, args = in_memory()
    async with face.client(journal=journal, **args) as client:
        run = await begun(client)
        async for event in run:
            if event.sequence == 2:
                async with run.transaction() as tx:
                    await tx.execute("CREATE TABLE bill (event TEXT)")
                    await tx.execute("INSERT INTO bill VALUES (?)", (event.id,))
                assert applied(journal) == 2
            if event.sequence == 3:
                await run.ack()
                with pytest.raises(errors.UsageError, match="confirms the event in hand"):
                    async with run.transaction():
                        pass
                break
        again = await collected(run, 1)
        assert sequences(again) == [4]


async def test_an_ack_of_another_thread_before_a_transaction_is_no_takeover(face, journal):
    """Promise 4: the mark moved since the event came, by this very reader."""
    _, args = in_memory()
    async with face.client(journal=journal, **args) as client:
        run = await begun(client)
        events = await collected(run, 3)
        async with run.transaction() as tx:
            await face.beside(acking(run, events[0])).result()
            await tx.execute("CREATE TABLE bill (event TEXT)")
        assert applied(journal) == 3


async def test_a_dropped_handle_gives_its_unconfirmed_lease_back(face):
    """Promise 11: nobody can ack any more, so nobody is kept waiting."""
    _, args = in_memory()
    store = MemoryStore()
    async with face.client(journal=store, **args) as client:
        run = await begun(client)
        run_id = run.id
        assert len(await collected(run)) == 5
        assert store.holder(1, "main") is not None
        del run
        gc.collect()
        again = await collected(client.attach(run_id))
        assert sequences(again) == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("consumer", ["main", "billing"])
async def test_manual_and_automatic_consumers_live_side_by_side(face, journal, consumer):
    _, args = in_memory()
    async with face.client(journal=journal, **args) as client:
        run = await begun(client, consumer=consumer)
        other = client.attach(run.id, consumer="other")
        events = await collected(run, 2)
        assert len(await collected(other)) == 5
        await run.ack(events[1])
        assert (applied(journal, consumer), applied(journal, "other")) == (2, 5)
