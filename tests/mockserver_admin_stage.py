"""The stage of the admin interface's tests: its application in the test's own loop, beside the site that it has its hand on."""

import json
from collections.abc import Mapping
from typing import Any

from mockserver_stage import Answer, Exchange, Site
from reattach_mockserver.admin.app import AdminApplication

HERE = ("Host", "127.0.0.1:8701")


class Hand(Site):
    """Whoever calls the admin interface of a site."""

    def __init__(self, site: Site, token: str | None = None) -> None:
        super().__init__(site.app)
        self.app = AdminApplication(site.app, token)  # type: ignore[assignment]  # all that is called of it is the ASGI application

    def send(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str] | list[tuple[str, str]] | None = None,
        body: bytes = b"",
    ) -> Exchange:
        pairs = list(headers.items()) if isinstance(headers, Mapping) else list(headers or [])
        named = any(name.lower() == "host" for name, _ in pairs)
        return super().send(method, path, pairs if named else [HERE, *pairs], body)

    async def do(self, path: str, **members: Any) -> Any:
        """Post a call that is to succeed; return its answer."""
        answer = await self.post(path, members)
        assert answer.status == 200, answer.body
        return answer.json

    async def post(self, path: str, members: Any) -> Answer:
        """Post a body as JSON."""
        return await self.call("POST", path, {"Content-Type": "application/json"}, json.dumps(members).encode())

    async def ask(self, path: str) -> Any:
        """Get what is to be had; return it."""
        answer = await self.get(path)
        assert answer.status == 200, answer.body
        return answer.json
