"""One process's door to the simulated disk: what becomes durable is written down here, and here processes die and disks fail.

A kill at "received" comes just before the commit of the event, one at "committed" just after it, one at "applied" with the mark;
"delivered" and "acknowledged" are the application's. A store fails that very commit at "received", else the next one.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from reattach.testing import Disk
from reattach.testing.seams import StoreFailed, StoreLocked
from reattach_chaos.history import Applied, Committed, Died, Store
from reattach_chaos.schedules.fault import STORE_REASONS, Fault
from reattach_chaos.schedules.place import Place
from reattach_chaos.schedules.settings import setting
from reattach_chaos.sim.journal import Process, gone
from reattach_chaos.sim.plans import Plan, Plans
from reattach_chaos.sim.scribe import Scribe

MOST_LOOKS = 100
"""Reads in a row that find nothing; a client looks once to see that nothing is there, and then waits to be told."""


class Door(Process):
    """A store of one process.

    Args:
        disk: What outlives it.
        plans: The planned faults.
        scribe: Who writes down.
        number: Gives the number of a run in the session by its id.
        shown: (run id, position) → the id of the event that was shown there; None: a gap.
        killed: Called when the process is killed.
        spins: Called when the process reads again and again where nothing is, and would for ever.
    """

    def __init__(
        self,
        disk: Disk,
        plans: Plans,
        scribe: Scribe,
        *,
        number: Callable[[str | None], int],
        shown: dict[tuple[str, int], str | None],
        killed: Callable[[], None],
        spins: Callable[[], None],
    ) -> None:
        super().__init__(disk)
        self.second: Plan | None = None
        """A second client that is to come."""
        self._plans = plans
        self._scribe = scribe
        self._number = number
        self._shown = shown
        self._killed = killed
        self._spins = spins
        self._looks = 0
        self._armed: list[Plan] = []

    def kill(self, plan: Plan, run_id: str | None) -> None:
        """Be killed by plan."""
        self._plans.fire(plan, run=run_id)
        self._scribe.write(Died)
        self.die()
        self._killed()

    def meet(self, place: Place, run_id: str, event: int) -> None:
        """Do what is planned at an instant of the client's own."""
        if not self.alive:
            return
        for plan in self._plans.due(place, self._number(run_id), event):
            match plan.planned.fault:
                case Fault.KILL:
                    self.kill(plan, run_id)
                    return
                case Fault.SECOND_CLIENT:
                    self.second = plan
                case _:
                    self._armed.append(plan)

    def lags(self) -> Iterator[float]:
        """Yield the seconds that each group of writes takes."""
        while True:
            late = next((plan for plan in self._armed if _lag(plan)), None)
            if late is None:
                yield 0.0
                continue
            self._armed.remove(late)
            self._plans.fire(late)
            self._scribe.write(Store, did="lagged")
            yield _lag(late)

    # the seam, where something is seen or done ------------------------------------------------------------------------

    def commit(self, writes: Sequence[Any]) -> list[Any]:
        """See `Store.commit`."""
        if not self.alive:
            raise gone()
        told = [(self.journal.row(each.run).run_id or "", each.mark) for each in writes if each.mark != each.prev]
        for run_id, mark in told:
            self.meet(Place.RECEIVED, run_id, mark.sequence)
        full = next((plan for plan in self._armed if not _lag(plan)), None)
        if full is not None and self.alive:
            self._armed.remove(full)
            self._plans.fire(full)
            word = setting(full.planned, "reason")
            self._scribe.write(Store, did="failed", reason=STORE_REASONS[word])
            raise (StoreLocked if word == "locked" else StoreFailed)(STORE_REASONS[word])
        if not self.alive:
            raise gone()
        refusals = self.journal.commit(writes)
        if all(each is None for each in refusals):
            for run_id, mark in told:
                if mark.cursor is not None:
                    self._scribe.write(Committed, run=run_id, id=mark.cursor)
                self.meet(Place.COMMITTED, run_id, mark.sequence)
        return refusals

    def read(self, run: int, after: int, limit: int) -> list[Any]:
        """See `Store.read`."""
        if not self.alive:
            raise gone()
        found = self.journal.read(run, after, limit)
        self._looks = 0 if found else self._looks + 1
        if self._looks > MOST_LOOKS:
            self._looks = 0
            self._spins()
        return found

    def note(self, lease: Any, position: int) -> None:
        """See `Store.note`."""
        if self.alive:
            self.journal.note(lease, position)
            self._applied(lease, position)

    def mark(self, lease: Any, position: int) -> None:
        """See `Store.mark`."""
        if not self.alive:
            raise gone()
        self.journal.mark(lease, position)
        self._applied(lease, position)

    def _applied(self, lease: Any, position: int) -> None:
        if not position:
            return
        run_id = self.journal.row(lease.run).run_id or ""
        event = self._shown.get((run_id, position))
        if event is not None:
            self._scribe.write(Applied, run=run_id, id=event)
            self.meet(Place.APPLIED, run_id, position)


def _lag(plan: Plan) -> float:
    return float(setting(plan.planned, "lag_ms")) / 1000.0
