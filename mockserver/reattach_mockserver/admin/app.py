"""The admin interface as an ASGI application: who may call, which path is which call, and what goes wrong as a problem.

It stands beside the server, never inside it: a port of its own, so that no client under test reaches it by accident, and no
proxy in front of the server does. Without a token it answers only to this machine's own names and pages, since a foreign page in
a developer's browser can reach every loopback port. What the calls do is `calls.py`'s.

Where the rules come from: the surface page, `serve --admin-port`; PROTOCOL, section 4, for the form of refusals.
Checked by tests/mockserver/admin.
"""

import hmac
from collections.abc import Mapping

from starlette.routing import Route, Router
from starlette.types import Receive, Scope, Send

from reattach_mockserver.admin.calls import CALLS, AdminCall
from reattach_mockserver.app import Application
from reattach_mockserver.bearer import digest
from reattach_mockserver.faces.answering import answering, started
from reattach_mockserver.faces.call import Call
from reattach_mockserver.faces.cors import is_loopback, may_connect
from reattach_mockserver.faces.problem import Refusal, unauthenticated


class AdminApplication:
    """The admin interface of one server.

    Args:
        app: The server.
        token: What a caller has to show as a bearer token; None asks nobody, and answers loopback names only.
    """

    def __init__(self, app: Application, token: str | None = None) -> None:
        self.app = app
        self._token = None if token is None else digest(token)
        self._router = Router(
            routes=[Route(path, endpoint=_Path(self, methods)) for path, methods in CALLS.items()],
            default=_Path(self, {}),
            redirect_slashes=False,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection scope; there is nothing here but HTTP."""
        if scope["type"] == "http":
            await self._router(scope, receive, send)
        elif scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1000})

    def check(self, call: Call) -> None:
        """Find out that the caller may call.

        Raises:
            Refusal: Not with this token, or not from there.
        """
        if self._token is None:
            hosts, origins = call.headers("host"), call.headers("origin")
            if len(hosts) != 1 or not is_loopback(f"http://{hosts[0]}"):
                raise Refusal(
                    "forbidden", "without a token the admin interface answers to this machine's own names only"
                )
            if not may_connect(origins, tokens=False):
                raise Refusal("forbidden", "a page from elsewhere may not call the admin interface")
            return
        values = call.headers("authorization")
        scheme, _, token = values[0].partition(" ") if len(values) == 1 else ("", "", "")
        if scheme.lower() != "bearer" or not hmac.compare_digest(digest(token.strip()), self._token):
            raise unauthenticated("the admin interface has a token of its own; send it as a bearer token")


class _Path:
    """All methods of one path; none is the path that does not exist."""

    def __init__(self, admin: AdminApplication, methods: Mapping[str, AdminCall]) -> None:
        self._admin = admin
        self._methods = methods

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await answering(self._admin.app.engine, scope, receive, send, self._answer, {})

    async def _answer(self, call: Call) -> None:
        self._admin.check(call)
        if not self._methods:
            raise Refusal("not_found", "there is nothing at this path; GET / lists what there is")
        act = self._methods.get("GET" if call.head else call.method)
        if act is None:
            allow = sorted({*self._methods, *({"HEAD"} if "GET" in self._methods else ())})
            raise Refusal(
                "method_not_allowed", f"{call.method} is not offered here", headers={"Allow": ", ".join(allow)}
            )
        await started(self._admin.app.engine)
        await call.answer_json(await act(self._admin.app, call))
