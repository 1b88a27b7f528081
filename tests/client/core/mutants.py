"""Wrong machines, on purpose: each is one classic mistake, with the signature of `subscription.step`.

A property test or a search earns its place by telling each of them from the real one. `MUTANTS` names them; a row left out of the
table is `row_left_out(name)`. No global is patched, so they are safe beside the real machine and in threads.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any

from reattach.core import messages as m
from reattach.core import rows_net, rows_stream
from reattach.core.admission import Verdict, admit
from reattach.core.backoff import Backoff
from reattach.core.messages import UNSTATED, Arrival, Mark
from reattach.core.moves import finish
from reattach.core.polling import implication
from reattach.core.state import State
from reattach.core.subscription import TABLE, step
from reattach.core.table import Act, Table
from reattach.model import Outcome, Status

Effects = tuple[m.Effect, ...]
Machine = Callable[[State, m.Input], tuple[State, Effects]]


def rebuilt(act: Act, **names: Any) -> Act:
    """Return a copy of a row's function that sees other things under some of its global names."""
    assert isinstance(act, FunctionType)
    return FunctionType(act.__code__, {**act.__globals__, **names}, act.__name__, act.__defaults__, act.__closure__)


def with_act(name: str, act: Act, table: Table = TABLE) -> Table:
    """Return the table with another function in the rows of this name."""
    return Table(row._replace(act=act) if row.name == name else row for row in table.rows)


def on_table(table: Table) -> Machine:
    def machine(state: State, given: m.Input) -> tuple[State, Effects]:
        return step(state, given, table)

    return machine


def row_left_out(name: str) -> Machine:
    """The machine without one row of its table."""
    return on_table(TABLE.without(name))


def _every_event_is_next(arrival: Arrival, admitted: Mark, known: Any, *, contiguous: bool) -> Verdict:
    verdict = admit(arrival, admitted, known, contiguous=contiguous)
    return Verdict.NEXT if verdict is Verdict.DUPLICATE else verdict


def _the_last_event_is_next(arrival: Arrival, admitted: Mark, known: Any, *, contiguous: bool) -> Verdict:
    same = arrival.sequence is not None and arrival.sequence == admitted.sequence
    return Verdict.NEXT if same else admit(arrival, admitted, known, contiguous=contiguous)


no_dedupe = on_table(with_act("received", rebuilt(rows_stream.received, admit=_every_event_is_next)))
"""What was admitted before is admitted again."""

inclusive_cursor = on_table(with_act("received", rebuilt(rows_stream.received, admit=_the_last_event_is_next)))
"""The boundary is taken as "this one" instead of "after this one": the event at the cursor is admitted again."""


def cursor_before_commit(state: State, given: m.Input) -> tuple[State, Effects]:
    """The cursor is made durable in a commit of its own, before the events."""
    after, effects = step(state, given)
    split: list[m.Effect] = []
    for effect in effects:
        if isinstance(effect, m.Commit):
            split.append(m.Commit(effect.prev, (), effect.mark))
            effect = m.Commit(effect.mark, effect.batch, effect.mark)
            after = after._replace(flying=after.flying + 1)
        split.append(effect)
    return after, tuple(split)


def deliver_before_commit(state: State, given: m.Input) -> tuple[State, Effects]:
    """Events are shown when they are handed to the journal, not when they are in it."""
    after, effects = step(state, given)
    shown = [m.Deliver(effect.mark.position) for effect in effects if isinstance(effect, m.Commit)]
    return after, (*effects, *shown)


def backoff_reset_on_connect(state: State, given: m.Input) -> tuple[State, Effects]:
    """A connection that was opened counts as progress."""
    after, effects = step(state, given)
    if isinstance(given, m.Opened):
        after = after._replace(backoff=Backoff(hint=after.backoff.hint), loops=0)
    return after, effects


def _ended_as_completed(s: State, given: m.Ended, fx: list[m.Effect]) -> State:
    fx.append(m.Close())
    return finish(s, fx, outcome=Outcome(run_id="", status=Status.COMPLETED))


end_of_stream_is_the_end = on_table(with_act("ended", _ended_as_completed))
"""A clean end of the body is taken for the end of the run."""

MUTANTS: dict[str, Machine] = {
    "no dedupe": no_dedupe,
    "inclusive cursor": inclusive_cursor,
    "cursor before commit": cursor_before_commit,
    "deliver before commit": deliver_before_commit,
    "backoff reset on connect": backoff_reset_on_connect,
    "end of stream taken for the end": end_of_stream_is_the_end,
}
"""The named mutations of the core that the property tests must kill."""


# rules dropped, for the exploration alone ------------------------------------------------------------------------------


def without_attaching_rows() -> Machine:
    """Lost, Ended and Refused are known while live only."""
    kinds = (m.Lost, m.Ended, m.Refused)
    return on_table(
        Table(row._replace(modes=row.modes - {"attaching"}) if row.on in kinds else row for row in TABLE.rows)
    )


def without_timer_rows() -> Machine:
    return on_table(TABLE.without("connect_elapsed").without("idle_elapsed"))


def without_resync_rows() -> Machine:
    return on_table(Table(row for row in TABLE.rows if row.modes != frozenset({"resyncing"})))


def epochs_not_compared(read: m.StatusRead, admitted: Mark, committed: Mark) -> Any:
    return implication(read._replace(epoch=None), admitted, committed)


def without_epochs() -> Machine:
    """A status is judged by numbers alone."""
    table = with_act("status_settled", rebuilt(rows_net.status_settled, implication=epochs_not_compared))
    return on_table(table.without("status_of_another_epoch"))


def admitted_is_enough(read: m.StatusRead, admitted: Mark, committed: Mark) -> Any:
    return implication(read, admitted, admitted)


def _status_settled_at_admitted(s: State, given: m.StatusRead, fx: list[m.Effect]) -> State | None:
    after = rebuilt(rows_net.status_settled, implication=admitted_is_enough)(s._replace(flying=0), given, fx)
    if after is None:
        return None
    # Without the commit of the outcome, which would wait for what is in flight by itself.
    fx.pop()
    return finish(after, fx, outcome=given.outcome)


def without_committed() -> Machine:
    """A settled status is compared with what is admitted, not with what is durable."""
    return on_table(with_act("status_settled", _status_settled_at_admitted))


def without_eras(state: State, given: m.Input) -> tuple[State, Effects]:
    """Answers asked for before the last boundary are believed."""
    if isinstance(given, m.StatusRead | m.StatusFailed | m.SnapshotRead | m.SnapshotFailed):
        given = given._replace(era=state.era)
    return step(state, given)


def without_predecessors(state: State, given: m.Input) -> tuple[State, Effects]:
    """Nobody says or compares the id of the event before."""
    if isinstance(given, m.Opened):
        given = given._replace(cursor_id=UNSTATED)
    elif isinstance(given, m.Received):
        given = m.Received(tuple(each._replace(prev_id=UNSTATED) for each in given.arrivals))
    return step(state, given)


def without_holes(state: State, given: m.Input) -> tuple[State, Effects]:
    """A hole is a loss, every time."""
    return step(state._replace(hole=-1), given)


def without_draining(state: State, given: m.Input) -> tuple[State, Effects]:
    """A boundary is asked for and adopted while commits are in flight."""
    after, effects = step(state, given)
    if after.mode == "resyncing" and state.mode not in ("resyncing", "done") and after.flying:
        return after, (*effects, m.ReadSnapshot(after.era))
    if isinstance(given, m.SnapshotRead) and state.mode == "resyncing" and state.flying and not state.gapping:
        after, effects = step(state._replace(flying=0), given)
        return after._replace(flying=state.flying + after.flying), effects
    return after, effects
