"""An engine for the blocking face: it lives in the portal's thread, is opened on first use, and holds no reference to its Client.

So that a Client which nobody closed can be collected: it is then closed from here, without waiting (the garbage collector may
run in any thread, also in the portal's own), and at the end of the process what is still open is closed and waited for.
"""

from __future__ import annotations

import asyncio
import atexit
import concurrent.futures
import contextlib
import os
import threading
import warnings
import weakref
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from reattach import errors
from reattach.runtime.engine import Engine
from reattach.runtime.portal import portal
from reattach.runtime.setup import Setup, serving

T = TypeVar("T")
AT_EXIT = 5.0
"""Seconds that the end of a process waits for a client that nobody closed. What is on disk is there already."""


class Host:
    """The engine of one client.

    Args:
        setup: The client's arguments.
    """

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self._pid = os.getpid()
        self._closed = False
        self._lock = threading.Lock()
        self._engine: Engine | None = None
        self._damage: errors.JournalDamaged | None = None
        self._stop = asyncio.Event()
        self._opening: concurrent.futures.Future[None] | None = None
        self._serving: concurrent.futures.Future[None] | None = None

    def engine(self) -> Engine:
        """Return the running engine, opened if this is the first use.

        Raises:
            UsageError: The process forked since, or this thread is inside a transaction.
            Closed: The client was closed.
            JournalDamaged: Told once; the next use goes on with the new journal.
            StoreError: The journal cannot be opened; the next use tries again.
        """
        engine = self._engine
        if engine is None or self._damage is not None:
            engine = self._opened()
        engine.check_open()
        engine.outside_a_turn(threading.get_ident())
        return engine

    def _opened(self) -> Engine:
        if self._pid != os.getpid():
            raise errors.UsageError(
                f"this client belongs to process {self._pid}; this is its fork {os.getpid()}.",
                hint="Make a new client on the same journal here.",
            )
        portal().refuse_here()
        with self._lock:
            if self._closed:
                raise errors.Closed("the client is closed.", hint="Runs go on; make a new client on the same journal.")
            opening = self._opening
            if opening is None:
                opening = self._opening = concurrent.futures.Future()
                self._serving = portal().submit(self._serve, opening)
        try:
            opening.result()
        except errors.ReattachError:
            with self._lock:
                if self._opening is opening:
                    self._opening = None
            raise
        with self._lock:
            damage, self._damage = self._damage, None
            engine = self._engine
        if damage is not None:
            raise damage
        assert engine is not None
        return engine

    async def _serve(self, opening: concurrent.futures.Future[None]) -> None:
        try:
            async with serving(self.setup) as (engine, damage):
                self._engine, self._damage = engine, damage
                opening.set_result(None)
                await self._stop.wait()
        except BaseException as error:
            if opening.done():
                raise
            opening.set_exception(error)

    def call(self, function: Callable[..., Awaitable[T]], *args: Any) -> T:
        """Do something in the engine's loop and wait for it; `close` ends it with `Closed`."""
        done: T = portal().call(self.engine().during, function, *args)
        return done

    @property
    def alive(self) -> bool:
        """Whether this process may still call it."""
        return not self._closed and self._pid == os.getpid()

    def close(self) -> None:
        """Close, in any state, twice, from any thread; returns when everything has ended.

        Called by an observer, in the portal's own thread, it begins to close and returns: it would wait for itself.
        """
        served = self.stop()
        if served is not None and not portal().here:
            served.result()

    def stop(self) -> concurrent.futures.Future[None] | None:
        """Begin to close; return what to wait for, None if nothing runs here."""
        if self._pid != os.getpid():
            return None  # the parent's; nothing of it lives here
        with self._lock:
            self._closed = True
            served = self._serving
        if served is not None:
            portal().soon(self._stop.set)
        return served


_hosts: weakref.WeakSet[Host] = weakref.WeakSet()


def watch(client: object, host: Host) -> weakref.finalize[..., Any]:
    """Close the host when its client is collected, or at the end of the process; `detach` the result once it is closed."""
    _hosts.add(host)
    finalizer = weakref.finalize(client, _forgotten, host)
    finalizer.atexit = False
    return finalizer


def _forgotten(host: Host) -> None:
    if host.alive:
        host.stop()
        _warn()


def _at_exit() -> None:
    for host in list(_hosts):
        if host.alive and (served := host.stop()) is not None:
            with contextlib.suppress(Exception):
                served.result(AT_EXIT)
            _warn()


def _warn() -> None:
    warnings.warn(
        "a reattach.Client was not closed; write `with reattach.Client(…) as client:`", ResourceWarning, stacklevel=3
    )


atexit.register(_at_exit)
