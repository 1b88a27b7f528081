"""The faults: each one file, one function. `base.py` says what they are told and may do.

To add one: a file with `async def strike(blow)`, and its line in the table.
"""

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from reattach_chaos.gate.faults import (
    accept_close,
    bandwidth,
    broken_chunk,
    busy,
    cut,
    duplicate,
    early_end,
    empty,
    latency,
    other_instance,
    refuse,
    slow_reader,
    trickle,
    unauthorized,
    wrong_type,
)
from reattach_chaos.gate.faults.base import Blow, Impossible
from reattach_chaos.schedules import Fault

Strike: TypeAlias = Callable[[Blow], Awaitable[None]]

STRIKES: dict[Fault, Strike] = {
    Fault.FIN: cut.strike,
    Fault.RST: cut.strike,
    Fault.STALL: cut.strike,
    Fault.HALF_OPEN: cut.strike,
    Fault.REFUSE: refuse.strike,
    Fault.ACCEPT_CLOSE: accept_close.strike,
    Fault.LATENCY: latency.strike,
    Fault.TRICKLE: trickle.strike,
    Fault.BANDWIDTH: bandwidth.strike,
    Fault.SLOW_READER: slow_reader.strike,
    Fault.BUSY: busy.strike,
    Fault.UNAUTHORIZED: unauthorized.strike,
    Fault.EMPTY: empty.strike,
    Fault.WRONG_TYPE: wrong_type.strike,
    Fault.EARLY_END: early_end.strike,
    Fault.DUPLICATE: duplicate.strike,
    Fault.BROKEN_CHUNK: broken_chunk.strike,
    Fault.OTHER_INSTANCE: other_instance.strike,
}
"""What the gate does itself; all other faults are the runner's."""

ANSWERS = frozenset({Fault.BUSY, Fault.UNAUTHORIZED, Fault.EMPTY, Fault.WRONG_TYPE})
"""Faults that answer in the server's place."""

EDITS = frozenset({Fault.EARLY_END, Fault.DUPLICATE, Fault.BROKEN_CHUNK})
"""Faults for which the answer is framed anew."""

ENDS = frozenset({Fault.SERVER_RESTART, Fault.NO_ROUTE})
"""What the runner does and no connection outlives: whatever a server had sent before is with it, and a request has no way."""


async def strike(blow: Blow) -> None:
    """Do a fault.

    Raises:
        Over: It ended the connection.
        Impossible: It was not done.
    """
    known = STRIKES.get(blow.planned.fault)
    if known is not None:
        await known(blow)
        return
    perform = blow.link.setting.perform
    if perform is None:
        raise Impossible("nobody is there who does it")
    blow.tell()
    await perform(blow.planned, blow.exchange)
    if blow.planned.fault in ENDS:
        await blow.hang_up("server")
