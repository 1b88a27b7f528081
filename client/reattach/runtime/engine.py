"""One client at work: one server, one journal, in one event loop. The faces call it; it never knows which face.

It owns the writer, the wire, the clock, the leases (`leases`) and the subscriptions (one per followed run, shared by all its
readers). What the faces need to wait for is awaited here; what they may read is in a `Feed`.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, TypeVar

import anyio
import anyio.abc
import anyio.to_thread

from reattach import errors
from reattach.core.messages import Effect, Input
from reattach.core.state import State
from reattach.core.subscription import step
from reattach.model import OnGap
from reattach.observe import Fact, Observer
from reattach.policy import Policy
from reattach.profiles.base import Profile
from reattach.runtime.apart import Apart, Turns
from reattach.runtime.calls import Calls
from reattach.runtime.clock import Clock, sleep
from reattach.runtime.failures import of_fault
from reattach.runtime.followed import Followed
from reattach.runtime.forks import generation
from reattach.runtime.leases import Leases
from reattach.runtime.loop import Inbox, Soon, apart, settled, wait_through
from reattach.runtime.turn import LIMIT, Turn
from reattach.runtime.wakes import Watch
from reattach.runtime.ways import Chosen
from reattach.runtime.writer import Writer
from reattach.stores.base import Store, StoreDamaged, StoreFailed
from reattach.transports.base import Wire

T = TypeVar("T")
Step = Callable[[State, Input], tuple[State, tuple[Effect, ...]]]

CARRY = 1.0
"""Seconds until an automatic mark is safe from power loss at the latest."""


class Engine:
    """A client at work. Made and used in one event loop; `store` is open already.

    Args:
        store: The journal.
        writer: Its one way in.
        wire: The network.
        profile: The vendor's dialect.
        chosen: The way events come.
        server: The address, normalised.
        headers: What every request carries; asked for at each attempt.
        policy: Patience and politeness.
        observer: Who is told facts.
        clock: Time and chance.
        soon: The way back into this loop.
        inbox: Work for a task of this loop from other threads; the writer's, too.
        step: The core; tests put mutants here.
        turn_limit: Seconds that a user's transaction may stay open.
        bare: With keep="cursor": the journal keeps places alone.
    """

    def __init__(
        self,
        *,
        store: Store,
        writer: Writer,
        wire: Wire,
        profile: Profile,
        chosen: Chosen,
        server: str,
        headers: Callable[[], Awaitable[dict[str, str | bytes]]],
        policy: Policy,
        observer: Observer | None,
        clock: Clock,
        soon: Soon,
        inbox: Inbox,
        step: Step = step,
        turn_limit: float = LIMIT,
        bare: bool = False,
    ) -> None:
        self.store = store
        self.writer = writer
        self._apart = Apart()
        self.turns: Turns = self._apart if store.transactions_apart else writer
        self.wire = wire
        self.profile = profile
        self.chosen = chosen
        self.server = server
        self.policy = policy
        self.clock = clock
        self.soon = soon
        self.inbox = inbox
        self.step = step
        self.calls = Calls(wire, profile, server, headers, policy, clock)
        self.turn_limit = turn_limit
        self.bare = bare
        self.pid = os.getpid()
        self._generation = generation()
        self.closed = False
        self._gone = anyio.Event()
        self._observer = observer
        self._tasks: anyio.abc.TaskGroup | None = None
        self._scopes: set[anyio.CancelScope] = set()
        self._callers: dict[anyio.CancelScope, anyio.Event] = {}
        self._followed: dict[int, Followed] = {}
        self._turns: dict[int, Turn] = {}
        self._doubted: set[str] = set()
        self.leases = Leases(self)

    # life ------------------------------------------------------------------------------------------------------------

    def start(self, tasks: anyio.abc.TaskGroup) -> None:
        """Begin to serve in this task group, which the face owns."""
        self._tasks = tasks
        self.spawn(self.inbox.run, self._fault)
        self.spawn(self.clock.run)
        self.spawn(self.leases.keep)
        self.spawn(self._carry_marks)
        Watch(self.clock, self._woke).start()

    async def close(self) -> None:
        """Stop following everything; commits settle, leases are given back, threads and sockets end. Runs go on. Twice is fine.

        Who waits for an answer or an event gets `Closed`; an open transaction is rolled back.
        """
        with anyio.CancelScope(shield=True):
            if self.closed:
                await self._gone.wait()
                return
            self.closed = True
            turns = list(self._turns.values())
            for turn in turns:
                turn.abandon()
            for followed in list(self._followed.values()):
                followed.stop()
            callers = list(self._callers.items())
            for scope, _ in callers:
                scope.cancel()
            for _, left in callers:
                await left.wait()
            for followed in list(self._followed.values()):
                await followed.wait_settled()
            for served in [turn.served for turn in turns if turn.served is not None]:
                with contextlib.suppress(Exception):  # told to whoever is in it
                    await settled(served, self.soon)
            await self.leases.give_all_back()
            for scope in list(self._scopes):
                scope.cancel()
            await self.wire.aclose()
            await anyio.to_thread.run_sync(self.writer.close)
            await anyio.to_thread.run_sync(self.store.close)
            self._gone.set()

    @property
    def undisturbed(self) -> bool:
        """Whether nothing stands in a reader's way: open, no transaction under way, no fork. `check_open` says what does."""
        return not self.closed and not self._turns and self._generation == generation()

    def check_open(self) -> None:
        """Refuse what this engine cannot do any more.

        Raises:
            UsageError: The process forked since; the parent has the threads and the sockets.
            Closed: The client was closed.
        """
        if self.pid != os.getpid():
            raise errors.UsageError(
                f"this client belongs to process {self.pid}; this is its fork {os.getpid()}.",
                hint="Make a new client on the same journal here.",
            )
        if self.closed:
            raise errors.Closed("the client is closed.", hint="Runs go on; make a new client on the same journal.")

    async def during(self, function: Callable[..., Awaitable[T]], *args: Any) -> T:
        """Do something for a caller who waits; `close` ends it with `Closed`, and what goes wrong has a name of ours.

        Raises:
            ReattachError: Nothing else, whatever the journal raises.
        """
        self.check_open()
        scope = anyio.CancelScope()
        left = self._callers[scope] = anyio.Event()
        try:
            with scope, self.named_faults():
                return await function(*args)
        finally:
            del self._callers[scope]
            left.set()
        self.check_open()
        raise AssertionError("only close() ends a caller's scope")

    @contextlib.contextmanager
    def named_faults(self) -> Iterator[None]:
        """Raise what goes wrong inside under a name of ours."""
        try:
            yield
        except errors.ReattachError:
            raise
        except Exception as error:
            raise of_fault(error, self.store.name) from error

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
                self._fault(error)
            finally:
                self._scopes.discard(scope)

        self._tasks.start_soon(task)

    async def to_the_end(self, function: Callable[..., Awaitable[Any]], *args: Any) -> None:
        """Do something in a task of its own and wait for it; who is cancelled meanwhile learns it when it is done."""

        async def work() -> None:
            try:
                await function(*args)
            except Exception as error:
                self._fault(error)

        await wait_through(apart(work))

    def _woke(self, seconds: float) -> None:
        """The machine slept: whoever follows looks at once."""
        self.tell("", "woke", f"{seconds:.0f} s passed that no timer saw")
        for followed in list(self._followed.values()):
            followed.woke()

    def new_doubt(self, sentence: str) -> bool:
        """Whether this was not said of this server before; it is now."""
        new = sentence not in self._doubted
        self._doubted.add(sentence)
        return new

    def _fault(self, error: Exception) -> None:
        """A fault of ours: say so to all who wait."""
        self.tell("", "failed", f"internal fault: {error!r}")
        for followed in list(self._followed.values()):
            followed.fail(error)

    @property
    def observed(self) -> bool:
        """Whether there is somebody to be told."""
        return self._observer is not None

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
        except KeyboardInterrupt:  # a person's comes in the main thread, and nowhere else
            if threading.current_thread() is threading.main_thread():
                raise
        except (
            BaseException
        ):  # SystemExit, a test's `pytest.fail`, a CancelledError: each would end a task of ours, or the loop
            return

    async def post(self, function: Callable[[], T]) -> T:
        """Do store work on the writer's thread."""
        return await settled(self.writer.post(function), self.soon)

    # following -------------------------------------------------------------------------------------------------------

    async def follow(self, run: int, on_gap: OnGap = "raise") -> Followed:
        """Return the followed run, with one reader more; `Followed.leave` takes it back."""
        while True:
            self.check_open()
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

    def following(self, run: int) -> Followed | None:
        """Return the run as it is followed now, if it is."""
        return self._followed.get(run)

    def left(self, followed: Followed) -> None:
        """A followed run is over."""
        if self._followed.get(followed.run) is followed:
            del self._followed[followed.run]

    async def forget(self, run: int) -> None:
        """The server knows no such run: a row that is nothing but its name goes, so that a mistyped id is not unfinished for ever.

        One of which anything is known stays: a server may have lost it, or be the wrong one, and that needs a person. Never
        raises: what cannot be removed now is listed, and goes the next time.
        """
        with contextlib.suppress(StoreFailed, StoreDamaged):
            await self.post(lambda: self.store.forget(run))

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
        if owner in self._turns or self._apart.here or threading.get_ident() == self.writer.ident:
            raise errors.UsageError(
                "a transaction is open here, and this call would wait for its end.",
                hint="Leave the transaction's block first.",
            )

    async def _carry_marks(self) -> None:
        while True:
            await sleep(self.clock, CARRY)
            with contextlib.suppress(Exception):  # the next commit, or the next second, tries again
                await self.post(self.store.carry)
