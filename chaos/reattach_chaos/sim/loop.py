"""`SimLoop`: an event loop for one simulated case, in virtual time: a queue of what is ready, a heap of alarms, and nothing else.

No selector, no pipe, no signals, no threads: asyncio's own loop asks the system for news at every turn, and here there is none.
When nothing is ready, time is at the next alarm. All order is that of the calls, so that the same case runs the same way in every
process; sets of tasks, whose order asyncio leaves to their addresses, have that of their making here.

A loop that turns for ever without time going on is ended with `Spins`; one that waits for nothing with `Stuck`.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context
from functools import partial
from typing import Any, TypeVar, cast

from reattach.testing.seams import Alarm

_library: Any
try:
    from sniffio import thread_local as _library
except ImportError:  # then anyio does not ask it
    _library = None

T = TypeVar("T")
MOST_TURNS = 20_000
"""Turns of the loop at one instant; a case's busiest instants have some hundreds."""


class Spins(Exception):
    """Tasks wake each other, and time never goes on."""


class Stuck(Exception):
    """The case waits, and no alarm is set that would end it."""


class SimTask(asyncio.Task[Any]):
    """A task that is found in a set at the place of its making, and is cheap to name."""

    def __init__(self, coro: Coroutine[Any, Any, Any], *, order: int, **more: Any) -> None:
        self._order = order
        super().__init__(coro, **more)

    def __hash__(self) -> int:
        """Return its number in its loop."""
        return self._order

    def __repr__(self) -> str:
        """Return its name; asyncio's own words cost a hundred microseconds, and anyio asks for them at every cancellation."""
        return f"<{self.get_name()}>"


class _Ready:
    """A call that is due now, unless it is cancelled."""

    __slots__ = ("args", "call", "context")

    def __init__(self, call: Callable[..., object] | None, args: tuple[Any, ...], context: Context | None) -> None:
        self.call = call
        self.args = args
        self.context = context

    def cancel(self) -> None:
        """Do not call."""
        self.call = None

    def cancelled(self) -> bool:
        """Whether it was."""
        return self.call is None


class SimLoop:
    """The loop of one case, as tasks, futures and anyio use one; its time begins at 0."""

    def __init__(self) -> None:
        self.now = 0.0
        """Seconds."""
        self.tasks: list[SimTask] = []
        """All that were made, in order."""
        self.faults: list[BaseException | str] = []
        """What no task took notice of."""
        self._ready: deque[_Ready] = deque()
        self._alarms: list[tuple[float, int, Alarm]] = []
        self._order = itertools.count()
        self._running = False

    # the case's side --------------------------------------------------------------------------------------------------

    def run(self, main: Coroutine[Any, Any, T]) -> T:
        """Run until this is done and nothing is ready any more; what waits then is left in `tasks`.

        Raises:
            RuntimeError: Another loop runs in this thread.
            Spins: See there.
            Stuck: See there.
        """
        if asyncio._get_running_loop() is not None:
            main.close()
            raise RuntimeError("a simulation has an event loop of its own: call it from outside of yours")
        before = None if _library is None else _library.name
        asyncio._set_running_loop(cast(asyncio.AbstractEventLoop, self))
        if _library is not None:
            _library.name = "asyncio"  # what sniffio finds out anew at each of anyio's calls
        self._running = True
        try:
            task: asyncio.Task[T] = self.create_task(main)
            self._serve(task)
            return task.result()
        finally:
            self._running = False
            if _library is not None:
                _library.name = before
            asyncio._set_running_loop(None)

    def left(self) -> list[SimTask]:
        """Return the tasks that were never done."""
        return [task for task in self.tasks if not task.done()]

    def alarm(self, when: float, callback: Callable[[], Any]) -> Alarm:
        """Call back once the time has come."""
        alarm = Alarm(when, callback)
        heapq.heappush(self._alarms, (when, next(self._order), alarm))
        return alarm

    def oversleep(self, seconds: float) -> None:
        """Let time go on while nothing rings; what has become due rings afterwards, late."""
        self.now += seconds

    def _serve(self, main: asyncio.Task[Any]) -> None:
        ready, alarms = self._ready, self._alarms
        turns = 0
        while True:
            while ready:
                for _ in range(len(ready)):
                    due = ready.popleft()
                    call = due.call
                    if call is None:
                        continue
                    if due.context is None:
                        call(*due.args)
                    else:
                        due.context.run(call, *due.args)
                if alarms and alarms[0][0] <= self.now:
                    self._ring()
                turns += 1
                if turns > MOST_TURNS:
                    raise Spins(f"{turns} turns at {self.now:g} s")
            if main.done():
                return
            while alarms and alarms[0][2].callback is None:
                heapq.heappop(alarms)
            if not alarms:
                raise Stuck(f"at {self.now:g} s")
            if alarms[0][0] > self.now:
                self.now = alarms[0][0]
                turns = 0
            self._ring()

    def _ring(self) -> None:
        alarms = self._alarms
        while alarms and alarms[0][0] <= self.now:
            callback = heapq.heappop(alarms)[2].callback
            if callback is not None:
                callback()

    # asyncio's side ---------------------------------------------------------------------------------------------------

    def time(self) -> float:
        """See asyncio."""
        return self.now

    def call_soon(self, callback: Callable[..., object], *args: Any, context: Context | None = None) -> Any:
        """See asyncio."""
        due = _Ready(callback, args, context)
        self._ready.append(due)
        return due

    call_soon_threadsafe = call_soon  # there is one thread

    def call_later(self, delay: float, callback: Callable[..., object], *args: Any, context: Any = None) -> Any:
        """See asyncio."""
        return self.alarm(self.now + delay, partial(callback, *args))

    def call_at(self, when: float, callback: Callable[..., object], *args: Any, context: Any = None) -> Any:
        """See asyncio."""
        return self.alarm(when, partial(callback, *args))

    def create_future(self) -> asyncio.Future[Any]:
        """See asyncio."""
        return asyncio.Future(loop=cast(asyncio.AbstractEventLoop, self))

    def create_task(self, coro: Any, *, name: Any = None, context: Context | None = None, **more: Any) -> Any:
        """See asyncio."""
        task = SimTask(coro, order=len(self.tasks), loop=self, name=name or "case", context=context, **more)
        self.tasks.append(task)
        return task

    def get_task_factory(self) -> Any:
        """Return None: tasks are ours."""
        return None

    def is_running(self) -> bool:
        """See asyncio."""
        return self._running

    def is_closed(self) -> bool:
        """Whether it is closed; there is nothing to close."""
        return False

    def get_debug(self) -> bool:
        """Return False."""
        return False

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Keep what nobody took notice of."""
        self.faults.append(context.get("exception") or str(context.get("message")))
