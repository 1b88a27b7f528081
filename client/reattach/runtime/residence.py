"""Where an engine lives in a caller's event loop: in a task of its own, apart from whoever entered the client.

No scope and no task group of ours lies around the user's code. So an AsyncClient may be entered in one task and left in another
(as fixtures and lifespans of frameworks do), several may be left in any order, and a cancellation of the user's is never taken
for one of ours. Closing happens in that task too: whoever is cancelled while waiting for it cannot leave it half done.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import anyio

from reattach import errors
from reattach.runtime.engine import Engine
from reattach.runtime.loop import wait_through
from reattach.runtime.setup import Setup, serving


class Residence:
    """One engine at home in the loop that runs now.

    Args:
        setup: The client's arguments.
    """

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._ready = anyio.Event()
        self._leave = anyio.Event()
        self._over = anyio.Event()
        self._made: tuple[Engine, errors.JournalDamaged | None] | None = None
        self._fault: BaseException | None = None
        self._task: asyncio.Task[None] | None = None

    async def open(self) -> tuple[Engine, errors.JournalDamaged | None]:
        """Open everything; return the engine, and what to tell of its journal once. Cancelled, nothing stays open.

        Raises:
            ReattachError: It cannot be opened.
        """
        self._task = _in_a_task_of_its_own(self._live)
        try:
            await self._ready.wait()
        except BaseException:
            self._leave.set()
            await wait_through(self._over)
            raise
        if self._made is None:
            await wait_through(self._over)
            raise self._fault if self._fault is not None else errors.Closed("the event loop ends.")
        return self._made

    async def close(self) -> None:
        """Close everything and return when it is over; who is cancelled meanwhile learns it then. Twice is fine.

        Raises:
            Exception: What went wrong while closing.
        """
        self._leave.set()
        await wait_through(self._over)
        if self._task is not None and not self._task.done():
            await asyncio.sleep(0)  # its last turn, so that it is gone when we return
        fault, self._fault = self._fault, None
        if fault is not None:
            raise fault

    async def _live(self) -> None:
        try:
            async with serving(self._setup) as self._made:
                self._ready.set()
                await self._leave.wait()
        except Exception as error:
            self._fault = error
        finally:
            self._ready.set()
            self._over.set()


def _in_a_task_of_its_own(function: Callable[[], Coroutine[Any, Any, None]]) -> asyncio.Task[None] | None:
    """Begin the function in a task that belongs to the loop; return the task where the loop would not keep it alive."""
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        import trio  # only where trio runs already

        trio.lowlevel.spawn_system_task(function)
        return None
    return loop.create_task(function(), name="reattach")
