"""The blocking face: Client; its runs are in `run.py`. `async_client.py` is the same, awaited.

A client is one server and one journal. Its engine lives in the process's portal thread; what crosses to a reader is a number, how
far it may read. Nothing is open before the first use, and closing ends every socket, task and timer; runs go on.
"""

from __future__ import annotations

import ssl
import weakref
from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from types import TracebackType
from typing import Any, Literal

from reattach.model import OnGap, Operation
from reattach.observe import Observer
from reattach.policy import Policy
from reattach.profiles.base import Profile
from reattach.run import Run
from reattach.runtime import authority, listing, pruning, reconciling
from reattach.runtime.host import Host, watch
from reattach.runtime.setup import Seams, TransportName, check
from reattach.stores.base import Store
from reattach.transports.base import Wire


class Client:
    """One server and one journal. Thread-safe; opens on first use; use it in `with`, which closes it.

    Args:
        url: The server's address, such as "http://127.0.0.1:8700"; "ws://…" is the same server, its events by WebSocket.
        journal: What remembers: the path of a SQLite file, or of one of JSON lines ("….jsonl", one process), "postgresql://…" (many
            hosts; the extra `postgres`), ":memory:" (forgets: tests only), or a Store.
        token: The bearer token, or a function that returns one; it is asked for at every attempt.
        profile: The vendor's dialect: a name, or a Profile.
        transport: How events come: "sse"; "websocket" (needs the extra `ws`); "longpoll"; "poll", which keeps nothing open and
            asks when the status has news; or "auto": by WebSocket if the address says so, else by SSE, and by long polls while
            a path holds the stream back.
        on_gap: What to do where events cannot be had: "raise", go on from the server's "snapshot", or "continue" at the oldest
            event kept.
        keep: What the journal keeps of an event: all of it, or with "cursor" only its place. Then no payload is on disk (outcomes
            are), the server is asked after the applied event, what was handed out and not confirmed comes from it again, marked
            `redelivered`; there is the consumer "main" alone, no `after=` and no `view()`, and `views()` begin with the server's
            snapshot.
        policy: Patience and politeness.
        headers: Sent with every request.
        ssl_context: TLS settings; by default one context for the process.
        proxy: A proxy's address; by default the environment's.
        observer: Called with a frozen Fact for everything that happens; must be quick.

    Raises:
        UsageError: An argument cannot be right. Nothing was opened.
    """

    def __init__(
        self,
        url: str,
        journal: str | PathLike[str] | Store,
        *,
        token: str | Callable[[], str] | None = None,
        profile: str | Profile = "native",
        transport: TransportName | Wire = "auto",
        on_gap: OnGap = "raise",
        keep: Literal["events", "cursor"] = "events",
        policy: Policy = Policy(),
        headers: Mapping[str, str] | None = None,
        ssl_context: ssl.SSLContext | None = None,
        proxy: str | None = None,
        observer: Observer | None = None,
        _seams: Seams | None = None,
    ) -> None:
        setup = check(
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
            seams=_seams,
        )
        self._host = Host(setup)
        self._runs: weakref.WeakSet[Run] = weakref.WeakSet()
        self._finalizer = watch(self, self._host)

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            for run in list(self._runs):
                run._confirm_in_hand_here()
        self.close()

    def start(
        self,
        input: str | Mapping[str, Any] | Sequence[Any],
        *,
        key: str,
        session_id: str | None = None,
        on_active: Literal["reject", "cancel"] = "reject",
        metadata: Mapping[str, str] | None = None,
    ) -> Run:
        """Start the work of this key, or attach to it if it was started before. Starting twice is attaching.

        The intent is on disk before the request leaves. If the answer is lost, the same key is sent again, now or by the next
        process that starts it. Where a run of this key was paused and answered, the run that goes on from it is returned: the
        newest of the job.

        Args:
            input: What the agent is given: JSON.
            key: Your own name for this work, 1 to 255 visible ASCII characters. A new key is new work, and paid for.
            session_id: The conversation; None begins one.
            on_active: What to do if the session has a run that is not settled: "reject" this start, or "cancel" that run.
            metadata: Texts kept with the run.

        Raises:
            UsageError: The key or the input cannot be sent. Nothing was.
            KeyConflict: The key names other work already. Nothing was sent.
            SessionBusy: The session has a run that is not settled (`run_id` names it). Nothing was created.
            NotAuthorized, AttachError, RemoteProtocolError: The server refused; nothing was created.
            ReconnectExhausted: No answer for policy.give_up_after s; start again with the same key.
            AmbiguousOutcome: It may have been taken, and sending it again could create a second run; see `reconcile`.
            RespondError: Answers to this job's pause were sent again, and refused; the pause is there still.
        """
        request, digest = listing.request(input, key, session_id, on_active, metadata)
        row, needs = self._host.call(listing.start, self._host.engine(), key, request, digest)
        return self._made(Run(self, self._host, row, row.run_id or "", on_gap=self._host.setup.on_gap, needs=needs))

    def attach(
        self,
        run: str | Run,
        *,
        consumer: str = "main",
        after: str | None = None,
        ack: Literal["auto", "manual"] = "auto",
        on_gap: OnGap | None = None,
    ) -> Run:
        """Return a handle for a run that exists. Nothing is sent, and nothing opened, before it is read.

        Args:
            run: The run's id as the server gave it, or a Run of this client.
            consumer: Whose mark of confirmed events to use and to move: a name of yours, 1 to 255 visible characters. Each consumer
                sees every event; the same one twice at once is RunBusy. Consumers of one journal share one connection.
            after: Read only, from here: "beginning", "tail" or an event's cursor. Moves no mark.
            ack: "auto": asking for the next event confirms the last. "manual": only `Run.ack` and a transaction confirm, from any
                thread; what was not confirmed comes again, marked `redelivered`, to the next process or loop.
            on_gap: Instead of the client's choice.

        Raises:
            UsageError: The arguments cannot be right.
        """
        row = None
        if isinstance(run, Run):
            row, run = run._known(self._host), run.id
        listing.attachable(run, row, consumer, after, ack, on_gap)
        return self._made(
            Run(
                self,
                self._host,
                row,
                run,
                after=after,
                on_gap=on_gap or self._host.setup.on_gap,
                consumer=consumer,
                manual=ack == "manual",
            )
        )

    def runs(self, *, unfinished: bool = False) -> list[Run]:
        """Return this server's runs in the journal, newest first; asks nobody.

        Args:
            unfinished: Only those that need something: see `Run.needs`.
        """
        return [
            self._made(Run(self, self._host, row, row.run_id or "", on_gap=self._host.setup.on_gap, needs=needs))
            for row, needs in self._host.call(listing.rows, self._host.engine(), unfinished)
        ]

    def session_runs(self, session_id: str) -> list[Run]:
        """Ask the server which runs a session has, oldest first: also those that other journals started, and cancelled ones.

        A run that this journal does not know yet is not written to it before it is read.

        Args:
            session_id: The conversation, such as `Run.session_id`.

        Raises:
            UsageError: It cannot be an id. Nothing was sent.
            NotFound: The server knows no such session.
            NotAuthorized, AttachError, RemoteProtocolError: It did not say.
        """
        return [
            self._made(Run(self, self._host, row, row.run_id or "", on_gap=self._host.setup.on_gap, needs=needs))
            for row, needs in self._host.call(authority.session_runs, self._host.engine(), session_id)
        ]

    def operation(self, operation_id: str) -> Operation:
        """Ask the authority what became of an effect: the way to reconcile one that is in doubt.

        Args:
            operation_id: As an event, an action or `Outcome.operations` names it.

        Raises:
            UsageError: It cannot be an id. Nothing was sent.
            NotFound: The authority knows no such operation.
            NotAuthorized, AttachError, RemoteProtocolError: It did not say.
        """
        return self._host.call(authority.operation, self._host.engine(), operation_id)

    def reconcile(self, key: str, *, run_id: str | None) -> None:
        """Give a person's word on a start whose outcome nobody here can know (`needs` is "reconcile"). Nothing is sent.

        Args:
            key: The key of the start; for answers to a pause the one that `AmbiguousOutcome` named.
            run_id: The run that it made, which is followed from now on; None: it was never created, and the key is free again.

        Raises:
            UsageError: The journal has no such unanswered start, or the run belongs to another key. Nothing was changed.
        """
        self._host.call(reconciling.reconcile, self._host.engine(), key, run_id)

    def prune(self, *, older_than: float) -> int:
        """Remove the events of this server's runs that are done with, and give their room back; return of how many runs.

        Key, run id, digest and outcome stay, so starting that work again is still attaching to it. A run keeps its events until
        it has ended, every consumer that ever read it is at its end, and it needs nothing. Reading a pruned run again (`after=`, a
        new consumer, `view()`) gives a gap in place of its events.

        Args:
            older_than: Seconds since the run settled.

        Raises:
            UsageError: That is no number of seconds.
            CommitFailed, StoreBusy: The journal could not be written; what was removed until then stays removed, and is named.
        """
        return self._host.call(pruning.prune, self._host.engine(), older_than)

    def close(self) -> None:
        """End every socket, task and timer. Any state, any thread, twice; who waits gets Closed; runs go on."""
        self._finalizer.detach()
        self._host.close()

    def _made(self, run: Run) -> Run:
        self._runs.add(run)
        return run
