"""The types of the public surface, one by one. Checked by mypy and pyright, never run."""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from datetime import datetime
from typing import Any, Literal, assert_type

import reattach

Needs = Literal["nothing", "follow", "respond", "reconcile", "repair"]
Rows = list[tuple[Any, ...]]


def count(connection: Any) -> int:
    return int(connection.total_changes)


def blocking(client: reattach.Client, run: reattach.Run, tx: reattach.Transaction, event: reattach.Event) -> None:
    assert_type(client.start("x", key="k"), reattach.Run)
    assert_type(client.start(["x"], key="k", session_id="s", on_active="cancel", metadata={"a": "b"}), reattach.Run)
    assert_type(client.attach("run_1", after="tail", on_gap="snapshot"), reattach.Run)
    assert_type(client.attach(run), reattach.Run)
    assert_type(client.runs(), list[reattach.Run])
    assert_type(client.session_runs("ses_1"), list[reattach.Run])
    assert_type(client.operation("op_1"), reattach.Operation)
    assert_type(client.reconcile("k", run_id=None), None)
    assert_type(client.close(), None)
    assert_type(run.id, str)
    assert_type(run.key, str | None)
    assert_type(run.session_id, str | None)
    assert_type(run.created_at, datetime)
    assert_type(run.connection, reattach.Connection)
    assert_type(run.needs, Needs)
    assert_type(next(iter(run)), reattach.Event)
    assert_type(run.views(interval=0.1), Iterator[reattach.View])
    assert_type(run.view(), reattach.View)
    assert_type(run.status(), reattach.Status)
    assert_type(run.wait(timeout=1.0), reattach.Outcome)
    assert_type(run.result(timeout=None), Any)
    assert_type(run.ack(), None)
    assert_type(run.ack(event), None)
    assert_type(run.transaction(), AbstractContextManager[reattach.Transaction])
    assert_type(run.cancel(timeout=1.0), reattach.Outcome)
    assert_type(run.respond(*[each.approve() for each in run.wait().required_actions]), reattach.Run)
    assert_type(run.detach(), None)
    assert_type(tx.event, reattach.Event)
    assert_type(tx.execute("SELECT 1"), Rows)
    assert_type(tx.call(count), int)


async def awaited(
    client: reattach.AsyncClient, run: reattach.AsyncRun, tx: reattach.AsyncTransaction, event: reattach.Event
) -> None:
    assert_type(await client.start("x", key="k"), reattach.AsyncRun)
    assert_type(client.attach("run_1"), reattach.AsyncRun)
    assert_type(client.attach(run), reattach.AsyncRun)
    assert_type(await client.runs(unfinished=True), list[reattach.AsyncRun])
    assert_type(await client.session_runs("ses_1"), list[reattach.AsyncRun])
    assert_type(await client.operation("op_1"), reattach.Operation)
    assert_type(await client.reconcile("k", run_id="run_1"), None)
    assert_type(await client.close(), None)
    assert_type(run.id, str)
    assert_type(run.key, str | None)
    assert_type(run.needs, Needs)
    assert_type(run.created_at, datetime)
    assert_type(await anext(aiter(run)), reattach.Event)
    assert_type(run.views(), AsyncIterator[reattach.View])
    assert_type(await run.view(), reattach.View)
    assert_type(await run.status(), reattach.Status)
    assert_type(await run.wait(timeout=1.0), reattach.Outcome)
    assert_type(await run.result(), Any)
    assert_type(await run.ack(event), None)
    assert_type(run.transaction(), AbstractAsyncContextManager[reattach.AsyncTransaction])
    assert_type(await run.cancel(), reattach.Outcome)
    assert_type(await run.respond(), reattach.AsyncRun)
    assert_type(await run.detach(), None)
    assert_type(await tx.execute("SELECT 1", {"a": 1}), Rows)
    assert_type(await tx.call(count), int)


def nouns(
    event: reattach.Event,
    view: reattach.View,
    outcome: reattach.Outcome,
    gap: reattach.Gap,
    action: reattach.RequiredAction,
) -> None:
    assert_type(event.text, str)
    assert_type(event.sequence, int | None)
    assert_type(event.gap, reattach.Gap | None)
    assert_type(event.redelivered, bool)
    assert_type(view.messages, tuple[reattach.Message, ...])
    assert_type(view.required_actions, tuple[reattach.RequiredAction, ...])
    assert_type(outcome.problem, reattach.Problem | None)
    assert_type(outcome.operations, tuple[reattach.Operation, ...])
    assert_type(outcome.status.settled, bool)
    assert_type(gap.missing, int | None)
    assert_type(action.approve(), reattach.Answer)
    assert_type(action.answer({"any": "JSON"}), reattach.Answer)
    assert_type(action.thread, str | None)
    assert_type(action.resolution, str | None)
    assert_type(outcome.release, str | None)
    assert_type([each.external for each in outcome.operations], list[bool | None])


def errors(error: reattach.ReattachError, resume: reattach.ResumeRejected, ended: reattach.RunNotCompleted) -> None:
    assert_type(error.code, str)
    assert_type(error.run_id, str)
    assert_type(error.key, str | None)
    assert_type(error.cursor, str | None)
    assert_type(error.tried, str)
    assert_type(error.hint, str)
    assert_type(resume.gap, reattach.Gap)
    assert_type(ended.outcome, reattach.Outcome)


def observers(fact: reattach.Fact) -> None:
    assert_type(reattach.observe.to_logging(), Callable[[reattach.Fact], None])
    assert_type(fact.name, str)
