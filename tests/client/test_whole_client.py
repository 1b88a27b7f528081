"""The whole client as a state machine: whatever an application does with it, in whatever order, a simple model says what holds.

Core, runtime and a real journal (a SQLite file with its writer's thread, or one in memory) against a model server in virtual time.
`test_any_cuts.py` varies what becomes of connections under one loop; here the application's own operations vary: keys, consumers,
confirmations, transactions, pauses, cancels, pruning, closing, and the death of the process before or after any step of its
journal. The laws are in `whole/application.py`.

Seen to fail on each of these breakages of the client (`.ci/run slow` breaks it again each time): what comes again is not marked; a
loop that is entered again skips the event in hand; handing out confirms; a transaction that leaves its mark where it was; a create
repeated under another key; pruning that asks nobody; and in the core: no dedupe, an inclusive cursor, cursor before commit,
delivery before commit, a clean end of the stream taken for the end.
"""

from __future__ import annotations

import dataclasses
import tempfile
import uuid
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

from client.core.mutants import MUTANTS, Machine
from client.cuts.schedule import PAYLOADS
from client.whole.application import BILL, CONSUMERS, HAND, Application
from client.whole.reader import Reader
from reattach.core.subscription import step
from reattach.runtime import creating, outcomes
from reattach.runtime.consumption import Consumption
from reattach.runtime.turn import Turn
from reattach.testing import Beat, Leg, Trip
from reattach.testing.model_run import ModelRun

KEYS = st.sampled_from(("a", "b"))
SECONDS = st.sampled_from((0.0, 0.3, 2.0, 7.0, 40.0))
GAPS = st.sampled_from(("raise", "snapshot", "continue"))
ANY = st.integers(0, 11)
"""Which of those that are there."""
LEGS = st.lists(
    st.one_of(
        st.builds(
            Leg,
            cut=st.tuples(st.integers(0, 4), st.sampled_from((0, 0, 1, 9, 60))),
            how=st.sampled_from(("fin", "reset", "stall")),
        ),
        st.builds(Leg, again=st.integers(1, 4)),
        st.builds(Leg, refuse=st.sampled_from((503, 429)), retry_after=st.sampled_from((None, 1.0))),
        st.just(Leg(lost=True)),
        st.just(Leg(cut=(2, 0), closing="draining")),
    ),
    min_size=1,
    max_size=3,
)
TRIPS = st.sampled_from((Trip(lost="after"), Trip(lost="before"), Trip(refuse=503), Trip(delay=0.9), Trip(delay=None)))


class WholeClient(RuleBasedStateMachine):
    """An application, its server, its network and its disk."""

    found: ClassVar[list[str]] = []
    """Broken laws, of all histories."""

    sql: ClassVar[bool] = True
    core: ClassVar[Machine] = staticmethod(step)

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.count = 0
        self.app: Application

    @initialize(on_gap=GAPS)
    def begin(self, on_gap: Any) -> None:
        path = Path(self.folder.name) / "runs.db" if self.sql else None
        self.app = Application(path, on_gap, self.core)
        self.goes(lambda: self.app.start("a"))

    def goes(self, work: Callable[[], Any]) -> None:
        try:
            self.app.do(work)
        except TimeoutError:
            self.found.append("nothing hangs")
            raise
        self.found += self.app.broken
        assert not self.app.broken, self.app.broken[0]

    def happens(self, work: Callable[[], Any]) -> None:
        async def here() -> None:
            work()

        self.goes(here)

    # whom it concerns -------------------------------------------------------------------------------------------------

    def run_of(self, which: int) -> ModelRun | None:
        """One of the runs that the journal knows."""
        known = self.app.known()
        return known[which % len(known)] if known else None

    def reader_of(self, which: int, consumer: str) -> Reader | None:
        run = self.run_of(which)
        return None if run is None else self.app.reader(run.id, consumer)

    # the application --------------------------------------------------------------------------------------------------

    @rule(key=KEYS, trip=st.none() | TRIPS)
    def start(self, key: str, trip: Trip | None) -> None:
        if trip is not None:
            self.app.server.plan(creates=[trip])
        self.goes(lambda: self.app.start(key))

    @precondition(lambda self: self.app.started)
    @rule(which=ANY)
    def use_a_key_for_other_work(self, which: int) -> None:
        keys = sorted(self.app.used())
        if keys:
            self.goes(lambda: self.app.start_other(keys[which % len(keys)]))

    @rule(which=ANY, consumer=st.sampled_from(CONSUMERS), count=st.integers(1, 5), patience=SECONDS)
    def read(self, which: int, consumer: str, count: int, patience: float) -> None:
        reader = self.reader_of(which, consumer)
        if reader is not None and reader.pending is None:
            self.goes(lambda: self.app.read(reader, count, patience))

    @rule(which=ANY, consumer=st.sampled_from(CONSUMERS))
    def wait_for_the_next_event(self, which: int, consumer: str) -> None:
        """It may come in any later step."""
        reader = self.reader_of(which, consumer)
        if reader is not None and not (consumer == BILL and reader.in_hand is not None and not reader.again):
            self.happens(lambda: self.app.ask(reader))

    @rule(which=ANY, consumer=st.sampled_from(CONSUMERS))
    def cancel_the_reader(self, which: int, consumer: str) -> None:
        reader = self.reader_of(which, consumer)
        if reader is not None and reader.pending is not None:
            self.goes(lambda: self.app.stop(reader))

    @rule(which=ANY, consumer=st.sampled_from(CONSUMERS))
    def enter_the_loop_again(self, which: int, consumer: str) -> None:
        reader = self.reader_of(which, consumer)
        if reader is not None:
            self.goes(lambda: self.app.again(reader))

    @rule(which=ANY, consumer=st.sampled_from(CONSUMERS), done=st.booleans())
    def leave(self, which: int, consumer: str, done: bool) -> None:
        reader = self.reader_of(which, consumer)
        if reader is not None and reader.pending is None and not (done and consumer == BILL):
            self.goes(lambda: self.app.detach(reader, done=done))

    @rule(which=ANY, consumer=st.sampled_from(CONSUMERS[:2]), back=st.integers(0, 3))
    def acknowledge(self, which: int, consumer: str, back: int) -> None:
        reader = self.reader_of(which, consumer)
        if reader is None or reader.pending is not None or reader.in_hand is None:
            return
        event = reader.seen[-1 - min(back, len(reader.seen) - 1)] if consumer == HAND and back else None
        if event is None or event.position > reader.began:
            self.goes(lambda: self.app.ack(reader, event))

    @rule(which=ANY, how=st.sampled_from(("commits", "raises", "raises", "dies")), patience=SECONDS)
    def handle_in_a_transaction(self, which: int, how: Any, patience: float) -> None:
        reader = self.reader_of(which, BILL)
        if reader is None or reader.pending is not None:
            return

        async def handled() -> None:
            if reader.in_hand is None or reader.again:
                self.app.ask(reader)
                assert reader.pending is not None
                if not await self.app.within(reader.pending, patience):
                    reader.cancel()
                    await self.app.within(reader.pending, 0.0)
                await self.app._harvest(reader)
            if reader.in_hand is not None and not reader.again:
                await self.app.bill(reader, how)

        self.goes(handled)

    @rule(which=ANY, trip=st.none() | TRIPS)
    def pause_and_respond(self, which: int, trip: Trip | None) -> None:
        run = self.run_of(which)
        if run is None:
            return
        if not run.settled:
            self.happens(lambda: self.app.server.perform(run, Beat(do="pause", data=[{"id": f"act_{run.last}"}])))
        if run.status == "requires_action":
            if trip is not None and run.continued_by is None:
                self.app.server.plan(creates=[trip])
            self.goes(lambda: self.app.respond(run.id))

    @rule(which=ANY)
    def cancel_the_run(self, which: int) -> None:
        run = self.run_of(which)
        if run is not None and which % 3 == 0:
            self.goes(lambda: self.app.cancel(run.id))

    @rule(which=ANY)
    def look(self, which: int) -> None:
        run = self.run_of(which)
        if run is not None:
            self.goes(lambda: self.app.look(run.id))

    @rule(which=ANY)
    def ask_for_the_status(self, which: int) -> None:
        run = self.run_of(which)
        if run is not None:
            self.goes(lambda: self.app.status(run.id))

    @rule()
    def list_what_is_unfinished(self) -> None:
        self.goes(self.app.unfinished)

    @rule()
    def prune(self) -> None:
        self.goes(self.app.prune)

    @rule(on_gap=GAPS, waiting=st.booleans())
    def close(self, on_gap: Any, waiting: bool) -> None:
        self.goes(lambda: self.app.close(on_gap, waiting=waiting))

    # the process and its disk -----------------------------------------------------------------------------------------

    @rule(on_gap=GAPS)
    def crash(self, on_gap: Any) -> None:
        self.goes(lambda: self.app.crash(on_gap))

    @rule(steps=st.integers(1, 9), after=st.booleans())
    def crash_in_the_middle_of_something(self, steps: int, after: bool) -> None:
        self.app.door.light(steps, after=after)

    @rule(at=st.integers(1, 3))
    def fill_the_disk(self, at: int) -> None:
        self.app.door.fail("commit", at=at)
        self.app.full = True

    # the server and the network ---------------------------------------------------------------------------------------

    @rule(which=ANY, count=st.integers(1, 6), payload=st.sampled_from(PAYLOADS))
    def work_goes_on(self, which: int, count: int, payload: Any) -> None:
        run = self.run_of(which)
        if run is not None and not run.settled:
            beat = Beat(type=payload[0], data=payload[1])
            self.happens(lambda: [self.app.server.perform(run, beat) for _ in range(count)])

    @rule(which=ANY)
    def work_ends(self, which: int) -> None:
        run = self.run_of(which)
        if run is not None and not run.settled and which % 2:
            self.happens(lambda: self.app.server.perform(run, Beat(do="end", data="ok")))

    @rule(which=ANY, count=st.integers(1, 5))
    def events_expire(self, which: int, count: int) -> None:
        run = self.run_of(which)
        if run is not None:
            self.happens(lambda: self.app.server.perform(run, Beat(do="trim", count=count)))

    @rule(which=ANY, count=st.integers(0, 3), tell=st.booleans())
    def a_new_log_begins(self, which: int, count: int, tell: bool) -> None:
        run = self.run_of(which)
        if run is not None and not run.settled and which % 2:
            self.happens(lambda: self.app.server.perform(run, Beat(do="rotate", count=count, tell=tell)))

    @rule(which=ANY, how=st.sampled_from(("fin", "reset", "stall")))
    def the_connection_breaks(self, which: int, how: Any) -> None:
        run = self.run_of(which)
        if run is not None:
            self.happens(lambda: self.app.server.cut(run, how))

    @rule(legs=LEGS)
    def the_next_connections_break(self, legs: list[Leg]) -> None:
        self.app.server.plan(legs=legs)

    @rule(trip=TRIPS)
    def the_next_status_is_late_or_lost(self, trip: Trip) -> None:
        self.app.server.plan(statuses=[trip])
        self.app.unanswered += 1

    @rule(seconds=st.sampled_from((0.5, 6.0, 60.0)))
    def time_passes(self, seconds: float) -> None:
        self.goes(lambda: self.app.pass_time(seconds))

    # the end ----------------------------------------------------------------------------------------------------------

    def teardown(self) -> None:
        try:
            if hasattr(self, "app"):
                try:
                    if not self.app.broken:
                        self.goes(self.app.everything_ends)
                finally:
                    self.app.close_for_good()
        finally:
            self.folder.cleanup()


class InMemory(WholeClient):
    """The same on a journal in memory, where nothing needs a thread."""

    sql = False


def played(
    machine: type[WholeClient], *, examples: int, steps: int = 40, phases: tuple[Phase, ...] = tuple(Phase)
) -> None:
    """Play so many histories; the same ones every time."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # a process that is dead leaves its file open
        run_state_machine_as_test(
            machine,
            settings=settings(
                max_examples=examples,
                stateful_step_count=steps,
                phases=phases,
                deadline=None,
                derandomize=True,
                database=None,
                suppress_health_check=list(HealthCheck),
            ),
        )


@pytest.mark.parametrize("machine", [WholeClient, InMemory])
def test_whatever_an_application_does_the_laws_hold(machine: type[WholeClient]) -> None:
    """On a SQLite file and in memory."""
    played(machine, examples=12 if machine.sql else 30, steps=30)


@pytest.mark.slow
@pytest.mark.parametrize("machine", [WholeClient, InMemory])
def test_the_same_in_longer_histories(machine: type[WholeClient]) -> None:
    """As many as fit into some minutes."""
    played(machine, examples=150, steps=60)


# breakages ------------------------------------------------------------------------------------------------------------


def _unmarked(consumption: Any) -> Any:
    """What comes again looks new."""
    take = consumption.take

    def taken(self: Any) -> Any:
        event = take(self)
        return event and dataclasses.replace(event, redelivered=False)

    return taken


def _whole_log_again(_: Any) -> Any:
    """A loop that is entered again goes on where it was, as if everything had been confirmed."""
    return lambda self: None


def _confirmed_when_handed(consumption: Any) -> Any:
    """The mark moves when an event is handed out."""
    take = consumption.take

    def taken(self: Any) -> Any:
        event = take(self)
        if event is not None and self.lease is not None:
            self._store.note(self.lease, event.position)
        return event

    return taken


def _row_without_mark(turn: Any) -> Any:
    """A transaction commits the rows and leaves the mark where it was."""
    return lambda self: self._do(lambda transaction: transaction.commit(self._expected()), last=True)


def _another_key(_: Any) -> Any:
    """Every create is sent under a key of its own."""
    return lambda row: uuid.uuid4().hex


def _pruned_anyhow(_: Any) -> Any:
    """Whoever is not done with a run is not asked."""
    return lambda row, applied, *, answered: "nothing"


BROKEN: dict[str, tuple[Any, str, Callable[[Any], Any]]] = {
    "what comes again is not marked": (Consumption, "take", _unmarked),
    "a loop that is entered again skips the event in hand": (Consumption, "rewind", _whole_log_again),
    "handing out confirms": (Consumption, "take", _confirmed_when_handed),
    "a transaction without its mark": (Turn, "commit", _row_without_mark),
    "a create is repeated under another key": (creating, "key_of", _another_key),
    "pruning asks nobody": (outcomes, "needs_of", _pruned_anyhow),
}


def found_out(machine: type[WholeClient]) -> str:
    """Return the first law that was broken."""
    machine.found = []
    # Whatever ends it: the law itself, or Hypothesis' complaint that the broken client does not do the same twice.
    with pytest.raises(BaseException):  # noqa: PT011, B017
        played(machine, examples=2_000, phases=(Phase.generate,))  # it ends with the first
    return machine.found[0]


@pytest.mark.slow
@pytest.mark.parametrize("name", BROKEN)
def test_a_client_that_is_broken_is_found_out(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The runtime's."""
    where, what, breakage = BROKEN[name]
    replaced = breakage(where)
    monkeypatch.setattr(where, what, replaced)
    if what == "take":
        monkeypatch.setattr(Consumption, "swift", lambda self, key: None)
    print(f"{name}: {found_out(type('Broken', (WholeClient,), {}))}")


@pytest.mark.slow
@pytest.mark.parametrize("name", MUTANTS)
def test_a_core_that_is_broken_is_found_out(name: str) -> None:
    """The core's; "backoff reset on connect" is about pace alone, which `test_any_cuts.py` judges."""
    if name == "backoff reset on connect":
        return

    class Broken(InMemory):
        core = staticmethod(MUTANTS[name])

    print(f"{name}: {found_out(Broken)}")
