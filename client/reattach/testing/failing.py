"""`FailingStore`: a journal that fails or lags on demand, for tests of what an application does then.

Deterministic: it fails at the call that it was told, by number, and a call that lags waits for the test to open a gate, never for
a time. It decides nothing else; all that is kept is kept by the store inside.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from reattach.core.messages import Mark
from reattach.stores.base import (
    Busy,
    Entry,
    Holder,
    Intent,
    Lease,
    Refusal,
    RunRow,
    Store,
    StoreFailed,
    Transaction,
    Write,
)

T = TypeVar("T")


class Gate:
    """Where a lagging call waits. `reached` is set when it has come; `open()` lets it go on, and all later ones pass.

    Args:
        limit: Seconds after which a call that nobody lets go on fails, so that a wrong test ends.
    """

    def __init__(self, limit: float = 30.0) -> None:
        self.reached = threading.Event()
        self._opened = threading.Event()
        self._limit = limit

    def open(self) -> None:
        """Let the waiting call go on."""
        self._opened.set()

    def wait(self) -> None:
        """Wait here until `open`; called by the store.

        Raises:
            TimeoutError: Nobody opened the gate in time.
        """
        self.reached.set()
        if not self._opened.wait(self._limit):
            raise TimeoutError(f"nobody opened the gate for {self._limit:g} s")


@dataclass(slots=True)
class _Fault:
    first: int
    last: float
    error: Callable[[], Exception] | None
    gate: Gate | None


class FailingStore:
    """A store around another, which fails or lags when it is told.

    ```python
    store = FailingStore(MemoryStore())
    store.fail("commit", at=2)                  # the second commit from now on finds the disk full; then all is well
    store.fail("commit", times=None)            # every commit from now on does, until heal()
    gate = store.lag("commit")                  # the next commit waits ...
    assert gate.reached.wait(10)                # ... the test sees it there, looks around ...
    gate.open()                                 # ... and lets it go on
    client = reattach.Client(url, store)
    ```

    A failing call does not reach the store inside, so it changes nothing, as the law demands. Threads may use it as they may use
    the store inside.

    Args:
        inner: The store that keeps.
    """

    def __init__(self, inner: Store) -> None:
        self.inner = inner
        self.calls: Counter[str] = Counter()
        """How often each method was called, failures included."""
        self._faults: dict[str, list[_Fault]] = {}
        self._lock = threading.Lock()

    def fail(
        self,
        method: str,
        error: Exception | Callable[[], Exception] | None = None,
        *,
        at: int = 1,
        times: int | None = 1,
    ) -> None:
        """Make calls of a method fail.

        Args:
            method: The name of a method of `Store`, such as "commit".
            error: What is raised, or what makes it; default: StoreFailed, no space left on device.
            at: The first call to fail, counted from now; 1 is the next one.
            times: How many fail, one after the other; None: all, until `heal`.
        """
        made = error if error is not None else StoreFailed("no space left on device")
        self._plan(method, at, times, (lambda: made) if isinstance(made, Exception) else made, None)

    def lag(self, method: str, *, at: int = 1, times: int | None = 1, limit: float = 30.0) -> Gate:
        """Make calls of a method wait at a gate before they are done. See `fail` for `at` and `times`, `Gate` for `limit`."""
        gate = Gate(limit)
        self._plan(method, at, times, None, gate)
        return gate

    def heal(self, method: str | None = None) -> None:
        """Plan no more faults of a method, or of any; calls that wait at a gate go on waiting."""
        with self._lock:
            for name in [method] if method is not None else list(self._faults):
                self._faults.pop(name, None)

    def _plan(
        self, method: str, at: int, times: int | None, error: Callable[[], Exception] | None, gate: Gate | None
    ) -> None:
        if method.startswith("_") or not callable(getattr(Store, method, None)):
            raise ValueError(f"{method!r} is no method of a store")
        if at < 1 or (times is not None and times < 1):
            raise ValueError("at and times begin at 1")
        with self._lock:
            first = self.calls[method] + at
            last = float("inf") if times is None else first + times - 1
            self._faults.setdefault(method, []).append(_Fault(first, last, error, gate))

    def _do(self, method: str, work: Callable[[], T]) -> T:
        with self._lock:
            self.calls[method] += 1
            number = self.calls[method]
            due = [fault for fault in self._faults.get(method, ()) if fault.first <= number <= fault.last]
        for fault in due:
            if fault.gate is not None:
                fault.gate.wait()
            if fault.error is not None:
                raise fault.error()
        return work()

    # the seam, method by method -----------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """See `Store.name`."""
        return self.inner.name

    @property
    def shared(self) -> bool:
        """See `Store.shared`."""
        return self.inner.shared

    @property
    def transactions_apart(self) -> bool:
        """See `Store.transactions_apart`."""
        return self.inner.transactions_apart

    def open(self) -> None:
        """See `Store.open`."""
        self._do("open", self.inner.open)

    def close(self) -> None:
        """See `Store.close`."""
        self._do("close", self.inner.close)

    def intend(self, intent: Intent) -> tuple[RunRow, bool]:
        """See `Store.intend`."""
        return self._do("intend", lambda: self.inner.intend(intent))

    def created(self, run: int, *, run_id: str, session_id: str | None, status: str) -> RunRow:
        """See `Store.created`."""
        return self._do("created", lambda: self.inner.created(run, run_id=run_id, session_id=session_id, status=status))

    def forget(self, run: int) -> None:
        """See `Store.forget`."""
        self._do("forget", lambda: self.inner.forget(run))

    def adopt(self, server: str, profile: str, run_id: str, *, continues: str | None = None) -> RunRow:
        """See `Store.adopt`."""
        return self._do("adopt", lambda: self.inner.adopt(server, profile, run_id, continues=continues))

    def row(self, run: int) -> RunRow:
        """See `Store.row`."""
        return self._do("row", lambda: self.inner.row(run))

    def find(self, server: str, profile: str, *, key: str | None = None, run_id: str | None = None) -> RunRow | None:
        """See `Store.find`."""
        return self._do("find", lambda: self.inner.find(server, profile, key=key, run_id=run_id))

    def continuing(self, server: str, profile: str, run_id: str) -> list[RunRow]:
        """See `Store.continuing`."""
        return self._do("continuing", lambda: self.inner.continuing(server, profile, run_id))

    def rows(self, server: str | None = None, profile: str | None = None) -> list[RunRow]:
        """See `Store.rows`."""
        return self._do("rows", lambda: self.inner.rows(server, profile))

    def hand_out(self, run: int) -> None:
        """See `Store.hand_out`."""
        self._do("hand_out", lambda: self.inner.hand_out(run))

    def need(self, run: int, word: str) -> None:
        """See `Store.need`."""
        self._do("need", lambda: self.inner.need(run, word))

    def commit(self, writes: Sequence[Write]) -> list[Refusal | None]:
        """See `Store.commit`."""
        return self._do("commit", lambda: self.inner.commit(writes))

    def read(self, run: int, after: int, limit: int) -> list[Entry]:
        """See `Store.read`."""
        return self._do("read", lambda: self.inner.read(run, after, limit))

    def newest(self, run: int, limit: int) -> list[Entry]:
        """See `Store.newest`."""
        return self._do("newest", lambda: self.inner.newest(run, limit))

    def rewind(self, lease: Lease, mark: Mark) -> RunRow:
        """See `Store.rewind`."""
        return self._do("rewind", lambda: self.inner.rewind(lease, mark))

    def prune(self, run: int, upto: int) -> bool:
        """See `Store.prune`."""
        return self._do("prune", lambda: self.inner.prune(run, upto))

    def compact(self) -> bool:
        """See `Store.compact`."""
        return self._do("compact", self.inner.compact)

    def consumers(self, run: int) -> dict[str, int]:
        """See `Store.consumers`."""
        return self._do("consumers", lambda: self.inner.consumers(run))

    def applied(self, run: int, consumer: str) -> int:
        """See `Store.applied`."""
        return self._do("applied", lambda: self.inner.applied(run, consumer))

    def note(self, lease: Lease, position: int) -> None:
        """See `Store.note`."""
        self._do("note", lambda: self.inner.note(lease, position))

    def carry(self) -> None:
        """See `Store.carry`."""
        self._do("carry", self.inner.carry)

    def mark(self, lease: Lease, position: int) -> None:
        """See `Store.mark`."""
        self._do("mark", lambda: self.inner.mark(lease, position))

    def lease(self, run: int, consumer: str, holder: Holder, seconds: float) -> Lease | Busy:
        """See `Store.lease`."""
        return self._do("lease", lambda: self.inner.lease(run, consumer, holder, seconds))

    def renew(self, leases: Sequence[Lease], seconds: float) -> list[Lease]:
        """See `Store.renew`."""
        return self._do("renew", lambda: self.inner.renew(leases, seconds))

    def release(self, lease: Lease) -> None:
        """See `Store.release`."""
        self._do("release", lambda: self.inner.release(lease))

    def holder(self, run: int, consumer: str) -> Busy | None:
        """See `Store.holder`."""
        return self._do("holder", lambda: self.inner.holder(run, consumer))

    def begin(self, lease: Lease, *, expected: int) -> Transaction:
        """See `Store.begin`."""
        return self._do("begin", lambda: self.inner.begin(lease, expected=expected))

    def changed(self) -> int:
        """See `Store.changed`."""
        return self._do("changed", self.inner.changed)
