"""One client at work: one server, one journal, in one event loop. The faces call it; it never knows which face.

It owns the writer, the wire, the clock, the leases and the subscriptions (one per followed run, shared by all its readers). What
the faces need to wait for is awaited here; what they may read is in a `Feed`.
"""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import anyio
import anyio.abc

from reattach import errors
from reattach.core.messages import Effect, Input
from reattach.core.state import State
from reattach.core.subscription import step
from reattach.model import OnGap
from reattach.observe import Fact, Observer
from reattach.policy import Policy
from reattach.profiles.base import Profile
from reattach.runtime.calls import Calls
from reattach.runtime.clock import Clock, sleep
from reattach.runtime.followed import Followed
from reattach.runtime.loop import Soon, settled
from reattach.runtime.turn import Turn
from reattach.runtime.writer import Writer
from reattach.stores.base import Busy, Lease, Store
from reattach.stores.leases import current_holder
from reattach.transports.base import Wire

T = TypeVar("T")
Step = Callable[[State, Input], tuple[State, tuple[Effect, ...]]]

LEASE = 15.0
RENEW = 5.0
"""Seconds: a holder that is not seen for three renewals is replaced elsewhere; on its own host at once when it is dead."""
CARRY = 1.0
"""Seconds until an automatic mark is safe from power loss at the latest."""


class Engine:
    """A client at work. Made and used in one event loop; `store` is open already.

    Args:
        store: The journal.
        writer: Its one way in.
        wire: The network.
        profile: The vendor's dialect.
        server: The address, normalised.
        headers: What every request carries; asked for at each attempt.
        policy: Patience and politeness.
        observer: Who is told facts.
        clock: Time and chance.
        soon: The way back into this loop.
        step: The core; tests put mutants here.
    """

    def __init__(
        self,
        *,
        store: Store,
        writer: Writer,
        wire: Wire,
        profile: Profile,
        server: str,
        headers: Callable[[], Awaitable[dict[str, str | bytes]]],
        policy: Policy,
        observer: Observer | None,
        clock: Clock,
        soon: Soon,
        step: Step = step,
    ) -> None:
        self.store = store
        self.writer = writer
        self.wire = wire
        self.profile = profile
        self.server = server
        self.policy = policy
        self.clock = clock
        self.soon = soon
        self.step = step
        self.calls = Calls(wire, profile, server, headers, policy, clock)
        self.holder = current_holder(uuid.uuid4().hex[:12])
        self.closed = False
        self._observer = observer
        self._tasks: anyio.abc.TaskGroup | None = None
        self._scopes: set[anyio.CancelScope] = set()
        self._followed: dict[int, Followed] = {}
        self._turns: dict[int, Turn] = {}
        self._leases: dict[tuple[int, str], Lease] = {}

    # life ------------------------------------------------------------------------------------------------------------

    def start(self, tasks: anyio.abc.TaskGroup) -> None:
        """Begin to serve in this task group, which the face owns."""
        self._tasks = tasks
        self.spawn(self.clock.run)
        self.spawn(self._keep_leases)
        self.spawn(self._carry_marks)

    async def close(self) -> None:
        """Stop following everything; commits settle, leases are given back. Runs go on. Twice is fine."""
        if self.closed:
            return
        self.closed = True
        with anyio.CancelScope(shield=True):
            for followed in list(self._followed.values()):
                followed.stop()
            for followed in list(self._followed.values()):
                await followed.wait_settled()
            self._followed.clear()
            leases = list(self._leases.values())
            self._leases.clear()
            for lease in leases:
                await self.post(lambda lease=lease: self.store.release(lease))  # type: ignore[misc]  # bound now
            for scope in list(self._scopes):
                scope.cancel()
            await self.wire.aclose()

    def spawn(self, function: Callable[..., Awaitable[Any]], *args: Any) -> None:
        """Run a task of ours until it ends or the engine closes; a fault of ours in it is told to who waits, not swallowed.

        Each has a scope of its own: the face's task group also holds the user's code, which must never be cancelled by us.
        """
        assert self._tasks is not None
        scope = anyio.CancelScope()
        self._scopes.add(scope)

        async def task() -> None:
            try:
                with scope:
                    await function(*args)
            except Exception as error:
                self.tell("", "failed", f"internal fault: {error!r}")
                for followed in list(self._followed.values()):
                    followed.fail(error)
            finally:
                self._scopes.discard(scope)

        self._tasks.start_soon(task)

    def tell(
        self, run_id: str, name: str, detail: str = "", *, cursor: str | None = None, attempt: int = 0, count: int = 0
    ) -> None:
        """Tell the observer a fact. What it raises is dropped: a faulty hook must not lose an event."""
        if self._observer is None:
            return
        fact = Fact(
            name=name, run_id=run_id, at=self.clock.wall(), detail=detail, cursor=cursor, attempt=attempt, count=count
        )
        try:
            self._observer(fact)
        except Exception:
            return

    async def post(self, function: Callable[[], T]) -> T:
        """Do store work on the writer's thread."""
        return await settled(self.writer.post(function), self.soon)

    # following -------------------------------------------------------------------------------------------------------

    async def follow(self, run: int, on_gap: OnGap = "raise") -> Followed:
        """Return the followed run, with one reader more; `Followed.leave` takes it back."""
        self.check_open()
        while True:
            followed = self._followed.get(run)
            if followed is None:
                followed = Followed(self, run, on_gap)
                self._followed[run] = followed
                self.spawn(followed.run_to_the_end)
            if not followed.leaving:
                followed.readers += 1
                return followed
            # One journal, one writer: what the previous subscription has in flight settles first (model: "handover").
            await followed.wait_settled()

    def check_open(self) -> None:
        """Raise `Closed` once the client is."""
        if self.closed:
            raise errors.Closed("the client is closed.", hint="Runs go on; make a new Client on the same journal.")

    def left(self, followed: Followed) -> None:
        """A followed run is over."""
        if self._followed.get(followed.run) is followed:
            del self._followed[followed.run]

    # the user's transactions --------------------------------------------------------------------------------------

    def enter_turn(self, turn: Turn, owner: int) -> None:
        """A thread or task is inside a transaction; what would wait for the writer from there would wait for itself."""
        self._turns[owner] = turn

    def leave_turn(self, owner: int) -> None:
        """It left."""
        self._turns.pop(owner, None)

    def outside_a_turn(self, owner: int) -> None:
        """Refuse what would wait for itself.

        Raises:
            UsageError: This thread or task is inside a transaction.
        """
        if owner in self._turns:
            raise errors.UsageError(
                "a transaction is open here, and this call would wait for its end.",
                hint="Leave the transaction's block first.",
            )

    # leases ----------------------------------------------------------------------------------------------------------

    async def take(self, run: int, consumer: str) -> Lease | Busy:
        """Take a lease; it is renewed until it is given back."""
        lease = await self.post(lambda: self.store.lease(run, consumer, self.holder, LEASE))
        if isinstance(lease, Lease):
            self._leases[run, consumer] = lease
        return lease

    async def give_back(self, lease: Lease) -> None:
        """Give a lease back."""
        if self._leases.get((lease.run, lease.consumer)) == lease:
            del self._leases[lease.run, lease.consumer]
        await self.post(lambda: self.store.release(lease))

    def holds(self, lease: Lease) -> bool:
        """Whether a lease is still ours, as far as we know."""
        return self._leases.get((lease.run, lease.consumer)) == lease

    async def _keep_leases(self) -> None:
        while True:
            await sleep(self.clock, RENEW)
            held = list(self._leases.values())
            if not held:
                continue
            try:
                lost = await self.post(lambda held=held: self.store.renew(held, LEASE))  # type: ignore[misc]  # bound now
            except Exception:
                continue
            for lease in lost:
                if self._leases.pop((lease.run, lease.consumer), None) is None:
                    continue
                followed = self._followed.get(lease.run)
                if lease.consumer == "" and followed is not None:
                    followed.lost_lease()

    async def _carry_marks(self) -> None:
        while True:
            await sleep(self.clock, CARRY)
            try:
                await self.post(self.store.carry)
            except Exception:
                continue
