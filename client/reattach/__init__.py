"""reattach: a long agent run that survives everything that happens to its connection.

The public door and nothing else. Names are loaded when they are first used, so that a noun costs no httpx.

    import reattach

    with reattach.Client("http://127.0.0.1:8700", "runs.db") as client:
        run = client.start("Summarise these 400 files", key="summary-41")
        for event in run:
            print(event.text, end="", flush=True)
        print(run.result())
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from reattach import observe, profiles, stores, testing
    from reattach.async_client import AsyncClient
    from reattach.async_run import AsyncRun
    from reattach.async_transaction import AsyncTransaction
    from reattach.client import Client
    from reattach.errors import (
        ActionRequired,
        ActionResolved,
        ActionsUnanswered,
        AmbiguousOutcome,
        ApprovalStale,
        AttachError,
        Closed,
        CommitFailed,
        CursorExpired,
        CursorRefused,
        EpochChanged,
        EventConflict,
        GapUnfillable,
        JournalDamaged,
        KeyConflict,
        LeaseLost,
        LocalProtocolError,
        NotAuthorized,
        NotFound,
        ProtocolError,
        ReattachError,
        ReconnectExhausted,
        RemoteProtocolError,
        RespondError,
        ResumeRejected,
        RunBusy,
        RunCancelled,
        RunFailed,
        RunNotCompleted,
        SessionBusy,
        StoreBusy,
        StoreError,
        UsageError,
        WaitTimeout,
    )
    from reattach.model import (
        Answer,
        Connection,
        Event,
        Gap,
        Message,
        Operation,
        Outcome,
        Problem,
        RequiredAction,
        Status,
        ToolCall,
        View,
    )
    from reattach.observe import Fact
    from reattach.policy import Policy
    from reattach.run import Run
    from reattach.transaction import Transaction

__version__ = "0.1.0"

_HOMES: dict[str, tuple[str, ...]] = {
    "reattach.client": ("Client",),
    "reattach.run": ("Run",),
    "reattach.transaction": ("Transaction",),
    "reattach.async_client": ("AsyncClient",),
    "reattach.async_run": ("AsyncRun",),
    "reattach.async_transaction": ("AsyncTransaction",),
    "reattach.policy": ("Policy",),
    "reattach.observe": ("Fact",),
    "reattach.model": (
        "Answer",
        "Connection",
        "Event",
        "Gap",
        "Message",
        "Operation",
        "Outcome",
        "Problem",
        "RequiredAction",
        "Status",
        "ToolCall",
        "View",
    ),
    "reattach.errors": (
        "ActionRequired",
        "ActionResolved",
        "ActionsUnanswered",
        "AmbiguousOutcome",
        "ApprovalStale",
        "AttachError",
        "Closed",
        "CommitFailed",
        "CursorExpired",
        "CursorRefused",
        "EpochChanged",
        "EventConflict",
        "GapUnfillable",
        "JournalDamaged",
        "KeyConflict",
        "LeaseLost",
        "LocalProtocolError",
        "NotAuthorized",
        "NotFound",
        "ProtocolError",
        "ReattachError",
        "ReconnectExhausted",
        "RemoteProtocolError",
        "RespondError",
        "ResumeRejected",
        "RunBusy",
        "RunCancelled",
        "RunFailed",
        "RunNotCompleted",
        "SessionBusy",
        "StoreBusy",
        "StoreError",
        "UsageError",
        "WaitTimeout",
    ),
}
_SUBMODULES = ("observe", "profiles", "stores", "testing")
_HOME = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "Client",
    "Run",
    "Transaction",
    "AsyncClient",
    "AsyncRun",
    "AsyncTransaction",
    "Policy",
    "Fact",
    "Answer",
    "Connection",
    "Event",
    "Gap",
    "Message",
    "Operation",
    "Outcome",
    "Problem",
    "RequiredAction",
    "Status",
    "ToolCall",
    "View",
    "ReattachError",
    "UsageError",
    "KeyConflict",
    "RunBusy",
    "Closed",
    "WaitTimeout",
    "RunNotCompleted",
    "RunFailed",
    "RunCancelled",
    "ActionRequired",
    "AttachError",
    "ReconnectExhausted",
    "NotFound",
    "NotAuthorized",
    "SessionBusy",
    "ResumeRejected",
    "CursorExpired",
    "EpochChanged",
    "CursorRefused",
    "GapUnfillable",
    "ProtocolError",
    "LocalProtocolError",
    "RemoteProtocolError",
    "EventConflict",
    "StoreError",
    "CommitFailed",
    "LeaseLost",
    "StoreBusy",
    "JournalDamaged",
    "RespondError",
    "ActionsUnanswered",
    "ActionResolved",
    "ApprovalStale",
    "AmbiguousOutcome",
    "observe",
    "profiles",
    "stores",
    "testing",
]


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is not None:
        value = getattr(importlib.import_module(home), name)
    elif name in _SUBMODULES:
        value = importlib.import_module(f"{__name__}.{name}")
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
