"""The routes of Toxiproxy's HTTP API: a request in, a reply out; no socket here.

Statuses and bodies are those of Toxiproxy 2.12.0. Three things are ours: a name with a slash can be addressed (`%2F`), a slicer
without a size is declined instead of ending the process, and a request of a web page (one with an `Origin`) is refused, since any
page could otherwise open ports on the machine of whoever reads it.
"""

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeAlias
from urllib.parse import unquote

from reattach_chaos.toxiproxy.embedded import bodies
from reattach_chaos.toxiproxy.embedded.errors import ApiError
from reattach_chaos.toxiproxy.embedded.proxies import Proxies
from reattach_chaos.toxiproxy.embedded.proxy import Proxy, toxic_view

VERSION = "2.12.0+reattach"  # whose API it is, and that it is not the original


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer: status, content type (None: no body), body."""

    status: int
    media: str | None = None
    body: bytes = b""


def _json(status: int, value: Any) -> Reply:
    return Reply(status, "application/json", json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode())


def _declined(error: ApiError) -> Reply:
    text = json.dumps({"error": error.text, "status": error.status}, separators=(",", ":"), ensure_ascii=False)
    return Reply(error.status, "text/plain; charset=utf-8", text.encode() + b"\n")


_EMPTY = Reply(204)
_NO_PAGE = Reply(404, "text/plain; charset=utf-8", b"404 page not found\n")
_NO_METHOD = Reply(405)
_Handler: TypeAlias = Callable[[bytes], Awaitable[Reply]]


class Api:
    """Answers requests about one server's proxies.

    Args:
        proxies: What the requests are about.
    """

    def __init__(self, proxies: Proxies) -> None:
        self._proxies = proxies

    async def answer(self, method: str, target: str, body: bytes, *, from_a_page: bool = False) -> Reply:
        """Answer one request.

        Args:
            method: HTTP's.
            target: The path, still quoted; a query is ignored.
            body: All of it.
            from_a_page: Whether a web page's script sent it.
        """
        if from_a_page:
            return _declined(ApiError(403, "requests of web pages are refused"))
        handlers = self._route([unquote(each) for each in target.partition("?")[0].split("/")[1:]])
        if handlers is None:
            return _NO_PAGE
        if method not in handlers:
            return _NO_METHOD
        try:
            return await handlers[method](body)
        except ApiError as error:
            return _declined(error)

    def _route(self, path: list[str]) -> dict[str, _Handler] | None:
        match path:
            case ["proxies"]:
                return {"GET": self._list, "POST": self._create}
            case ["populate"]:
                return {"POST": self._populate}
            case ["reset"]:
                return {"POST": self._reset}
            case ["version"]:
                return {"GET": self._version}
            case ["proxies", name] if name:
                return _OneProxy(self._proxies, name).handlers()
            case ["proxies", name, "toxics"] if name:
                return _ItsToxics(self._proxies, name).handlers()
            case ["proxies", name, "toxics", toxic] if name and toxic:
                return _OneToxic(self._proxies, name, toxic).handlers()
            case _:
                return None

    async def _list(self, body: bytes) -> Reply:
        return _json(200, {name: proxy.view() for name, proxy in self._proxies.all().items()})

    async def _create(self, body: bytes) -> Reply:
        return _json(201, (await self._proxies.create(bodies.new_proxy(bodies.parse(body)))).view())

    async def _populate(self, body: bytes) -> Reply:
        done: list[Proxy] = []
        try:
            entries = bodies.proxies(bodies.parse(body))
            await self._proxies.populate(entries, done)
        except ApiError as error:
            views = [each.view() for each in done] or None
            return _json(error.status, {"error": error.text, "status": error.status, "proxies": views})
        return _json(201, {"proxies": [each.view() for each in done]})

    async def _reset(self, body: bytes) -> Reply:
        await self._proxies.reset()
        return _EMPTY

    async def _version(self, body: bytes) -> Reply:
        return Reply(200, "application/json;charset=utf-8", json.dumps({"version": VERSION}).encode())


@dataclass(frozen=True, slots=True)
class _OneProxy:
    proxies: Proxies
    name: str

    def handlers(self) -> dict[str, _Handler]:
        return {"GET": self.show, "POST": self.change, "PATCH": self.change, "DELETE": self.delete}

    async def show(self, body: bytes) -> Reply:
        return _json(200, self.proxies.find(self.name).view())

    async def change(self, body: bytes) -> Reply:
        proxy = self.proxies.find(self.name)
        now = bodies.ProxySettings(proxy.name, proxy.listen, proxy.upstream, proxy.enabled)
        return _json(200, (await self.proxies.update(self.name, bodies.proxy(bodies.parse(body), now))).view())

    async def delete(self, body: bytes) -> Reply:
        await self.proxies.delete(self.name)
        return _EMPTY


@dataclass(frozen=True, slots=True)
class _ItsToxics:
    proxies: Proxies
    name: str

    def handlers(self) -> dict[str, _Handler]:
        return {"GET": self.list, "POST": self.add}

    async def list(self, body: bytes) -> Reply:
        return _json(200, [toxic_view(each) for each in self.proxies.find(self.name).in_order()])

    async def add(self, body: bytes) -> Reply:
        proxy = self.proxies.find(self.name)
        fitted = bodies.new_toxic(bodies.parse(body))
        proxy.add(fitted)
        return _json(200, toxic_view(fitted))


@dataclass(frozen=True, slots=True)
class _OneToxic:
    proxies: Proxies
    name: str
    toxic: str

    def handlers(self) -> dict[str, _Handler]:
        return {"GET": self.show, "POST": self.change, "PATCH": self.change, "DELETE": self.delete}

    async def show(self, body: bytes) -> Reply:
        return _json(200, toxic_view(self.proxies.find(self.name).find(self.toxic)))

    async def change(self, body: bytes) -> Reply:
        proxy = self.proxies.find(self.name)
        fitted = proxy.find(self.toxic)
        proxy.change(fitted, bodies.changed_toxic(bodies.parse(body), fitted))
        return _json(200, toxic_view(fitted))

    async def delete(self, body: bytes) -> Reply:
        proxy = self.proxies.find(self.name)
        proxy.remove(proxy.find(self.toxic))
        return _EMPTY
