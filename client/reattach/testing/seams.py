"""The nouns of the client's seams, for who stands in for a clock, a journal, a writer or a transport: an alarm, a lease, a request.

Lives here so that the chaos kit and tests of an application need no room of the client by name. Nothing is defined or decided here;
the seams' laws are in `runtime/clock.py`, `runtime/writer.py`, `stores/base.py` and `transports/base.py`.
"""

from reattach.runtime.clock import Alarm, RealClock
from reattach.runtime.writer import Done
from reattach.stores.base import Busy, Holder, Lease, Refusal, Store, StoreFailed, StoreLocked, Write
from reattach.transports.base import Batch, Request, Response, WireLost, WireOversize
from reattach.wire.eventstream import Decoder, Oversize

__all__ = [
    "Alarm",
    "Batch",
    "Busy",
    "Decoder",
    "Done",
    "Holder",
    "Lease",
    "Oversize",
    "RealClock",
    "Refusal",
    "Request",
    "Response",
    "Store",
    "StoreFailed",
    "StoreLocked",
    "WireLost",
    "WireOversize",
    "Write",
]
