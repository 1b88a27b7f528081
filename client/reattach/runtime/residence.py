"""Where an engine lives in a caller's event loop: in a task of its own, apart from whoever entered the client.

No scope and no task group of ours lies around the user's code. So an AsyncClient may be entered in one task and left in another
(as fixtures and lifespans of frameworks do), several may be left in any order, and a cancellation of the user's is never taken
for one of ours. Closing happens in that task too: whoever is cancelled while waiting for it cannot leave it half done.
"""

from __future__ import annotations

import anyio

from reattach import errors
from reattach.runtime.engine import Engine
from reattach.runtime.loop import apart, wait_through
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
        self._over: anyio.Event | None = None
        self._made: tuple[Engine, errors.JournalDamaged | None] | None = None
        self._fault: Exception | None = None

    async def open(self) -> tuple[Engine, errors.JournalDamaged | None]:
        """Open everything; return the engine, and what to tell of its journal once. Cancelled, nothing stays open.

        Raises:
            ReattachError: It cannot be opened.
        """
        self._over = apart(self._live)
        try:
            await self._ready.wait()
        except BaseException:
            self._leave.set()
            await wait_through(self._over)
            raise
        if self._made is None:
            await self.close()
            raise errors.Closed(
                "the event loop ended while the client was opened.", hint="Open it in a loop that stays."
            )
        return self._made

    async def close(self) -> None:
        """Close everything and return when it is over; who is cancelled meanwhile learns it then. Twice is fine.

        Raises:
            Exception: What went wrong in opening or closing, once.
        """
        if self._over is None:
            return
        self._leave.set()
        await wait_through(self._over)
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
