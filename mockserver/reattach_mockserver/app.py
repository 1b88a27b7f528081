"""The ASGI application: paths to faces, and what comes before and after every call.

Mountable in any ASGI server or application; where nobody runs its lifespan, the engine starts with the first call.
It holds no rule about runs. Where the rules come from: PROTOCOL, section 4, Refusals ("before the table").

Checked by tests/mockserver/test_http.py.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias

from starlette.routing import Route, Router, WebSocketRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from reattach_mockserver.engine.engine import Engine
from reattach_mockserver.faces.answering import answering, started
from reattach_mockserver.faces.call import Call
from reattach_mockserver.faces.checks import check_head
from reattach_mockserver.faces.cors import cors_headers, preflight_headers
from reattach_mockserver.faces.create import create_run
from reattach_mockserver.faces.discovery import read_discovery
from reattach_mockserver.faces.events import read_events
from reattach_mockserver.faces.operations import read_operation
from reattach_mockserver.faces.problem import Refusal, invalid_request
from reattach_mockserver.faces.runs import cancel_run, read_run, read_run_by_key, read_snapshot
from reattach_mockserver.faces.sessions import read_session, read_session_runs
from reattach_mockserver.faces.socket import SocketFace, refuse_handshake
from reattach_mockserver.settings import Settings

Face: TypeAlias = Callable[[Engine, Call], Awaitable[None]]

_PATHS: Mapping[str, Mapping[str, Face]] = {
    "/.well-known/reattach": {"GET": read_discovery},
    "/v1/runs": {"GET": read_run_by_key, "POST": create_run},
    "/v1/runs/{run_id}": {"GET": read_run},
    "/v1/runs/{run_id}/snapshot": {"GET": read_snapshot},
    "/v1/runs/{run_id}/events": {"GET": read_events},
    "/v1/runs/{run_id}/cancel": {"POST": cancel_run},
    "/v1/operations/{operation_id}": {"GET": read_operation},
    "/v1/sessions/{session_id}": {"GET": read_session},
    "/v1/sessions/{session_id}/runs": {"GET": read_session_runs},
}

_SOCKET = "/v1/socket"
_UPGRADE = "WEBSOCKET"
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", _UPGRADE})


async def _no_socket(engine: Engine, call: Call) -> None:
    """Answer a call to the socket that is no upgrade."""
    raise invalid_request("this is a WebSocket; it is opened by an upgrade of HTTP/1.1")


class Application:
    """One server as an ASGI application; `engine` is for whoever runs it, `calls` how often each route was called."""

    def __init__(self, settings: Settings) -> None:
        self.engine = Engine(settings)
        self.calls: Counter[str] = Counter()

        def resource(path: str, faces: Mapping[str, Face] | None) -> ASGIApp:
            return _Counted(self.calls, path, _Resource(self.engine, faces))

        self._router = Router(
            routes=[
                *(Route(path, endpoint=resource(path, faces)) for path, faces in _PATHS.items()),
                Route(_SOCKET, endpoint=resource(_SOCKET, {"GET": _no_socket})),
            ],
            default=resource("elsewhere", None),
            redirect_slashes=False,
        )
        self._sockets = Router(
            routes=[WebSocketRoute(_SOCKET, endpoint=_Counted(self.calls, _SOCKET, SocketFace(self.engine)))],
            default=_nowhere,
            redirect_slashes=False,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection scope."""
        match scope["type"]:
            case "lifespan":
                await self._live(receive, send)
            case "http":
                await self._router(scope, receive, send)
            case _:
                await self._open_socket(scope, receive, send)

    async def _open_socket(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await started(self.engine)
        except Refusal as refusal:
            await receive()
            await refuse_handshake(scope, send, refusal)
        else:
            await self._sockets(scope, receive, send)

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        try:
            await self.engine.start()
        except Exception as error:
            await send({"type": "lifespan.startup.failed", "message": str(error)})
            raise
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self.engine.stop()
        await send({"type": "lifespan.shutdown.complete"})


def create_app(settings: Settings) -> Application:
    """Return the server as an ASGI application. Nothing is opened before its lifespan or its first call."""
    return Application(settings)


async def _nowhere(scope: Scope, receive: Receive, send: Send) -> None:
    """Refuse a socket at a path that has none."""
    await receive()
    await refuse_handshake(scope, send, Refusal("not_found", "there is no socket at this path"))


class _Counted:
    """Counts what it hands on, under method and path as it is written in the list: no caller can make the list grow."""

    def __init__(self, calls: Counter[str], path: str, inner: ASGIApp) -> None:
        self._calls = calls
        self._path = path
        self._inner = inner

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        method = scope.get("method", _UPGRADE)
        self._calls[f"{method if method in _METHODS else 'other'} {self._path}"] += 1
        await self._inner(scope, receive, send)


class _Resource:
    """All methods of one path; `faces` None is the path that does not exist."""

    def __init__(self, engine: Engine, faces: Mapping[str, Face] | None) -> None:
        self._engine = engine
        self._faces = faces
        methods = set(faces or ()) | {"OPTIONS"} | ({"HEAD"} if faces and "GET" in faces else set())
        self._methods = sorted(methods)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        origins = [value.decode("latin-1") for name, value in scope["headers"] if name == b"origin"]
        extra = cors_headers(origins, tokens=self._engine.settings.tokens is not None)
        await answering(self._engine, scope, receive, send, self._answer, extra)

    async def _answer(self, call: Call) -> None:
        await started(self._engine)
        limits = self._engine.settings.limits
        check_head(call.scope, limits.header_bytes)
        if self._faces is None:
            raise Refusal("not_found", "there is nothing at this path")
        if call.method == "OPTIONS":
            allow = {"Allow": ", ".join(self._methods)}
            await call.answer(204, b"", {**allow, **preflight_headers(self._methods)})
            return
        face = self._faces.get("GET" if call.head else call.method)
        if face is None:
            raise Refusal(
                "method_not_allowed",
                f"{call.method} is not offered here",
                headers={"Allow": ", ".join(self._methods)},
            )
        if call.declared_length() > limits.body_bytes:
            raise Refusal("body_too_large", f"the body has more than {limits.body_bytes} bytes")
        await face(self._engine, call)
