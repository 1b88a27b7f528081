"""What a create raises that was not answered with a run: of a start, in the words of its key; of answers, of their paused run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reattach import errors
from reattach.core.messages import Refusal, Why
from reattach.runtime import asking
from reattach.runtime.calls import Refused
from reattach.stores.base import RunRow

if TYPE_CHECKING:
    from reattach.runtime.engine import Engine

RESOLVED = frozenset({"action_resolved", "action_expired", "not_paused"})
"""Codes that say: the pause is over, whoever ended it."""
ANSWERS = RESOLVED | {"actions_unanswered", "action_unknown", "approval_stale"}
"""Codes that refuse answers for good. The server looks the key up before (protocol.md, 2), so nothing was taken under it."""


def named(row: RunRow) -> str:
    """Return what a create is called in messages."""
    return f"the start with key {row.key!r}" if row.key is not None else f"the response to run {row.continues!r}"


def again(row: RunRow) -> str:
    """Return how a create is repeated, without the end of the sentence."""
    return "Start again with the same key" if row.key is not None else "Respond again with the same answers"


def unreadable(engine: Engine, row: RunRow, detail: str) -> errors.RemoteProtocolError:
    """Return the error of an answer that is not the protocol."""
    return errors.RemoteProtocolError(
        f"{named(row)}: {engine.server} sent {detail}. It was not repeated.",
        key=row.key,
        hint=f"Open the address in a browser, then: {again(row).lower()}.",
    )


def refused(engine: Engine, row: RunRow, error: Refused, *, doubtful: bool) -> errors.ReattachError:
    """Return the error of a create that the server refused, or did not answer.

    Args:
        engine: The client at work.
        row: The intent.
        error: What came instead.
        doubtful: Whether an attempt before may have been taken, so that this refusal does not prove that nothing was created.
    """
    refusal = error.refusal
    created = (
        "An attempt before it was not answered and may have been taken; the intent is in the journal."
        if doubtful
        else "Nothing was created."
    )
    facts: errors.Facts = {"key": row.key, "problem": refusal.code, "run_id": row.continues or ""}
    told = f"{refusal.status} {refusal.code or ''}".strip() if refusal.status is not None else "no answer"
    match refusal.why:
        case Why.BUSY:
            limit = engine.policy.give_up_after
            tried, last = asking.told(error)
            spent = f" within {limit:g} s" if limit is not None else ""
            return errors.ReconnectExhausted(
                f"{named(row)} was not answered by {engine.server}{spent} ({tried}, last: {last}). "
                "It may have been taken; the intent is in the journal.",
                hint=f"{again(row)}: it goes on, and never twice.",
                **facts,
            )
        case Why.UNAUTHENTICATED | Why.FORBIDDEN:
            return errors.NotAuthorized(
                f"{engine.server} refused the token for {named(row)} ({told}). {created}",
                hint=f"Renew the token, then: {again(row).lower()}.",
                **facts,
            )
        case Why.UNSENDABLE:
            return errors.LocalProtocolError(
                f"{named(row)} cannot be sent: {refusal.detail}.",
                hint="Check headers and token for characters that HTTP does not allow.",
                **facts,
            )
        case _ if refusal.code in ANSWERS and row.continues is not None:
            return _unaccepted(row.continues, refusal, told)
        case _ if refusal.code == "session_busy":
            return _busy(row, refusal, told)
        case _ if refusal.code == "idempotency_conflict":
            return errors.KeyConflict(
                f"key {row.key!r} was used before, elsewhere, for another input ({told}). Nothing was created.",
                hint="Use the same input to go on with that run, or another key for new work.",
                **facts,
            )
        case _:
            return errors.AttachError(
                f"{engine.server} refused {named(row)} ({told}: {refusal.detail}). {created}",
                hint=f"Mend the input or the address, then: {again(row).lower()}.",
                **facts,
            )


def _busy(row: RunRow, refusal: Refusal, told: str) -> errors.SessionBusy:
    other = refusal.run_id
    which = f"run {other!r}, which has not settled" if other else "a run that is not settled"
    return errors.SessionBusy(
        f"the session has {which} ({told}). Nothing was created; key {row.key!r} is free.",
        run_id=other or "",
        key=row.key,
        problem=refusal.code,
        hint=(f"client.attach({other!r}).wait() waits for it" if other else "Wait for that run")
        + '; on_active="cancel" at the start ends it.',
    )


def _unaccepted(run: str, refusal: Refusal, told: str) -> errors.RespondError:
    """Return the error of answers that the server does not take: the pause stands, or is over, and nothing was created."""
    facts: errors.Facts = {"run_id": run, "problem": refusal.code}
    match refusal.code:
        case "actions_unanswered":
            return errors.ActionsUnanswered(
                f"run {run!r} waits for more than was answered ({told}: {refusal.detail}). Nothing was created.",
                hint="status() and wait() of a new handle tell what is pending; answer all of it in one respond().",
                **facts,
            )
        case "approval_stale":
            return errors.ApprovalStale(
                f"what run {run!r} asked an approval for has changed since ({told}: {refusal.detail}). Nothing was created.",
                hint="Reject it, or start a new run in its session: then the old action lapses.",
                **facts,
            )
        case code if code in RESOLVED:
            return errors.ActionResolved(
                f"the pause of run {run!r} is over ({told}: {refusal.detail}). Your answers changed nothing.",
                hint="Go on with the run that its session has now, or start a new one there.",
                **facts,
            )
        case _:
            return errors.RespondError(
                f"run {run!r} does not take these answers ({told}: {refusal.detail}). Nothing was created.",
                hint="Answer the actions of outcome.required_actions.",
                **facts,
            )
