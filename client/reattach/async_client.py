"""The asynchronous face: AsyncClient, for asyncio and trio; its runs are in `async_run.py`.

The same names as `client.py`, awaited where disk or network is touched. The engine lives in the caller's loop, in a task of its
own: no scope of ours lies around the user's code, so the client may be entered in one task and left in another.
"""

from __future__ import annotations

import ssl
import weakref
from collections.abc import Awaitable, Callable, Mapping, Sequence
from os import PathLike
from types import TracebackType
from typing import Any, Literal

import anyio

from reattach import errors
from reattach.async_run import AsyncRun
from reattach.model import OnGap, Operation
from reattach.observe import Observer
from reattach.policy import Policy
from reattach.profiles.base import Profile
from reattach.runtime import authority, listing, pruning, reconciling
from reattach.runtime.engine import Engine
from reattach.runtime.residence import Residence
from reattach.runtime.setup import Seams, TransportName, check
from reattach.stores.base import Store
from reattach.transports.base import AsyncHTTPClient, Wire


class AsyncClient:
    """One server and one journal, in the caller's event loop. Use it as `async with`.

    Args are those of `reattach.Client`, and also:

    Args:
        url: The server's address.
        journal: What remembers, see `Client`.
        token: The bearer token, or a function (also `async def`) that returns one; asked for at every attempt.
        profile: The vendor's dialect.
        transport: How events come.
        on_gap: What to do where events cannot be had.
        keep: What the journal keeps of an event: all of it, or with "cursor" only its place.
        policy: Patience and politeness.
        headers: Sent with every request.
        ssl_context: TLS settings.
        proxy: A proxy's address.
        http_client: Your own httpx.AsyncClient, used for everything and never closed by us; httpx2's will do as well. A
            transport of yours goes into one.
        observer: Called with a frozen Fact for everything that happens.

    Raises:
        UsageError: An argument cannot be right. Nothing was opened.
    """

    def __init__(
        self,
        url: str,
        journal: str | PathLike[str] | Store,
        *,
        token: str | Callable[[], str | Awaitable[str]] | None = None,
        profile: str | Profile = "native",
        transport: TransportName | Wire = "auto",
        on_gap: OnGap = "raise",
        keep: Literal["events", "cursor"] = "events",
        policy: Policy = Policy(),
        headers: Mapping[str, str] | None = None,
        ssl_context: ssl.SSLContext | None = None,
        proxy: str | None = None,
        http_client: AsyncHTTPClient | None = None,
        observer: Observer | None = None,
        _seams: Seams | None = None,
    ) -> None:
        self._setup = check(
            url,
            journal,
            token=token,
            profile=profile,
            transport=transport,
            on_gap=on_gap,
            keep=keep,
            policy=policy,
            headers=headers,
            ssl_context=ssl_context,
            proxy=proxy,
            observer=observer,
            http_client=http_client,
            seams=_seams,
        )
        self._residence: Residence | None = None
        self._engine: Engine | None = None
        self._damage: errors.JournalDamaged | None = None
        self._runs: weakref.WeakSet[AsyncRun] = weakref.WeakSet()

    async def __aenter__(self) -> AsyncClient:
        if self._residence is not None:
            raise errors.UsageError("this AsyncClient was entered already.", hint="Make a new one.")
        self._residence = Residence(self._setup)
        self._engine, self._damage = await self._residence.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            for run in list(self._runs):
                run._confirm_in_hand_here()
        await self.close()

    async def start(
        self,
        input: str | Mapping[str, Any] | Sequence[Any],
        *,
        key: str,
        session_id: str | None = None,
        on_active: Literal["reject", "cancel"] = "reject",
        metadata: Mapping[str, str] | None = None,
    ) -> AsyncRun:
        """Start the work of this key, or attach to it if it was started before; see `Client.start`."""
        request, digest = listing.request(input, key, session_id, on_active, metadata)
        engine = self._ready()
        row, needs = await engine.during(listing.start, engine, key, request, digest)
        return self._made(AsyncRun(self, row, row.run_id or "", on_gap=self._setup.on_gap, needs=needs))

    def attach(
        self,
        run: str | AsyncRun,
        *,
        consumer: str = "main",
        after: str | None = None,
        ack: Literal["auto", "manual"] = "auto",
        on_gap: OnGap | None = None,
    ) -> AsyncRun:
        """Return a handle for a run that exists; no I/O, so it is not awaited. See `Client.attach`."""
        row = None
        if isinstance(run, AsyncRun):
            row, run = run._known(self), run.id
        listing.attachable(run, row, consumer, after, ack, on_gap)
        return self._made(
            AsyncRun(
                self,
                row,
                run,
                after=after,
                on_gap=on_gap or self._setup.on_gap,
                consumer=consumer,
                manual=ack == "manual",
            )
        )

    async def runs(self, *, unfinished: bool = False) -> list[AsyncRun]:
        """Return this server's runs in the journal, newest first; see `Client.runs`."""
        engine = self._ready()
        return [
            self._made(AsyncRun(self, row, row.run_id or "", on_gap=self._setup.on_gap, needs=needs))
            for row, needs in await engine.during(listing.rows, engine, unfinished)
        ]

    async def session_runs(self, session_id: str) -> list[AsyncRun]:
        """Ask the server which runs a session has, oldest first; see `Client.session_runs`."""
        engine = self._ready()
        return [
            self._made(AsyncRun(self, row, row.run_id or "", on_gap=self._setup.on_gap, needs=needs))
            for row, needs in await engine.during(authority.session_runs, engine, session_id)
        ]

    async def operation(self, operation_id: str) -> Operation:
        """Ask the authority what became of an effect; see `Client.operation`."""
        engine = self._ready()
        return await engine.during(authority.operation, engine, operation_id)

    async def reconcile(self, key: str, *, run_id: str | None) -> None:
        """Give a person's word on a start whose outcome nobody here can know; see `Client.reconcile`."""
        engine = self._ready()
        await engine.during(reconciling.reconcile, engine, key, run_id)

    async def prune(self, *, older_than: float) -> int:
        """Remove the events of this server's runs that are done with; return of how many runs. See `Client.prune`."""
        engine = self._ready()
        return await engine.during(pruning.prune, engine, older_than)

    async def close(self) -> None:
        """End every socket, task and timer. Any state, any task, twice; who waits gets Closed; runs go on."""
        if self._residence is not None and self._engine is not None:
            await self._residence.close()

    def _ready(self) -> Engine:
        """Return the engine at work.

        Raises:
            UsageError: The client was not entered, this task is inside a transaction, or the process forked since.
            Closed: The client was closed.
            JournalDamaged: Told once; the next use goes on with the new journal.
        """
        if self._engine is None:
            raise errors.UsageError(
                "an AsyncClient must be entered first.",
                hint="Write: async with reattach.AsyncClient(url, journal) as client: …",
            )
        self._engine.check_open()
        self._engine.outside_a_turn(anyio.get_current_task().id)
        damage, self._damage = self._damage, None
        if damage is not None:
            raise damage
        return self._engine

    def _made(self, run: AsyncRun) -> AsyncRun:
        self._runs.add(run)
        return run
