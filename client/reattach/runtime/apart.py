"""Where users' transactions run on a journal that gives each a session of its own: a thread each, beside the writer.

So that a slow one holds up neither commits nor the renewal of leases, which another host would otherwise take.
"""

from __future__ import annotations

import concurrent.futures
import threading
from collections.abc import Callable
from typing import Protocol, TypeVar

T = TypeVar("T")


class Turns(Protocol):
    """Where a transaction's statements are run: the writer, or `Apart`."""

    def post(self, function: Callable[[], T]) -> concurrent.futures.Future[T]:
        """Run it, from any thread."""
        ...


class Apart:
    """Threads for transactions; each ends with its transaction."""

    def __init__(self) -> None:
        self._inside: set[int] = set()

    @property
    def here(self) -> bool:
        """Whether this is the thread of a transaction."""
        return threading.get_ident() in self._inside

    def post(self, function: Callable[[], T]) -> concurrent.futures.Future[T]:
        """Run a whole transaction."""
        future: concurrent.futures.Future[T] = concurrent.futures.Future()

        def run() -> None:
            own = threading.get_ident()
            self._inside.add(own)
            try:
                result = function()
            except BaseException as error:
                future.set_exception(error)
            else:
                future.set_result(result)
            finally:
                self._inside.discard(own)

        threading.Thread(target=run, name="reattach-transaction", daemon=True).start()
        return future
