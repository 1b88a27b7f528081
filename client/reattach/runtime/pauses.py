"""Answering a pause: all that is pending, in one continuation, whose intent is on disk before the request leaves.

The answers of one pause are one request with one digest, so giving them again, in this process or the next, gives the same run. A
server takes one continuation of a pause; who comes second with other answers is told who was first, as far as the server says.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from reattach import errors
from reattach.core import pause
from reattach.core.intent import request_digest, request_text
from reattach.model import Answer, RequiredAction, Status
from reattach.runtime import jobs
from reattach.runtime.creating import create
from reattach.stores.base import Intent, RunRow
from reattach.stores.entry import outcome_of

if TYPE_CHECKING:
    from reattach.profiles.base import Reading
    from reattach.runtime.engine import Engine


async def respond(engine: Engine, row: RunRow, answers: Sequence[Answer], reading: Reading | None) -> RunRow:
    """Return the run that goes on from a paused one, created now or by the same answers before.

    Args:
        engine: The client at work.
        row: The paused run, with its id.
        answers: All answers.
        reading: What the server says of the run, where the journal does not hold its end.

    Raises:
        UsageError: The run is not paused, or an answer cannot be right. Nothing was sent.
        ActionsUnanswered: Some have no answer. Nothing was sent.
        ActionResolved: Somebody else answered, or the pause is over.
        ApprovalStale: What the approval was given for has changed.
        ReconnectExhausted: No answer; the intent is kept, the same answers go on.
        AmbiguousOutcome: They may have been taken and must not be repeated.
    """
    run_id = row.run_id or ""
    text = _body(engine, run_id, _actions(row, reading), answers)
    intent = Intent(engine.server, engine.profile.name, None, text, request_digest(text), run_id)
    first = await engine.post(lambda: _answered(engine, row))
    if first is not None and first.request_sha256 == intent.request_sha256:
        return first
    if first is not None and first.request_sha256 is not None:
        raise errors.ActionResolved(
            f"run {run_id!r} was answered before, otherwise: run {first.run_id!r} goes on from it. Nothing was sent.",
            run_id=run_id,
            hint=f"client.attach({first.run_id!r}) goes on with it.",
        )
    given, new = await engine.post(lambda: engine.store.intend(intent))
    try:
        made = given if given.run_id is not None else await create(engine, given, new=new)
    except errors.ActionResolved as error:
        raise await _resolved(engine, row, error) from error
    await engine.post(lambda: _drop_others(engine, row))
    return made


def _actions(row: RunRow, reading: Reading | None) -> tuple[RequiredAction, ...]:
    run_id = row.run_id or ""
    outcome = outcome_of(row.outcome, run_id) if row.outcome is not None else reading.outcome if reading else None
    if outcome is not None and outcome.status is Status.REQUIRES_ACTION:
        return outcome.required_actions
    is_now = outcome.status if outcome is not None else reading.status if reading is not None else Status.UNKNOWN
    raise errors.UsageError(
        f"run {run_id!r} waits for no answer: it is {is_now.value}. Nothing was sent.",
        run_id=run_id,
        key=row.key,
        hint="wait() tells when it does.",
    )


def _body(engine: Engine, run_id: str, actions: Sequence[RequiredAction], answers: Sequence[Answer]) -> str:
    """Return the continuation's body as JSON text."""
    given: Sequence[object] = answers  # whatever the annotations say
    odd = [each for each in given if not isinstance(each, Answer)]
    if odd:
        raise errors.UsageError(
            f"{odd[0]!r} is no answer. Nothing was sent.",
            run_id=run_id,
            hint="action.approve(), .reject(reason) and .answer(value) give one; pass several with a star.",
        )
    match pause.paired(actions, answers):
        case pause.Unfit(detail):
            raise errors.UsageError(f"run {run_id!r}: {detail}. Nothing was sent.", run_id=run_id)
        case pause.Unanswered(missing):
            named = ", ".join(f"{each.id!r} ({each.kind} of {each.tool})" for each in missing)
            count = "1 action" if len(actions) == 1 else f"{len(actions)} actions"
            raise errors.ActionsUnanswered(
                f"run {run_id!r} waits for {count}; {named} {'has' if len(missing) == 1 else 'have'} no answer. Nothing was sent.",
                run_id=run_id,
                hint="Answer all of outcome.required_actions in one respond().",
            )
        case pairs:
            body = engine.profile.continuation(run_id, pairs)
    if body is None:
        raise errors.UsageError(
            f"run {run_id!r}: answers cannot be sent with profile {engine.profile.name!r}. Nothing was sent.",
            run_id=run_id,
        )
    try:
        return request_text(body)
    except ValueError as error:
        raise errors.UsageError(f"run {run_id!r}: {error}. Nothing was sent.", run_id=run_id) from error


def _answered(engine: Engine, row: RunRow) -> RunRow | None:
    """Return the run that is known to go on from this one."""
    found = jobs.continuation(engine.store, row)
    return found if found is not None and found.run_id is not None else None


def _drop_others(engine: Engine, row: RunRow) -> None:
    """The pause has its one continuation: intents of other answers, which were never answered, can make none any more."""
    for each in engine.store.continuing(row.server, row.profile, row.run_id or ""):
        if each.run_id is None:
            engine.store.forget(each.run)


async def _resolved(engine: Engine, row: RunRow, error: errors.ActionResolved) -> errors.ActionResolved:
    """Note that the pause is over, and say which run goes on from it where the server tells."""
    run_id = row.run_id or ""
    await engine.post(lambda: engine.store.need(row.run, "resolved"))
    reading = await jobs.look(engine, run_id)
    if reading is None or reading.continued_by is None:
        return error
    other = await jobs.adopt(engine, run_id, reading.continued_by)
    return errors.ActionResolved(
        f"run {run_id!r} was answered by somebody else ({error.problem}): run {other.run_id!r} goes on from it. "
        "Your answers changed nothing.",
        run_id=run_id,
        problem=error.problem,
        hint=f"client.attach({other.run_id!r}) goes on with it.",
    )
