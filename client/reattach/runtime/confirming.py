"""What confirms an event besides asking for the next one: `ack`, and a transaction.

Both are durable when they return. With ack="manual" they are all that confirms, from any thread, in any order, cumulatively; and
what was handed out can be confirmed after its loop has ended, too, as long as nobody else reads as this consumer.
"""

from __future__ import annotations

from reattach import errors
from reattach.model import Event
from reattach.runtime.consumption import Consumption, Handed
from reattach.runtime.handle import Handle
from reattach.runtime.loop import settled_through
from reattach.runtime.turn import Turn
from reattach.stores.base import Lease, LeaseGone


async def acknowledge(handle: Handle, event: Event | None) -> None:
    """Confirm up to an event, durably; None is the one in hand.

    Raises:
        UsageError: There is none in hand, or it is not an event that this reader was handed.
        LeaseLost: Another process took the run over.
    """
    consumption = handle.consumption or handle.unconfirmed
    if consumption is None or consumption.lease is None:
        if handle.manual and event is not None:
            await _afterwards(handle, event)
            return
        raise errors.UsageError(
            f"run {handle.run_id!r} is not being read by a consumer; there is nothing to confirm.",
            run_id=handle.run_id,
            hint="Confirm inside the loop over the run.",
        )
    chosen = _chosen(handle, consumption, event)
    try:
        await _mark(handle, consumption.lease, chosen, consumption)
    except errors.LeaseLost:
        if not handle.manual or consumption in (handle.consumption, handle.unconfirmed):
            raise
        await _afterwards(
            handle, chosen
        )  # the loop was left meanwhile, and perhaps entered again: here, under a new lease
    if handle.unconfirmed is consumption and not consumption.unconfirmed:
        await handle.detach()


async def _afterwards(handle: Handle, event: Event) -> None:
    """Confirm an event whose loop was detached: under a lease taken for that alone, or that of the loop that began meanwhile."""
    engine = handle.engine
    row = await handle.known()
    async with engine.leases.alone(row.run, handle.consumer):
        reading = handle.consumption or handle.unconfirmed
        if reading is not None and reading.lease is not None:
            _check(handle, event, reading.handed_out)
            await _mark(handle, reading.lease, event, reading)
            return
        before = engine.leases.shown.get((row.run, handle.consumer), Handed())
        _check(handle, event, before.handed)
        lease = await handle.take(row)
        try:
            await _mark(handle, lease, event, None)
        finally:
            # Otherwise somebody read in between, and what they were handed is not known here.
            if lease.token == before.token + 1:
                engine.leases.shown[row.run, handle.consumer] = before._replace(token=lease.token)
            await engine.to_the_end(engine.leases.give_back, lease)


async def _mark(handle: Handle, lease: Lease, event: Event, consumption: Consumption | None) -> None:
    store = handle.engine.store

    def work() -> None:
        store.mark(lease, event.position)
        if consumption is not None:
            # In the writer's turn, so that a transaction that comes next knows it.
            consumption.confirmed(event.position, event.cursor)

    try:
        await settled_through(handle.engine.writer.post(work), handle.engine.soon)
    except LeaseGone as error:
        raise errors.LeaseLost(
            f"run {handle.run_id!r} was taken over by another process ({error}); nothing was confirmed.",
            run_id=handle.run_id,
            hint="The other process sees these events.",
        ) from error


def _chosen(handle: Handle, consumption: Consumption, event: Event | None) -> Event:
    if event is not None:
        _check(handle, event, consumption.handed_out)
        return event
    if consumption.in_hand is None:
        raise errors.UsageError(
            f"run {handle.run_id!r}: no event is in hand.", run_id=handle.run_id, hint="Confirm inside the loop."
        )
    return consumption.in_hand


def _check(handle: Handle, event: Event, handed_out: int) -> None:
    if event.run_id != handle.run_id or not 0 < event.position <= handed_out:
        raise errors.UsageError(
            f"event {event.id!r} was not handed out by this reader of run {handle.run_id!r}.",
            run_id=handle.run_id,
            hint="Confirm events that came out of this loop.",
        )


def turn(handle: Handle) -> tuple[Turn, Consumption, Event]:
    """Return a transaction for the event in hand, with its reader; nothing is begun yet.

    Raises:
        UsageError: No event is in hand, or it is confirmed already.
    """
    reader = handle.consumption
    event = None if reader is None else reader.in_hand
    if reader is None or reader.lease is None or event is None or event.position <= reader.applied:
        raise errors.UsageError(
            f"run {handle.run_id!r}: a transaction confirms the event in hand, and there is none.",
            run_id=handle.run_id,
            hint="Enter it inside the loop over the run.",
        )
    engine = handle.engine
    return (
        Turn(engine.turns, engine.store, reader.lease, event.position, lambda: reader.applied, engine.turn_limit),
        reader,
        event,
    )
