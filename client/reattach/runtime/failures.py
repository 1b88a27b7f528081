"""Failures become errors here, in one place: the words of surface.md section 4, the facts as attributes."""

from __future__ import annotations

from typing import NamedTuple

from reattach import errors
from reattach.core.messages import Failure, Mark, Refusal, Why
from reattach.model import Gap
from reattach.policy import Policy
from reattach.stores.base import (
    StoreConflict,
    StoreDamaged,
    StoreFailed,
    StoreForeign,
    StoreLocked,
    StoreNewer,
    StoreTaken,
    StoreUnreachable,
)


class Place(NamedTuple):
    """Where an error happened."""

    server: str
    journal: str
    run_id: str
    key: str | None
    mark: Mark
    policy: Policy
    at: str | None = None
    """The cursor of the first event that could not be written, where it failed there."""

    @property
    def cursor(self) -> str:
        """The committed cursor in words."""
        return self.mark.cursor or "the beginning"


def error_of(failure: Failure, place: Place) -> errors.ReattachError:
    """Return the error of a subscription's failure."""
    run, cursor = place.run_id, place.cursor
    refusal = failure.refusal or Refusal(Why.OTHER)  # only its texts are read
    facts: errors.Facts = {
        "run_id": run,
        "key": place.key,
        "cursor": place.mark.cursor,
        "tried": "1 attempt" if failure.attempts == 1 else f"{failure.attempts} attempts",
        "problem": refusal.code,
    }
    match failure.code:
        case "reconnect_exhausted":
            limit = place.policy.give_up_after
            last = failure.detail or "no answer"
            # Where the server asks for a longer wait than is left, it was given up at once.
            spent = "for" if failure.refusal is None else "within"
            return errors.ReconnectExhausted(
                f"run {run!r} could not be reached {spent} {limit:g} s ({facts['tried']}, last: {last}). "
                f"The run itself may still be going on. Cursor {cursor}.",
                hint="Iterate again whenever you like, or raise Policy.give_up_after.",
                **facts,
            )
        case "not_found":
            return errors.NotFound(
                f"{place.server} knows no run {run!r} ({_told(refusal)}). Nothing was changed; "
                f"the journal holds {f'it up to {cursor}' if place.mark.position else 'none of its events'}.",
                hint="Check the server's address and whose token it is.",
                **facts,
            )
        case "not_authorized":
            if refusal.status == 403:
                return errors.NotAuthorized(
                    f"{place.server} does not allow this token to follow run {run!r} ({_told(refusal)}). "
                    f"The run is untouched, cursor {cursor}.",
                    hint="Use a token with the right to read this run.",
                    **facts,
                )
            return errors.NotAuthorized(
                f"{place.server} refused the token for run {run!r} twice (401; the token was asked for again in "
                f"between). The run is untouched, cursor {cursor}.",
                hint="Renew the token, then iterate again.",
                **facts,
            )
        case "cursor_expired" | "epoch_changed" | "cursor_refused" | "gap_unfillable":
            return _rejected(failure, place, refusal, facts)
        case "event_conflict":
            return errors.EventConflict(
                f"run {run!r}: {place.server} sent event {failure.detail} again with another payload than the one in "
                f"the journal. Neither was dropped in silence; the journal is unchanged, cursor {cursor}.",
                hint="Report it to the vendor: an event must never change.",
                **facts,
            )
        case "remote_protocol_error":
            page = failure.detail.startswith("200 with ")
            answered = (
                f"{failure.detail}, as a login page or a proxy does"
                if page
                else f"what is not the protocol: {failure.detail}"
            )
            return errors.RemoteProtocolError(
                f"run {run!r}: {place.server} answered {answered}. {facts['tried']}, cursor {cursor}.",
                hint="Open the address in a browser, then iterate again.",
                **facts,
            )
        case "local_protocol_error":
            return errors.LocalProtocolError(
                f"run {run!r}: what would have to be sent cannot be sent: {failure.detail}. Cursor {cursor}.",
                hint="Check headers and token for characters that HTTP does not allow.",
                **facts,
            )
        case "commit_failed":
            where = f"at {place.at}" if place.at is not None else f"after {cursor}"
            return errors.CommitFailed(
                f"the journal {place.journal} could not be written {where} of run {run!r} ({failure.detail}). "
                "Nothing that is not on disk was shown.",
                hint=f"{_mended(failure.detail)}, then iterate again.",
                **facts,
            )
        case "lease_lost":
            return errors.LeaseLost(
                f"run {run!r} was taken over by another process ({failure.detail}); this one writes nothing more to "
                f"{place.journal}. Cursor {cursor}.",
                hint="Iterate again to follow what the other one writes, or stop the other one.",
                **facts,
            )
        case _:
            return errors.AttachError(
                f"{place.server} refused to let run {run!r} be followed ({_told(refusal)}: {failure.detail}). "
                f"The run is untouched, cursor {cursor}.",
                hint="No repetition helps as long as the server answers so.",
                **facts,
            )


def _rejected(failure: Failure, place: Place, refusal: Refusal, facts: errors.Facts) -> errors.ResumeRejected:
    run, cursor = place.run_id, place.cursor
    have = place.mark.sequence
    missing = None
    if failure.reason == "expired" and refusal.first_sequence is not None:
        missing = max(0, refusal.first_sequence - 1 - have)
    gap = Gap(run_id=run, reason=failure.reason or "hole", after=place.mark.cursor, missing=missing)
    go_on = 'Attach with on_gap="snapshot" to go on from the server\'s state, or "continue".'
    match failure.code:
        case "cursor_expired":
            kept = ""
            if refusal.first_sequence is not None and missing:
                kept = (
                    f": the server keeps events from {refusal.first_sequence} on; {have + 1} to "
                    f"{refusal.first_sequence - 1} ({missing} events) cannot be had"
                )
            return errors.CursorExpired(
                f"run {run!r} can no longer be replayed from {cursor}{kept}. The journal is unchanged.",
                gap=gap,
                hint=go_on,
                **facts,
            )
        case "epoch_changed":
            what = (
                f"the server now has {refusal.epoch}"
                if refusal.epoch
                else "the server's log has lost its tail and differs from it now"
                if failure.reason == "diverged"
                else "the server now has another"
            )
            held = "none of its events" if place.mark.epoch is None else f"epoch {place.mark.epoch} up to {have}"
            return errors.EpochChanged(
                f"the log of run {run!r} was replaced: the journal holds {held}, {what}; "
                "their numbers must not be mixed.",
                gap=gap,
                hint='Attach with on_gap="snapshot".',
                **facts,
            )
        case "cursor_refused":
            return errors.CursorRefused(
                f"{place.server} says that {cursor} is no cursor of run {run!r} ({_told(refusal)}). "
                "The journal is unchanged.",
                gap=gap,
                hint=go_on,
                **facts,
            )
        case _:
            told = "" if refusal.status is None else f" ({_told(refusal)})"
            return errors.GapUnfillable(
                f"run {run!r}: {place.server} does not send what comes after {cursor}, also when asked again{told}. "
                "The journal is unchanged.",
                gap=gap,
                hint=go_on,
                **facts,
            )


def _mended(detail: str) -> str:
    return "Free space" if "no space" in detail or "full" in detail else "Mend the disk"


def _told(refusal: Refusal) -> str:
    if refusal.status is None:
        return refusal.detail or "no answer"
    return f"{refusal.status} {refusal.code}" if refusal.code else str(refusal.status)


def of_fault(error: BaseException, journal: str) -> errors.ReattachError:
    """Return the error for what a store raised, or for a fault of ours; one of ours passes unchanged."""
    match error:
        case errors.ReattachError():
            return error
        case StoreTaken():
            return errors.StoreBusy(
                f"the journal {journal} is in use by {error}, and a JSONL journal is one process's at a time. Nothing was changed.",
                hint="Stop the other, or use a SQLite file, which several processes may share.",
            )
        case StoreLocked():
            return errors.StoreBusy(
                f"the journal {journal} was held by another process for too long ({error}). Nothing was changed.",
                hint="Try again, or stop what holds it.",
            )
        case StoreNewer():
            return errors.JournalDamaged(
                f"the journal {journal} is {error.detail}. It was left as it is.",
                hint="Use the version of reattach that wrote it, or another journal.",
            )
        case StoreForeign():
            return errors.UsageError(
                f"journal={journal!r} is {error.detail}. It was left as it is, and nothing was sent.",
                hint="Name another file.",
            )
        case StoreDamaged() if error.moved_to is None:
            return errors.JournalDamaged(
                f"the journal {journal} is {error.detail}. It was left as it is.",
                hint="Close everything that uses it and start again: a damaged journal is put aside then. Or name another file.",
            )
        case StoreDamaged():
            lost = len(error.lost)
            listed = f'; {lost} {"run is" if lost == 1 else "runs are"} listed as "repair"' if lost else ""
            return errors.JournalDamaged(
                f"the journal {journal} is {error.detail}. It was moved to {error.moved_to} and a new one begun{listed}.",
                hint=f"Attach {'them' if lost else 'its runs'} by id: the server replays. Keys used before are unknown now.",
            )
        case StoreConflict():
            return errors.AttachError(
                f"{error}. The journal {journal} was not changed.",
                hint="Look at the server which run is meant, then attach it by its id: both may be there.",
            )
        case StoreUnreachable():
            return errors.CommitFailed(
                f"the journal {journal} could not be reached ({error}). Nothing that is not on disk was shown.",
                hint="See that its server runs, that address, user and password are right, then go on.",
            )
        case StoreFailed():
            return errors.CommitFailed(
                f"the journal {journal} could not be written or read ({error}). Nothing that is not on disk was shown.",
                hint=f"{_mended(str(error))}, then go on.",
            )
        case _:
            return errors.ReattachError(
                f"following stopped by a fault of reattach itself ({type(error).__name__}: {error}). Nothing undurable was shown.",
                hint="Please report it; iterating again is safe.",
            )
