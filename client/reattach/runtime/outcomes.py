"""Outcomes and views as they are handed out: the journal's fold put beside what the end said. Blocks on the journal."""

from __future__ import annotations

import dataclasses

from reattach import errors
from reattach.core.fold import Fold
from reattach.model import Event, Needs, Outcome, Status
from reattach.profiles.base import Profile
from reattach.stores.base import RunRow, Store
from reattach.stores.entry import event_of

READ = 1_000


def catch_up(fold: Fold, store: Store, run: int, profile: Profile, until: int | None = None) -> None:
    """Fold what the journal has above the fold's position, up to `until`."""
    while until is None or fold.position < until:
        entries = store.read(run, fold.position, READ)
        if not entries:
            return
        for entry in entries:
            if until is not None and entry.position > until:
                return
            add(fold, event_of(entry.element, fold.run_id, entry.position), profile)


def add(fold: Fold, event: Event, profile: Profile) -> None:
    """Fold one event."""
    fold.add(event, profile.changes(event))


def complete(outcome: Outcome, fold: Fold) -> Outcome:
    """Return the outcome with the text, the gaps and the tools' names that the journal holds."""
    view = fold.view()
    tools = {call.operation_id: call.name for call in view.tools if call.operation_id}
    return dataclasses.replace(
        outcome,
        text=view.text,
        gaps=view.gaps,
        operations=tuple(
            dataclasses.replace(each, tool=each.tool or tools.get(each.id)) for each in outcome.operations
        ),
    )


def result_of(outcome: Outcome, key: str | None, cursor: str | None) -> object:
    """Return a completed run's result.

    Raises:
        RunFailed, RunCancelled, ActionRequired: It ended otherwise.
    """
    run = outcome.run_id
    facts: errors.Facts = {"run_id": run, "key": key, "cursor": cursor}
    match outcome.status:
        case Status.COMPLETED:
            return outcome.result
        case Status.REQUIRES_ACTION:
            waiting = ", ".join(f"{each.id!r} ({each.kind} of {each.tool})" for each in outcome.required_actions)
            raise errors.ActionRequired(
                f"run {run!r} waits for {_counted(len(outcome.required_actions), 'answer')}: {waiting}.",
                outcome=outcome,
                hint="wait() gives outcome.required_actions; this version cannot send answers, so give them at the server.",
                **facts,
            )
        case Status.CANCELLED:
            doubt = sum(each.status == "unknown" for each in outcome.operations)
            raise errors.RunCancelled(
                f"run {run!r} was cancelled; what it did is not undone by that: "
                f"{_counted(len(outcome.operations), 'effect')}, {doubt} in doubt.",
                outcome=outcome,
                hint="wait() gives outcome.operations.",
                **facts,
            )
        case _:
            problem = outcome.problem
            said = f"{problem.code}: {problem.message}" if problem else outcome.status.value
            raise errors.RunFailed(
                f"run {run!r} failed ({said}).", outcome=outcome, hint="wait() gives outcome.problem.", **facts
            )


def needs_of(row: RunRow, applied: int) -> Needs:
    """Return what a run needs from its application.

    Args:
        row: The run.
        applied: What its consumer confirmed.
    """
    if row.needs == "reconcile":
        return "reconcile"
    if row.needs == "repair" and row.committed.position == 0:  # once it is attached the server replays: an ordinary run
        return "repair"
    if row.outcome is None:
        return "follow"
    if row.status == Status.REQUIRES_ACTION:
        return "respond"
    if applied >= row.committed.position or (row.handed_out and applied == 0):
        return "nothing"
    return "follow"


def _counted(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
