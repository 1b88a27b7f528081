"""One HTTP call as the faces see it: headers and query that may come twice, the body, and how to answer.

A thin layer over ASGI. It decides nothing about runs; what is a refusal here is what HTTP alone can tell.

Checked by tests/mockserver/test_refusals.py and test_http.py.
"""

from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl

from starlette.types import Receive, Scope, Send

from reattach_mockserver.bearer import Caller
from reattach_mockserver.event import json_text
from reattach_mockserver.faces.problem import Refusal, invalid_request

NO_STORE = {"Cache-Control": "no-store"}


class Gone(Exception):
    """The client has left before its request was complete."""


class Call:
    """A request and the means to answer it.

    `caller` is set once the token was looked at. `extra` are headers of every answer (CORS).
    """

    def __init__(self, scope: Scope, receive: Receive, send: Send, extra: Mapping[str, str]) -> None:
        self.scope = scope
        self.receive = receive
        self.send = send
        self.extra = extra
        self.caller: Caller
        self.method: str = scope["method"]
        self._query: list[tuple[str, str]] | None = None

    @property
    def head(self) -> bool:
        """Whether the answer has no body."""
        return self.method == "HEAD"

    def headers(self, name: str) -> list[str]:
        """Return all values of a header, as they came."""
        wanted = name.lower().encode()
        return [value.decode("latin-1") for key, value in self.scope["headers"] if key == wanted]

    def parameters(self, name: str) -> list[str]:
        """Return all values of a query parameter, as they came."""
        if self._query is None:  # not before its length was looked at
            self._query = parse_qsl(self.scope["query_string"].decode("latin-1"), keep_blank_values=True)
        return [value for key, value in self._query if key == name]

    def parameter(self, name: str) -> str | None:
        """Return the value of a query parameter that may come once.

        Raises:
            Refusal: It comes twice.
        """
        values = self.parameters(name)
        if len(values) > 1:
            raise invalid_request(f"the parameter {name!r} comes {len(values)} times")
        return values[0] if values else None

    def number(self, name: str, default: int, low: int, high: int | None) -> int:
        """Return a query parameter that is a number from `low` to `high`.

        Raises:
            Refusal: It is not.
        """
        text = self.parameter(name)
        if text is None:
            return default
        bounds = f"{low} or more" if high is None else f"{low} to {high}"
        if not (text.isascii() and text.isdecimal()):
            raise invalid_request(f"{name}={text[:40]!r}: expected a number, {bounds}")
        # Cut before int(): a number of a million digits costs time, and is only known to be above every bound.
        value = int(text.lstrip("0")[:19] or "0")
        if value < low or (high is not None and value > high):
            raise invalid_request(f"{name}={text[:40]}: expected {bounds}")
        return value

    def path(self, tail: str) -> str:
        """Return a path of this application as a client must write it, wherever the application is mounted."""
        root: str = self.scope.get("root_path", "")
        return f"{root}{tail}"

    def declared_length(self) -> int:
        """Return the body's length as the headers say, 0 if they do not."""
        values = self.headers("content-length")
        if not (values and values[0].isascii() and values[0].isdecimal()):
            return 0
        return int(values[0][:19])  # more digits than that are too many in any case

    async def body(self, limit: int) -> bytes:
        """Read the body.

        Raises:
            Refusal: It has more than `limit` bytes.
            Gone: The client left before it was complete.
        """
        chunks, size = [], 0
        while True:
            message = await self.receive()
            if message["type"] == "http.disconnect":
                raise Gone
            chunk: bytes = message.get("body", b"")
            size += len(chunk)
            if size > limit:
                raise Refusal("body_too_large", f"the body has more than {limit} bytes")
            chunks.append(chunk)
            if not message.get("more_body", False):
                return b"".join(chunks)

    async def begin(self, status: int, headers: Mapping[str, str]) -> None:
        """Send status and headers; the body follows through `send`."""
        merged = {**NO_STORE, **headers, **self.extra}
        raw = [(name.lower().encode(), value.encode("latin-1")) for name, value in merged.items()]
        await self.send({"type": "http.response.start", "status": status, "headers": raw})

    async def answer(self, status: int, body: bytes, headers: Mapping[str, str]) -> None:
        """Send a whole answer; a HEAD's without its body."""
        bodiless = status in (204, 304)
        length = {} if bodiless else {"Content-Length": str(len(body))}
        await self.begin(status, {**headers, **length})
        await self.send({"type": "http.response.body", "body": b"" if self.head or bodiless else body})

    async def answer_json(self, value: Any, *, status: int = 200, headers: Mapping[str, str] | None = None) -> None:
        """Send a JSON answer."""
        await self.answer(status, json_text(value).encode(), {"Content-Type": "application/json", **(headers or {})})

    async def refuse(self, refusal: Refusal) -> None:
        """Send a problem."""
        headers = {"Content-Type": "application/problem+json", **refusal.headers}
        await self.answer(refusal.status, refusal.body(), headers)
