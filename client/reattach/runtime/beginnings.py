"""Where a reader begins that looks on without a mark (`after=`): which events of the journal it does not want."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from reattach import errors
from reattach.core.messages import Failure, Refusal, Why
from reattach.model import Event
from reattach.runtime.failures import error_of
from reattach.stores.base import RunRow

if TYPE_CHECKING:
    from reattach.runtime.handle import Handle


async def skip(handle: Handle, row: RunRow, after: str) -> Callable[[Event], bool] | None:
    """Return what says of an event that it is not wanted, None if all are.

    Args:
        handle: The run.
        row: Its row.
        after: "beginning", "tail" (asks the server where that is) or a cursor.

    Raises:
        UsageError: It is no cursor of this server.
        NotFound, NotAuthorized, RemoteProtocolError, AttachError: The server did not say where the tail is.
        EpochChanged: By what is returned: the event is of another epoch, so nobody knows which of the two is first.
    """
    if after == "beginning":
        return None
    profile = handle.engine.profile
    if after == "tail":
        reading = await handle.reading()
        epoch, sequence = reading.epoch, reading.head or 0
    else:
        place = profile.place(after)
        if place is None:
            raise errors.UsageError(
                f"after={after!r} is no cursor of this server.",
                run_id=handle.run_id,
                hint='Use "beginning", "tail" or the cursor of an event.',
            )
        epoch, sequence = place

    def unwanted(event: Event) -> bool:
        if event.sequence is None or event.cursor is None:
            return False
        found = profile.place(event.cursor)
        if found is not None and epoch is not None and found[0] != epoch:
            failure = Failure("epoch_changed", reason="epoch", refusal=Refusal(Why.EPOCH, epoch=found[0]))
            raise error_of(failure, handle.place(row))
        return event.sequence <= sequence

    return unwanted
