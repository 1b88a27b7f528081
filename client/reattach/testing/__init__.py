"""What tests of an application, of a store or of a transport need: `from reattach.testing import Wire, VirtualClock`.

Each name is loaded when it is first asked for. Nothing here imports pytest, and the client never imports anything from here.

    Wire            a scripted transport, without a socket
    VirtualClock    time that moves only when it is told, or when nothing else is left to do
    MemoryServer    a server of the native protocol in memory, that breaks what was planned (Leg, Trip, Beat)
    FailingStore    a journal that fails and lags on demand (Gate)
    MortalStore     a process's door to a journal in memory (Disk) that outlives it; LateWriter: a slow disk in virtual time
    StoreContract   the contract suite of journals: inherit it for a store of your own
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from reattach.runtime.setup import Seams
    from reattach.runtime.writer import InlineWriter
    from reattach.testing.answers import CallAnswer, StreamAnswer, refused, told
    from reattach.testing.body import Body
    from reattach.testing.clock import VirtualClock
    from reattach.testing.failing import FailingStore, Gate
    from reattach.testing.memory_server import MemoryServer
    from reattach.testing.mortal import Disk, LateWriter, MortalStore
    from reattach.testing.plans import Beat, Leg, Trip
    from reattach.testing.stores import StoreContract
    from reattach.testing.wire import ScriptError, Sent, Wire

_HOME = {
    "Wire": "reattach.testing.wire",
    "ScriptError": "reattach.testing.wire",
    "Sent": "reattach.testing.wire",
    "Body": "reattach.testing.body",
    "CallAnswer": "reattach.testing.answers",
    "StreamAnswer": "reattach.testing.answers",
    "refused": "reattach.testing.answers",
    "told": "reattach.testing.answers",
    "VirtualClock": "reattach.testing.clock",
    "MemoryServer": "reattach.testing.memory_server",
    "Beat": "reattach.testing.plans",
    "Leg": "reattach.testing.plans",
    "Trip": "reattach.testing.plans",
    "FailingStore": "reattach.testing.failing",
    "Gate": "reattach.testing.failing",
    "Disk": "reattach.testing.mortal",
    "MortalStore": "reattach.testing.mortal",
    "LateWriter": "reattach.testing.mortal",
    "StoreContract": "reattach.testing.stores",
    "Seams": "reattach.runtime.setup",
    "InlineWriter": "reattach.runtime.writer",
}

__all__ = [
    "Wire",
    "Body",
    "Sent",
    "ScriptError",
    "StreamAnswer",
    "CallAnswer",
    "told",
    "refused",
    "VirtualClock",
    "MemoryServer",
    "Beat",
    "Leg",
    "Trip",
    "FailingStore",
    "Gate",
    "Disk",
    "MortalStore",
    "LateWriter",
    "StoreContract",
    "Seams",
    "InlineWriter",
]


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(home), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
