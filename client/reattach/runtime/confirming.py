"""What confirms an event besides asking for the next one: `ack`, and a transaction.

Both are durable when they return. With ack="manual" they are all that confirms, from any thread, in any order, cumulatively; and
what was handed out can be confirmed after its loop has ended, too, as long as nobody else reads as this consumer.
"""

from __future__ import annotations

from reattach import errors
from reattach.model import Event
from reattach.runtime.consumption import Consumption
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
    await _mark(handle, consumption.lease, _chosen(handle, consumption, event), consumption)
    if handle.unconfirmed is consumption and not consumption.unconfirmed:
        await handle.detach()


async def _afterwards(handle: Handle, event: Event) -> None:
    """Confirm an event whose loop was detached: under a lease taken for that alone."""
    row = await handle.known()
    _, handed_out = handle.engine.leases.shown.get((row.run, handle.consumer), (0, 0))
    _check(handle, event, handed_out)
    lease = await handle.take(row)
    try:
        await _mark(handle, lease, event, None)
    finally:
        handle.engine.leases.shown[row.run, handle.consumer] = (lease.token, handed_out)
        await handle.engine.to_the_end(handle.engine.leases.give_back, lease)


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
