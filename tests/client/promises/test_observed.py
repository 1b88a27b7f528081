"""What an observer is told: one frozen record a fact, with three instants of each event; and `run.connection` at any time."""

import dataclasses
import threading
import time

import anyio.lowlevel
import pytest

import reattach
from client_stage import Facts, collected, in_memory
from reattach.testing import Beat, Leg, VirtualClock

pytestmark = pytest.mark.anyio

QUIET = [Beat()]


def instants(facts, name):
    """Return {sequence: when} of what facts of this name cover."""
    found = {}
    for fact in facts.told:
        if fact.name == name:
            last = int(fact.cursor.partition(".")[2])
            for sequence in range(last - fact.count + 1, last + 1):
                found.setdefault(sequence, fact.at)
    return found


async def test_every_event_has_three_instants_in_order(face):
    """Received, committed, applied: each event is covered by a fact of each name, also over a cut."""
    facts = Facts()
    _server, args = in_memory(beats=4, legs=[Leg(cut=(3, 0), how="reset")])
    async with face.client(journal=":memory:", observer=facts, **args) as client:
        await collected(await client.start("work", key="k"))
    received, committed, applied = (instants(facts, name) for name in ("received", "committed", "applied"))
    assert sorted(received) == sorted(committed) == sorted(applied) == [1, 2, 3, 4, 5, 6]
    for sequence in received:
        assert received[sequence] <= committed[sequence] <= applied[sequence]
    names = facts.names()
    assert names.index("received") < names.index("committed") < names.index("applied")
    assert {fact.run_id for fact in facts.told} == {"run_1"}


async def test_applied_names_the_consumer_and_counts_what_an_ack_or_a_transaction_confirms(face, journal):
    """An automatic mark confirms one; ack confirms up to its event; a rolled back transaction confirms nothing."""
    facts = Facts()
    _server, args = in_memory(beats=4)

    def applied():
        return [(fact.cursor, fact.count) for fact in facts.told if fact.name == "applied"]

    async with face.client(journal=journal, observer=facts, **args) as client:
        run = await client.start("work", key="k")
        async for event in run:
            if event.sequence == 2:
                await run.ack()
                assert applied() == [("e1.1", 1), ("e1.2", 1)]
            elif event.sequence == 3 and not event.redelivered:
                with pytest.raises(KeyError):
                    async with run.transaction():
                        raise KeyError
                assert len(applied()) == 2
            elif event.sequence == 3:
                async with run.transaction():
                    pass
        assert applied() == [(f"e1.{number}", 1) for number in range(1, 7)]
        assert {fact.detail for fact in facts.told if fact.name == "applied"} == {"main"}
        manual = client.attach(run.id, consumer="billing", ack="manual")
        events = await collected(manual)
        await manual.ack(events[3])
        told = [fact for fact in facts.told if fact.detail == "billing"]
        assert [(fact.cursor, fact.count) for fact in told] == [("e1.4", 4)]
        await collected(client.attach(run.id, after="beginning"))
        assert len(applied()) == 7, "who only looks confirms nothing"


async def test_a_gap_is_a_fact(face):
    """Where it was chosen to go on: why, where to, and how many are missing."""
    facts = Facts()
    server, args = in_memory(jumps=False, story=[*[Beat()] * 5, Beat(do="trim", count=3), Beat(do="end", data="ok")])
    server.create()
    async with face.client(journal=":memory:", observer=facts, on_gap="snapshot", **args) as client:
        events = await collected(client.attach("run_1"))
    assert [event.kind for event in events if event.gap] == ["gap"]
    (gap,) = [fact for fact in facts.told if fact.name == "gap"]
    assert (gap.detail, gap.count) == (events[0].gap.reason, events[0].gap.missing or 0)


def test_a_fact_is_frozen_and_small():
    """It may be kept, sent to another thread, and hashed."""
    fact = reattach.Fact(name="x", run_id="r", at=VirtualClock().wall())
    with pytest.raises(dataclasses.FrozenInstanceError):
        fact.name = "y"
    assert not hasattr(fact, "__dict__")
    assert {fact: 1}[dataclasses.replace(fact)] == 1


# the connection at any time --------------------------------------------------------------------------------------------


async def phase(face, args, run, condition, moved=0.0):
    """Let time pass until the run's connection is as wanted."""
    clock = args["_seams"].clock()
    moves, limit = 0, time.monotonic() + 20.0  # a thread writes: what needs no virtual time may need some of ours
    while moves < 400 and time.monotonic() < limit:
        moves += moved > 0
        if condition(run.connection):
            return run.connection
        if face.name == "blocking":
            clock.advance(moved)
        else:
            await clock.elapse(moved)
            await anyio.lowlevel.checkpoint()
    raise AssertionError(f"it is {run.connection!r}")


async def test_the_connection_is_readable_in_each_of_its_phases(face):
    """B33: detached, attaching, waiting, replaying, live, ended: with reason, attempt, delay, replayed and behind; no await."""
    legs = [Leg(delay=None), Leg(lost=True), Leg(cut=(2, 7), how="stall"), Leg()]
    server, args = in_memory(legs=legs, inline=True, jumps=False, story=[*[Beat()] * 5])
    async with face.client(journal=":memory:", **args) as client:
        run = await client.start("work", key="k")
        assert run.connection == reattach.Connection()
        assert str(run.connection) == "detached"
        reading = face.beside(lambda: collected(run))
        seen = await phase(face, args, run, lambda c: c.phase == "attaching")
        assert (seen.attempt, seen.retry_in, seen.behind) == (0, None, None)
        seen = await phase(face, args, run, lambda c: c.phase == "waiting", 1.0)
        assert seen.reason == "no answer in time"
        assert seen.retry_in > 0
        assert seen.attempt >= 1
        assert str(seen).startswith("reconnecting in ")
        seen = await phase(face, args, run, lambda c: c.attempt == 2, 1.0)
        assert (seen.phase, seen.reason) == ("waiting", "connection reset by peer")
        seen = await phase(face, args, run, lambda c: c.phase == "replaying", 1.0)
        assert (seen.replayed, seen.behind) == (1, 5)
        assert str(seen) == "catching up: 1 of 6 events"
        seen = await phase(face, args, run, lambda c: c.phase == "live", 1.0)
        assert (seen.behind, seen.retry_in) == (0, None)
        server.perform(server.run, Beat(do="end", data="ok"))
        await phase(face, args, run, lambda c: c.phase == "ended")
        await reading.result()
        assert run.connection == reattach.Connection(phase="ended")


async def test_the_connection_of_a_settled_run_and_of_many_readers(face):
    """Who looks at a run that another reader of this client follows sees its connection; from any thread."""
    server, args = in_memory(story=QUIET, jumps=False)
    async with face.client(journal=":memory:", **args) as client:
        run = await client.start("work", key="k")
        reading = face.beside(lambda: collected(run))
        await phase(face, args, run, lambda c: c.phase == "live")
        (other,) = await client.runs()
        await other.view()
        assert other.connection.phase == "live"
        told = []
        thread = threading.Thread(target=lambda: told.append(run.connection.phase))
        thread.start()
        thread.join()
        assert told == ["live"]
        server.perform(server.run, Beat(do="end"))
        await phase(face, args, run, lambda c: c.phase == "ended")
        await reading.result()
        (settled,) = await client.runs()
        await settled.view()
        assert str(settled.connection) == "ended", "also of a run that nobody follows any more"
