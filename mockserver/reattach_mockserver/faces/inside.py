"""Calls of the HTTP form made by another face of the same server, so that each rule of a call has one home.

A socket's `start` is the create, its `resume` is checked as an attach is, its `cancel` is the cancel: same order, same refusals,
same effects. Nothing here knows a rule. Checked by tests/mockserver/test_socket.py.
"""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import urlencode

from starlette.types import Message, Scope

from reattach_mockserver.engine.engine import Engine
from reattach_mockserver.faces.call import Call


class Answered(NamedTuple):
    """A whole answer; header names in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Inside:
    """Makes calls on behalf of one connection.

    Args:
        scope: The connection's; its `root_path` is where the application is mounted.
        authorization: The values of `Authorization` that the calls carry.
    """

    def __init__(self, scope: Scope, authorization: Sequence[bytes]) -> None:
        self._root: str = scope.get("root_path", "")
        self._authorization = list(authorization)

    def call(
        self,
        method: str = "GET",
        *,
        run_id: str = "",
        after: str | None = None,
        headers: Sequence[tuple[str, str]] = (),
        body: bytes = b"",
    ) -> "InsideCall":
        """Return a call that was not made yet; `after` as the query parameter."""
        return InsideCall(
            {
                "type": "http",
                "method": method,
                "root_path": self._root,
                "path_params": {"run_id": run_id},
                "query_string": b"" if after is None else urlencode({"after": after}).encode(),
                "headers": [
                    *((name.encode(), value.encode()) for name, value in headers),
                    *((b"authorization", value) for value in self._authorization),
                ],
            },
            body,
        )


class InsideCall(Call):
    """A call whose answer is kept instead of sent."""

    def __init__(self, scope: Scope, body: bytes) -> None:
        self._request_body = body
        self._messages: list[Message] = []
        super().__init__(scope, self._give, self._take, {})

    async def answered(self, face: Callable[[Engine, Call], Awaitable[None]], engine: Engine) -> Answered:
        """Let a face answer, and return what it said.

        Raises:
            Refusal: It refused.
        """
        await face(engine, self)
        head = self._messages[0]
        headers = {name.decode(): value.decode("latin-1") for name, value in head["headers"]}
        return Answered(head["status"], headers, b"".join(each["body"] for each in self._messages[1:]))

    async def _give(self) -> Message:
        return {"type": "http.request", "body": self._request_body, "more_body": False}

    async def _take(self, message: Message) -> None:
        self._messages.append(message)


def json_body(value: Any) -> bytes:
    """Return a value as a body; it compares equal with the same value sent by HTTP."""
    return json.dumps(value).encode()
