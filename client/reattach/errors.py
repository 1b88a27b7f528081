"""The error tree. Every error says what happened, to which run, at which cursor, what was tried and what to do now.

    ReattachError            code run_id key cursor tried hint
    ├─ UsageError (ValueError)          nothing was sent
    │  ├─ KeyConflict                   the key was used for another input
    │  └─ RunBusy                       somebody else follows as this consumer
    ├─ Closed                           the client was closed while you waited
    ├─ WaitTimeout (TimeoutError)       your own limit of time is over; the run goes on
    ├─ RunNotCompleted                  outcome; only from result()
    │  ├─ RunFailed  RunCancelled  ActionRequired
    ├─ AttachError                      no stream, and no repetition would help now
    │  ├─ ReconnectExhausted  NotFound  NotAuthorized  SessionBusy
    ├─ ResumeRejected                   gap: events cannot be had
    │  ├─ CursorExpired  EpochChanged  CursorRefused  GapUnfillable
    ├─ ProtocolError
    │  ├─ LocalProtocolError            what we would have to send cannot be sent
    │  └─ RemoteProtocolError           what came is not the protocol
    │     └─ EventConflict              the same event with another payload
    ├─ StoreError
    │  ├─ CommitFailed  LeaseLost  StoreBusy  JournalDamaged
    ├─ RespondError
    │  ├─ ActionsUnanswered  ActionResolved  ApprovalStale
    └─ AmbiguousOutcome                 it may or may not have happened, and was not repeated

A failed run is an outcome in loops and in `wait()`; only `result()` raises it. Foreign exceptions are causes, never raised bare.
"""

from __future__ import annotations

import re
from typing import TypedDict, Unpack

from reattach.model import Gap, Outcome


class Facts(TypedDict, total=False):
    """The facts that every error carries as attributes, besides its hint."""

    run_id: str
    key: str | None
    cursor: str | None
    tried: str
    problem: str | None


class ReattachError(Exception):
    """The root. The text names the facts; the attributes are the same facts.

    Attributes:
        code: The class's name in snake case, stable.
        run_id: Which run, "" while it has no id.
        key: The application's own name of the work, where known.
        cursor: The committed cursor, None at the beginning.
        tried: What was tried, a phrase.
        hint: What to do now, a sentence.
        problem: The server's own code for it, where it gave one.
    """

    def __init__(
        self,
        message: str,
        *,
        run_id: str = "",
        key: str | None = None,
        cursor: str | None = None,
        tried: str = "",
        hint: str = "",
        problem: str | None = None,
    ) -> None:
        super().__init__(f"{message} {hint}".rstrip() if hint else message)
        self.run_id = run_id
        self.key = key
        self.cursor = cursor
        self.tried = tried
        self.hint = hint
        self.problem = problem

    @property
    def code(self) -> str:
        """The class's name in snake case: `cursor_expired`."""
        return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", type(self).__name__).lower()

    def __str__(self) -> str:
        """Return the facts, once."""
        return str(self.args[0])


class UsageError(ReattachError, ValueError):
    """The call cannot be right as it stands. Nothing was sent, nothing was written."""


class KeyConflict(UsageError):
    """The key names other work already."""


class RunBusy(UsageError):
    """Somebody else follows this run as the same consumer."""


class Closed(ReattachError):
    """The client was closed, or the process forked, while you waited. The run goes on."""


class WaitTimeout(ReattachError, TimeoutError):
    """Your own limit of time is over. The run goes on."""


class RunNotCompleted(ReattachError):
    """`result()` was asked for, and the run ended otherwise. `outcome` tells how."""

    def __init__(self, message: str, *, outcome: Outcome, hint: str = "", **facts: Unpack[Facts]) -> None:
        super().__init__(message, hint=hint, **facts)
        self.outcome = outcome


class RunFailed(RunNotCompleted):
    """The run failed; `outcome.problem` says why."""


class RunCancelled(RunNotCompleted):
    """The run was cancelled; `outcome.operations` says what is not undone."""


class ActionRequired(RunNotCompleted):
    """The run waits for you; `outcome.required_actions` says for what."""


class AttachError(ReattachError):
    """No stream can be had. The run itself is untouched."""


class ReconnectExhausted(AttachError):
    """Neither an attach nor a status answer for the whole budget of time."""


class NotFound(AttachError):
    """The server knows no such run."""


class NotAuthorized(AttachError):
    """The server refuses the token, also a fresh one."""


class SessionBusy(AttachError):
    """The session has a run that is not settled; nothing was created."""


class ResumeRejected(ReattachError):
    """The log cannot be resumed from our cursor. `gap` names what is missing and why. The journal is unchanged."""

    def __init__(self, message: str, *, gap: Gap, hint: str = "", **facts: Unpack[Facts]) -> None:
        super().__init__(message, hint=hint, **facts)
        self.gap = gap


class CursorExpired(ResumeRejected):
    """The server no longer keeps the events after our cursor."""


class EpochChanged(ResumeRejected):
    """The log was replaced, or lost its tail and went on differently."""


class CursorRefused(ResumeRejected):
    """The server says that our cursor is none of this run."""


class GapUnfillable(ResumeRejected):
    """A hole in the log, or boundaries that never held."""


class ProtocolError(ReattachError):
    """One side does not speak the protocol."""


class LocalProtocolError(ProtocolError):
    """What we would have to send cannot be sent."""


class RemoteProtocolError(ProtocolError):
    """What came is not the protocol."""


class EventConflict(RemoteProtocolError):
    """The same event came with another payload."""


class StoreError(ReattachError):
    """The journal. Nothing that is not on disk was shown."""


class CommitFailed(StoreError):
    """The journal could not be written."""


class LeaseLost(StoreError):
    """Another process took the run over; this one writes nothing more."""


class StoreBusy(StoreError):
    """The journal, or a transaction on it, was held for too long."""


class JournalDamaged(StoreError):
    """The journal was unreadable and was moved aside, or is of a newer schema and was left alone."""


class RespondError(ReattachError):
    """The answers to required actions were refused. Nothing was sent, or nothing was changed by it."""


class ActionsUnanswered(RespondError):
    """Not all pending actions have an answer."""


class ActionResolved(RespondError):
    """Somebody else answered, or the pause was left."""


class ApprovalStale(RespondError):
    """What the approval was given for has changed since."""


class AmbiguousOutcome(ReattachError):
    """It may or may not have happened; it was not repeated."""
