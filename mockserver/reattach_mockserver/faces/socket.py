"""`/v1/socket`: one run on one WebSocket. What is sent, and when, is `reading.py`'s; who may do what, the HTTP calls'.

One task sends, another listens. A message that is wrong is answered between two events, by the task that sends. A socket that has
not said what it wants is bounded in time, and their number is bounded.

Where the rules come from: PROTOCOL, section 6. Checked by tests/mockserver/test_socket.py.
"""

import asyncio
import json
import logging
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from starlette.types import Receive, Scope, Send

from reattach_mockserver.bearer import ANYONE
from reattach_mockserver.engine.engine import Engine
from reattach_mockserver.engine.hub import Watcher
from reattach_mockserver.faces.canonical import is_utf_8
from reattach_mockserver.faces.checks import (
    check_caller,
    check_head,
    check_streams,
    check_work,
    find_run,
    sequence_after,
)
from reattach_mockserver.faces.cors import may_connect
from reattach_mockserver.faces.create import create_run
from reattach_mockserver.faces.inside import Inside, InsideCall, json_body
from reattach_mockserver.faces.problem import Refusal, invalid_request, overloaded, unauthenticated
from reattach_mockserver.faces.reading import Beat, Cut, Leave, Over, Page, Reading
from reattach_mockserver.faces.runs import cancel_run
from reattach_mockserver.faces.socket_messages import (
    GOING,
    NORMAL,
    RETRY_MS,
    SUBPROTOCOL,
    close_code,
    event_text,
    read_message,
    refused_text,
    started_text,
    told,
)
from reattach_mockserver.logs.base import RunRecord

PING = "reattach.ping"
"""The ASGI extension, and message, by which our own host sends a ping; elsewhere a message of the type `heartbeat` goes."""

_WAITING = ""
"""Where sockets that have not said what they want stand in the hub, so that they hear of a drain; no run is called so."""
_MOST_WAITING = 1_000

_logger = logging.getLogger(__name__)


class SocketFace:
    """All sockets of one server, as an ASGI application."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection, up to its end."""
        await receive()  # websocket.connect
        refusal = _handshake_refusal(self._engine, scope)
        if refusal is not None:
            await refuse_handshake(scope, send, refusal)
            return
        await send({"type": "websocket.accept", "subprotocol": SUBPROTOCOL})
        with suppress(OSError):  # the client has left: how ASGI servers say it
            await _Socket(self._engine, scope, receive, send).serve()


async def refuse_handshake(scope: Scope, send: Send, refusal: Refusal) -> None:
    """Answer the upgrade with a problem, or with a bare 403 where the ASGI server cannot carry one."""
    if "websocket.http.response" not in scope.get("extensions", {}):
        await send({"type": "websocket.close", "code": 1008})
        return
    headers = {"Content-Type": "application/problem+json", "Cache-Control": "no-store", **refusal.headers}
    raw = [(name.lower().encode(), value.encode("latin-1")) for name, value in headers.items()]
    await send({"type": "websocket.http.response.start", "status": refusal.status, "headers": raw})
    await send({"type": "websocket.http.response.body", "body": refusal.body()})


def _handshake_refusal(engine: Engine, scope: Scope) -> Refusal | None:
    try:
        check_head(scope, engine.settings.limits.header_bytes)
    except Refusal as refusal:
        return refusal
    origins = [value.decode("latin-1") for name, value in scope["headers"] if name == b"origin"]
    if not may_connect(origins, tokens=engine.settings.tokens is not None):
        return Refusal("forbidden", "pages of this origin may not connect")
    if SUBPROTOCOL not in scope.get("subprotocols", []):
        return invalid_request(f"the subprotocol {SUBPROTOCOL} is to be offered")
    return None


class _Left(Exception):
    """The client has left, or everything is to break off at once."""


class _Closing(Exception):
    """The server has to close before anything was asked of it."""


class _Socket:
    def __init__(self, engine: Engine, scope: Scope, receive: Receive, send: Send) -> None:
        self._engine = engine
        self._scope = scope
        self._receive = receive
        self._send = send
        self._pings = PING in scope.get("extensions", {})
        given = [value for name, value in scope["headers"] if name == b"authorization"]
        self._known = bool(given) or engine.settings.tokens is None
        self._inside = Inside(scope, given)
        self._wrong: Refusal | None = None

    async def serve(self) -> None:
        """Let the client say who it is and what it wants, then send it."""
        try:
            if self._known:
                self._check_token()
            message = await self._first()
            if message["type"] == "auth" or not self._known:
                self._authenticate(message)
                message = await self._first()
        except Refusal as refusal:
            await self._say(refused_text("error", refusal))
            await self._close(close_code(refusal))
            return
        except _Closing:
            await self._say(told("closing", reason="draining", retry_ms=RETRY_MS))
            await self._close(GOING)
            return
        except _Left:
            return
        match message["type"]:
            case "start":
                await self._start(message)
            case "resume":
                await self._resume(message)
            case other:
                wrong = invalid_request(f"'start' or 'resume' is to come first, not {other[:40]!r}")
                await self._say(refused_text("error", wrong))
                await self._close(close_code(wrong))

    # Before it says what it wants

    async def _first(self) -> dict[str, Any]:
        """Return the next message; it has only so long to come."""
        hub, wait = self._engine.hub, self._engine.settings.hello_wait
        if hub.readers(_WAITING) >= _MOST_WAITING:
            raise overloaded("too many sockets have not said yet what they want")
        with hub.watching(_WAITING, ANYONE.principal, stream=False) as watcher:
            coming = asyncio.ensure_future(self._receive())
            coming.add_done_callback(lambda _: watcher.signal())
            try:
                await watcher.wait(wait)
            finally:
                if not coming.done():
                    coming.cancel()
            if watcher.cut:
                raise _Left
            if not coming.cancelled() and coming.done():
                message = coming.result()
                if message["type"] == "websocket.disconnect":
                    raise _Left
                return read_message(message, self._engine.settings.limits.body_bytes)
            if watcher.closing is not None:
                raise _Closing
        if not self._known:
            raise unauthenticated(f"no token came within {wait:g} s")
        raise invalid_request(f"neither 'start' nor 'resume' came within {wait:g} s")

    def _authenticate(self, message: Mapping[str, Any]) -> None:
        token = message.get("token")
        if message["type"] != "auth" or not isinstance(token, str):
            raise unauthenticated("a message 'auth' with the token is to come first")
        self._inside = Inside(self._scope, [f"Bearer {token}".encode("utf-8", "surrogatepass")])
        self._check_token()
        self._known = True

    def _check_token(self) -> None:
        """Find out that the token is one; whether it has rights is said in answer to what is asked for."""
        try:
            check_caller(self._engine, self._inside.call())
        except Refusal as refusal:
            if refusal.code == "unauthenticated":
                raise

    # What it wants

    async def _start(self, message: Mapping[str, Any]) -> None:
        members = {name: value for name, value in message.items() if name not in ("type", "idempotency_key")}
        try:
            call = self._inside.call("POST", headers=_key(message), body=json_body(members))
            caller = check_caller(self._engine, call)
            key = _plain(message.get("idempotency_key"))
            if key is None or await self._engine.log.by_key(caller.principal, key) is None:
                check_streams(self._engine, call)
            answer = await call.answered(create_run, self._engine)
            run = await self._engine.run(json.loads(answer.body)["id"])
            assert run is not None, "it was just answered with"
            replayed = "idempotency-replayed" in answer.headers
            if replayed:
                check_work(self._engine)
                check_streams(self._engine, call)
            after = await sequence_after(self._engine, call, run, header=False)
        except Refusal as refusal:
            await self._answer_refusal("error", refusal)
            return
        heartbeat_ms = self._engine.limits(run).heartbeat_ms
        first = started_text(answer.body, replayed=replayed, heartbeat_ms=heartbeat_ms)
        await self._stream(call, run, after, first)

    async def _resume(self, message: Mapping[str, Any]) -> None:
        given = message.get("cursor")
        cursor = given if given is None else _plain(given)
        try:
            call = self._inside.call(run_id=_plain(message.get("run_id")) or "", after=cursor)
            check_caller(self._engine, call)
            check_work(self._engine)
            check_streams(self._engine, call)
            run = await find_run(self._engine, call)
            if given is not None and cursor is None:
                raise Refusal("cursor_malformed", "a cursor is a text")
            after = await sequence_after(self._engine, call, run, header=False)
            check_streams(self._engine, call)  # again: whoever was checked at the same time has joined by now
        except Refusal as refusal:
            await self._answer_refusal("resume_rejected", refusal)
            return
        await self._stream(call, run, after, None)

    async def _answer_refusal(self, kind: str, refusal: Refusal) -> None:
        await self._say(refused_text(kind, refusal))
        await self._close(NORMAL)

    async def _stream(self, call: InsideCall, run: RunRecord, after: int, first: str | None) -> None:
        hooks = self._engine.settings.hooks
        if hooks.found is not None:
            await hooks.found(run.id, after)
        with self._engine.hub.watching(run.id, call.caller.principal, stream=True) as watcher:
            if hooks.joined is not None:
                await hooks.joined(run.id, after)
            reading = Reading(self._engine, run, after, watcher)
            listener = asyncio.create_task(self._listen(run, watcher))
            try:
                await self._say(first or told("resume_ok", **(await reading.attached())))
                await self._follow(run, reading)
            finally:
                listener.cancel()
                with suppress(asyncio.CancelledError):
                    await listener

    async def _follow(self, run: RunRecord, reading: Reading) -> None:
        while True:
            match await reading.next():
                case Page(events):
                    for event in events:
                        await self._say(event_text(run.epoch, event))
                case Beat():
                    await self._beat()
                case Leave() if self._wrong is not None:
                    await self._say(refused_text("error", self._wrong))
                    await self._close(close_code(self._wrong))
                    return
                case Leave(reason):
                    await self._say(told("closing", reason=reason, retry_ms=RETRY_MS))
                    await self._close(GOING)
                    return
                case Over():
                    await self._close(NORMAL)
                    return
                case Cut():
                    return

    # Beside it

    async def _listen(self, run: RunRecord, watcher: Watcher) -> None:
        try:
            while (message := await self._receive())["type"] != "websocket.disconnect":
                await self._hear(run, read_message(message, self._engine.settings.limits.body_bytes))
        except Refusal as refusal:
            self._wrong = refusal
            watcher.leave("wrong")
            while (await self._receive())["type"] != "websocket.disconnect":
                pass
        except Exception:
            _logger.exception("a message on the socket of %s failed", run.id)
        watcher.cut = True
        watcher.signal()

    async def _hear(self, run: RunRecord, message: Mapping[str, Any]) -> None:
        match message["type"]:
            case "cancel":
                call = self._inside.call("POST", run_id=run.id)
                await call.answered(cancel_run, self._engine)
            case "applied":
                pass  # informational: what a client has confirmed is its own affair
            case "start" | "resume" | "auth":
                raise invalid_request("one run a socket, said once")
            case other:
                raise invalid_request(f"there is no message {other[:40]!r}")

    async def _say(self, text: str) -> None:
        await self._send({"type": "websocket.send", "text": text})

    async def _beat(self) -> None:
        if self._pings:
            await self._send({"type": PING})
        else:
            await self._say(told("heartbeat"))

    async def _close(self, code: int) -> None:
        await self._send({"type": "websocket.close", "code": code})


def _plain(value: object) -> str | None:
    """Return a text that a query and a log can carry, else None: no half of a surrogate pair."""
    return value if isinstance(value, str) and is_utf_8(value) else None


def _key(message: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the key as the create's header; one that cannot be a header is left as what is refused."""
    headers = [("content-type", "application/json")]
    match message.get("idempotency_key"):
        case None:
            return headers
        case str() as key if key.isascii():
            return [*headers, ("idempotency-key", key)]
        case _:
            return [*headers, ("idempotency-key", "not a key")]  # a space is in no key
