"""What a user typed becomes a client at work: checked before anything is opened, opened in one place."""

from __future__ import annotations

import inspect
import os
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit, urlunsplit

import anyio
import anyio.to_thread

from reattach import errors
from reattach.core.payload import encodable
from reattach.core.subscription import step as core_step
from reattach.model import OnGap
from reattach.observe import Observer
from reattach.policy import Policy
from reattach.profiles import named
from reattach.profiles.base import Profile
from reattach.runtime.clock import Clock, RealClock
from reattach.runtime.engine import Engine, Step
from reattach.runtime.failures import of_fault
from reattach.runtime.loop import Inbox, Soon, soon_in_this_loop
from reattach.runtime.turn import LIMIT
from reattach.runtime.ways import Chosen, chosen
from reattach.runtime.writer import ThreadWriter, Writer
from reattach.stores import open_store
from reattach.stores.base import Store, StoreDamaged
from reattach.transports.base import Wire, WireRefused

if TYPE_CHECKING:
    from reattach.transports.client import ClientWire

TransportName = Literal["auto", "sse", "websocket", "longpoll", "poll"]
_ON_GAP: dict[str, OnGap] = {"raise": "raise", "snapshot": "snapshot", "continue": "continue"}
Token = str | Callable[[], Any] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Seams:
    """What tests replace: time, the writer, the core. An application leaves it alone."""

    clock: Callable[[], Clock] = RealClock
    writer: Callable[[Store, Soon], Writer] = ThreadWriter
    step: Step = core_step
    turn_limit: float = LIMIT


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """A client's arguments, checked. Nothing is open yet."""

    server: str
    profile: Profile
    store: Store
    token: Token
    headers: Mapping[str, str]
    policy: Policy
    on_gap: OnGap
    bare: bool
    observer: Observer | None
    chosen: Chosen
    wire: Callable[[], Wire]
    seams: Seams


def check(
    url: str,
    journal: str | os.PathLike[str] | Store,
    *,
    token: Token,
    profile: str | Profile,
    transport: str | Wire,
    on_gap: str,
    keep: str,
    policy: Policy,
    headers: Mapping[str, str] | None,
    ssl_context: ssl.SSLContext | None,
    proxy: str | None,
    observer: Observer | None,
    http_client: Any = None,
    seams: Seams | None = None,
) -> Setup:
    """Return the arguments of a client, checked.

    Raises:
        UsageError: One of them cannot be right; the text says which and what would be.
    """
    try:
        if on_gap not in _ON_GAP:
            raise ValueError(f'on_gap={on_gap!r}: "raise", "snapshot" or "continue" is needed')
        if keep not in ("events", "cursor"):
            raise ValueError(f'keep={keep!r}: "events" or "cursor" is needed')
        server, dialect = address(url), named(profile)
        how = chosen(url, transport, dialect)
        return Setup(
            server=server,
            profile=dialect,
            chosen=how,
            store=open_store(journal),
            token=token,
            headers=_own(headers),
            policy=policy,
            on_gap=_ON_GAP[on_gap],
            bare=keep == "cursor",
            observer=observer,
            wire=_wire(
                transport, ssl_context, proxy, http_client, ping_every=policy.idle_timeout / 3 if how.socket else None
            ),
            seams=seams or Seams(),
        )
    except errors.ReattachError:
        raise
    except ValueError as error:
        raise errors.UsageError(f"{error}.") from error


def address(url: object) -> str:
    """Return a server's address as it is used and as the journal names it: no slash at the end, ws as http.

    Raises:
        ValueError: It is no http address.
    """
    parts = urlsplit(url) if isinstance(url, str) else None
    if parts is None or parts.scheme not in ("http", "https", "ws", "wss") or not parts.hostname:
        raise ValueError(f'url={url!r} is no address such as "http://127.0.0.1:8700"')
    if parts.query or parts.fragment:
        raise ValueError(f"url={url!r}: the server's address has no query or fragment")
    if parts.username is not None or parts.password is not None:
        raise ValueError("url: give secrets by token=, not in the address (the journal keeps the address)")
    scheme = {"ws": "http", "wss": "https"}.get(parts.scheme, parts.scheme)
    return urlunsplit((scheme, parts.netloc.lower(), parts.path.rstrip("/"), "", ""))


def _own(headers: object) -> dict[str, str]:
    if headers is None:
        return {}
    if not isinstance(headers, Mapping):
        raise ValueError(f"headers={headers!r}: names and texts are needed, such as {{'X-Team': 'billing'}}")
    for name, value in headers.items():
        if not isinstance(name, str) or not isinstance(value, str):
            raise ValueError(f"headers: {name!r} is {value!r}; both must be texts")
        if not encodable(name + value):
            raise ValueError(f"headers: {name!r} has half of a character that cannot be sent")
    return dict(headers)


def _wire(
    transport: str | Wire,
    ssl_context: ssl.SSLContext | None,
    proxy: str | None,
    http_client: Any,
    *,
    ping_every: float | None,
) -> Callable[[], Wire]:
    """Return what makes the wire; `ping_every` is there exactly if streams are to be WebSockets."""
    if not isinstance(transport, str):
        return lambda: transport

    def wired(http: ClientWire) -> Wire:
        if ping_every is None:
            return http
        from reattach.transports.websocket import WebSocketWire

        return WebSocketWire(http, ping_every=ping_every)

    if http_client is not None:
        _check_client(http_client)
        if ssl_context is not None or proxy is not None:
            raise ValueError("http_client= has its own TLS and proxy settings; leave ssl_context= and proxy= out")

        def own() -> Wire:
            from reattach.transports.client import ClientWire

            return wired(ClientWire(http_client))

        return own

    def http() -> Wire:
        from reattach.transports.http import HttpWire  # httpx costs 70 ms; only who connects pays

        return wired(HttpWire(ssl_context=ssl_context, proxy=proxy))

    return http


def _check_client(http_client: Any) -> None:
    """Refuse what is no asynchronous client, by its shape: no class of a library decides anything.

    Raises:
        ValueError: It cannot carry our requests.
    """
    send = getattr(http_client, "send", None)
    if inspect.iscoroutinefunction(send) and callable(getattr(http_client, "build_request", None)):
        return
    kind = type(http_client).__name__
    if hasattr(http_client, "handle_async_request"):
        wrong = f"a {kind} alone; a transport goes into a client"
    elif callable(send):
        wrong = f"a {kind}, which blocks"
    else:
        wrong = f"a {kind}, which is no client"
    raise ValueError(
        f"http_client= is {wrong}: give an httpx.AsyncClient(transport=…) or httpx2.AsyncClient(transport=…), or leave it out"
    )


async def _headers(setup: Setup) -> dict[str, str | bytes]:
    """Return what every request carries; the token is asked for now."""
    headers: dict[str, str | bytes] = {
        name: value if value.isascii() else value.encode() for name, value in setup.headers.items()
    }
    token: Any = setup.token
    try:
        if callable(token):
            # A provider may ask a vault: never in the loop. A coroutine function's coroutine belongs to the loop.
            token = await anyio.to_thread.run_sync(_asked, token, abandon_on_cancel=True)
            if inspect.isawaitable(token):
                token = await token
    except Exception as error:
        raise WireRefused(f"the function given as token= raised {error!r}") from error
    if token is not None and not isinstance(token, str):
        raise WireRefused(f"token= gave a {type(token).__name__}, not a text")
    if token and not encodable(token):
        raise WireRefused("token= gave a text with half of a character that cannot be sent")
    if token:
        headers["Authorization"] = f"Bearer {token}".encode()
    return headers


def _asked(token: Callable[[], Any]) -> Any:
    """Call the user's function, in a thread of its own: `sys.exit` there is its failure, and ends no loop of ours."""
    try:
        return token()
    except Exception:
        raise
    except BaseException as error:
        raise RuntimeError(f"{type(error).__name__}({error})") from error


def open_journal(store: Store) -> errors.JournalDamaged | None:
    """Open the journal; one that was damaged and moved aside is begun anew, and the error to tell once is returned.

    Raises:
        JournalDamaged: It is of a newer schema, or could not be moved.
        CommitFailed, StoreBusy: It cannot be opened.
    """
    try:
        try:
            store.open()
        except StoreDamaged as damage:
            if damage.moved_to is None:
                raise
            store.open()
            for server, profile, run_id in damage.lost:
                store.need(store.adopt(server, profile, run_id).run, "repair")
            told = of_fault(damage, store.name)
            assert isinstance(told, errors.JournalDamaged)
            told.__cause__ = damage
            return told
    except Exception as error:
        store.close()
        raise of_fault(error, store.name) from error
    return None


@asynccontextmanager
async def serving(setup: Setup) -> AsyncIterator[tuple[Engine, errors.JournalDamaged | None]]:
    """Open everything, serve, and close everything, in this event loop and task."""
    store = setup.store
    damage = await anyio.to_thread.run_sync(open_journal, store)
    soon = soon_in_this_loop()
    inbox = Inbox(soon)
    writer = setup.seams.writer(store, inbox)
    try:
        engine = Engine(
            store=store,
            writer=writer,
            wire=setup.wire(),
            profile=setup.profile,
            chosen=setup.chosen,
            server=setup.server,
            headers=lambda: _headers(setup),
            policy=setup.policy,
            observer=setup.observer,
            clock=setup.seams.clock(),
            soon=soon,
            inbox=inbox,
            step=setup.seams.step,
            turn_limit=setup.seams.turn_limit,
            bare=setup.bare,
        )
    except BaseException as error:
        writer.close()
        store.close()
        if isinstance(error, Exception):
            raise errors.UsageError(
                f"the client cannot be opened: {error}.", hint="Check proxy= and ssl_context=."
            ) from error
        raise
    async with anyio.create_task_group() as tasks:
        engine.start(tasks)
        try:
            yield engine, damage
        finally:
            await engine.close()
