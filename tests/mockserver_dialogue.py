"""One WebSocket of the server's stage, spoken in ASGI: no real socket, and a test decides when each message is taken."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any

from mockserver_stage import PATIENCE, Answer, Site
from reattach_mockserver.faces.socket import PING


class Dialogue:
    """A socket in use.

    Args:
        site: The server.
        headers: Of the upgrade.
        subprotocols: Those that are offered.
        path: Where.
        extensions: What the ASGI server can do beside the standard.
    """

    def __init__(
        self,
        site: Site,
        headers: Mapping[str, str] | None = None,
        *,
        subprotocols: tuple[str, ...] = ("reattach.v1",),
        path: str = "/v1/socket",
        extensions: tuple[str, ...] = ("websocket.http.response", PING),
    ) -> None:
        self.code: int | None = None
        self.pings = 0
        self.subprotocol: str | None = None
        self._coming: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._coming.put_nowait({"type": "websocket.connect"})
        self._going: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue(maxsize=1)
        scope = {
            "type": "websocket",
            "asgi": {"version": "3.0", "spec_version": "2.4"},
            "http_version": "1.1",
            "scheme": "ws",
            "path": site.root_path + path,
            "raw_path": (site.root_path + path).encode(),
            "query_string": b"",
            "root_path": site.root_path,
            "headers": [(name.lower().encode(), value.encode("latin-1")) for name, value in (headers or {}).items()],
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 8700),
            "subprotocols": list(subprotocols),
            "extensions": {name: {} for name in extensions},
        }
        self.task = asyncio.create_task(self._run(site, scope))

    async def _run(self, site: Site, scope: dict[str, Any]) -> None:
        try:
            await site.app(scope, self._coming.get, self._send)
        finally:
            await self._going.put(None)

    async def _send(self, message: Any) -> None:
        await self._going.put(dict(message))

    async def _next(self) -> dict[str, Any] | None:
        return await asyncio.wait_for(self._going.get(), PATIENCE)

    async def opened(self) -> "Dialogue":
        message = await self._next()
        assert message is not None
        assert message["type"] == "websocket.accept", message
        self.subprotocol = message["subprotocol"]
        return self

    async def denied(self) -> Answer:
        head, body = await self._next(), await self._next()
        assert head is not None
        assert body is not None
        headers = {name.decode(): value.decode() for name, value in head["headers"]}
        return Answer(head["status"], headers, body["body"])

    def say(self, kind: str, **members: Any) -> None:
        self.send({"text": json.dumps({"type": kind, **members})})

    def send(self, message: Mapping[str, Any]) -> None:
        self._coming.put_nowait({"type": "websocket.receive", **message})

    def leave(self) -> None:
        self._coming.put_nowait({"type": "websocket.disconnect", "code": 1006})

    async def text(self) -> str | None:
        """Return the next message; None when the socket is over, `code` then says how (None: broken off)."""
        while True:
            message = await self._next()
            if message is None:
                return None
            match message["type"]:
                case "websocket.send":
                    return str(message["text"])
                case "websocket.close":
                    self.code = message["code"]
                case kind:
                    assert kind == PING
                    self.pings += 1

    async def message(self) -> Any:
        text = await self.text()
        return None if text is None else json.loads(text)

    async def messages(self) -> list[Any]:
        """Return all up to the end."""
        found = []
        while (message := await self.message()) is not None:
            found.append(message)
        await self.task
        return found


async def resumed(site: Site, run_id: str, cursor: str | None = None, **headers: str) -> Dialogue:
    """Return a socket that has asked for a run."""
    dialogue = await Dialogue(site, headers).opened()
    dialogue.say("resume", run_id=run_id, cursor=cursor)
    return dialogue


async def played(site: Site, run_id: str, cursor: str | None = None, **headers: str) -> tuple[list[Any], int | None]:
    """Return all that a resume brings, and the close code."""
    dialogue = await resumed(site, run_id, cursor, **headers)
    messages = await dialogue.messages()
    return messages, dialogue.code
