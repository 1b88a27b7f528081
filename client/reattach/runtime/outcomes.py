"""Outcomes and views as they are handed out: the journal's fold put beside what the end said. Blocks on the journal."""

from __future__ import annotations

import dataclasses

from reattach import errors
from reattach.core.fold import Fold
from reattach.core.pause import pending
from reattach.model import Event, Needs, Operation, Outcome, Status, ToolCall, View
from reattach.profiles.base import Profile
from reattach.stores.base import RunRow, Store
from reattach.stores.entry import event_of, outcome_of

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
    """Return the outcome with what the journal holds besides: text, gaps, the release, the effects and their tools' names."""
    view = fold.view()
    return dataclasses.replace(
        outcome,
        text=view.text,
        gaps=view.gaps,
        operations=_inventory(outcome, view),
        release=outcome.release or fold.release,
    )


def _inventory(outcome: Outcome, view: View) -> tuple[Operation, ...]:
    """Return the effects: the server's own list where it gave one, else what the calls of tools show."""
    calls = {call.operation_id: call for call in view.tools if call.operation_id}
    told = [
        dataclasses.replace(each, tool=each.tool or (calls[each.id].name if each.id in calls else None))
        for each in outcome.operations
    ]
    if told:
        return tuple(told)
    return tuple(
        # A tool that answered with an error may have done its work nevertheless: only its authority knows.
        Operation(
            id=operation,
            tool=call.name or None,
            status="committed" if call.complete and not failed(call) else "unknown",
            run_id=outcome.run_id,
        )
        for operation, call in calls.items()
    )


def failed(call: ToolCall) -> bool:
    """Whether a call of a tool was answered with an error."""
    return isinstance(call.result, dict) and set(call.result) == {"error"}


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
                hint="wait() gives outcome.required_actions; respond() takes the answers, all in one call.",
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


def confirmed(store: Store, run: int, consumer: str = "main") -> int | None:
    """Return up to where a run is applied, None if nobody ever confirmed an event of it.

    "main" speaks for all consumers of the run, any other for itself.
    """
    marks = store.consumers(run)
    if not any(marks.values()):
        return None
    return min(marks.values()) if consumer == "main" else marks.get(consumer, 0)


def needs_in(store: Store, row: RunRow, consumer: str = "main") -> Needs:
    """Return what a run needs from its application, as the journal has it. Blocks on the journal."""
    answered = row.status == Status.REQUIRES_ACTION and bool(
        store.continuing(row.server, row.profile, row.run_id or "")
    )
    return needs_of(row, confirmed(store, row.run, consumer), answered=answered)


def needs_of(row: RunRow, applied: int | None, *, answered: bool) -> Needs:
    """Return what a run needs from its application.

    Args:
        row: The run.
        applied: What was confirmed, see `confirmed`.
        answered: Whether the journal knows a run that continues it, or the intent of one.
    """
    if row.needs == "reconcile":
        return "reconcile"
    if row.needs == "repair" and row.committed.position == 0:  # once it is attached the server replays: an ordinary run
        return "repair"
    if row.outcome is None:
        return "follow"
    if row.status == Status.REQUIRES_ACTION and not answered and row.needs != "resolved" and _waits(row):
        return "respond"
    if applied is None:
        return "nothing" if row.handed_out or row.highest == 0 else "follow"
    return "nothing" if applied >= row.highest else "follow"


def _waits(row: RunRow) -> bool:
    """Whether a paused run's end, as the journal has it, names an action without a resolution (or none at all)."""
    actions = outcome_of(row.outcome or "", row.run_id or "").required_actions
    return not actions or pending(actions)


def _counted(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
