"""`WrongServer`: the right server with one decision changed. A mutant is a subclass of twenty lines, in a file of its own.

Three seams, none of which is there for a mutant: what the server is told (`given`: another log, tokens, hooks), the call on its way
in (`asked`, `heard`), the answer on its way out (`streams` for event streams, `answered` for all else). The JSON form of the events
stays right: it is the truth that streams are compared with. Sockets go past all but the first.

Never here: anything that the right server imports.
"""

import re
from dataclasses import replace
from typing import ClassVar
from urllib.parse import parse_qsl, urlencode

from starlette.types import Message, Receive, Scope, Send

from reattach_mockserver.app import Application
from reattach_mockserver.cursor import Cursor, parse_cursor
from reattach_mockserver.faces.accept import chosen_form
from reattach_mockserver.mutants.answer import Answer
from reattach_mockserver.mutants.stream import Ended, WrongStream
from reattach_mockserver.settings import Settings

_RUN = re.compile(r"/v1/runs/([^/]+)(?:/|$)")


class WrongServer(Application):
    """See the module.

    Class attributes:
        id: What `--mutant` calls it.
        words: What it does wrong: a sentence without its subject, the server.
        breaks: The requirements that it does not keep.
        found_by: The laws of the chaos kit of which at least one must find it; none where `unseen` says why.
        anomaly: What the chaos kit calls it.
        unseen: Why no client can come to see it in a chaos run.
        streams: Its streams.
    """

    id: ClassVar[str]
    words: ClassVar[str]
    breaks: ClassVar[tuple[str, ...]]
    found_by: ClassVar[tuple[str, ...]] = ()
    anomaly: ClassVar[str] = ""
    unseen: ClassVar[str] = ""
    streams: ClassVar[type[WrongStream]] = WrongStream

    def __init__(self, settings: Settings) -> None:
        super().__init__(self.given(replace(settings)))

    # What a mutant overrides

    def given(self, settings: Settings) -> Settings:
        """Return what the server is told; another log, say."""
        return settings

    async def asked(self, scope: Scope) -> Scope:
        """Return the call that the right server is to answer."""
        return scope

    async def heard(self, scope: Scope, receive: Receive) -> Receive:
        """Return the way in which the call's body comes."""
        return receive

    async def answered(self, scope: Scope, answer: Answer) -> Answer:
        """Return what a call that is no stream is answered with."""
        return answer

    async def left(self, run_id: str) -> None:
        """Hear that a stream of a run is over, whoever ended it."""

    # What it does it with

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection scope."""
        if scope["type"] != "http":
            await super().__call__(scope, receive, send)
            return
        given = await self.asked(scope)
        way = _Way(self, scope, send)
        try:
            await super().__call__(given, await self.heard(given, receive), way.take)
        except Ended as ended:
            if ended.whole and way.stream is not None:
                await way.stream.close()
        finally:
            if way.stream is not None:
                await self.left(way.stream.run_id)


class _Way:
    """An answer on its way out."""

    def __init__(self, server: WrongServer, scope: Scope, send: Send) -> None:
        self._server = server
        self._scope = scope
        self._send = send
        self._answer = Answer(0)
        self.stream: WrongStream | None = None

    async def take(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = {name.decode(): value.decode("latin-1") for name, value in message["headers"]}
            self._answer = Answer(message["status"], headers)
            if headers.get("content-type") == "text/event-stream":
                await self._begin(headers)
        elif self.stream is not None:
            await self.stream.take(message.get("body", b""), more=message.get("more_body", False))
        else:
            self._answer.body += message.get("body", b"")
            if not message.get("more_body", False):
                await self._give()

    async def _begin(self, headers: dict[str, str]) -> None:
        run_id = run_of(self._scope) or headers.get("location", "").rpartition("/")[2]
        cursor = cursor_of(self._scope)
        self.stream = self._server.streams(
            self._server, run_id, None if cursor is None else cursor.sequence, self._send
        )
        await self._start(self._answer.status, dict(self.stream.headers(headers)))

    async def _give(self) -> None:
        answer = await self._server.answered(self._scope, self._answer)
        if "content-length" in answer.headers and self._scope["method"] != "HEAD":
            answer.headers["content-length"] = str(len(answer.body))
        await self._start(answer.status, answer.headers)
        await self._send({"type": "http.response.body", "body": answer.body})

    async def _start(self, status: int, headers: dict[str, str]) -> None:
        raw = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
        await self._send({"type": "http.response.start", "status": status, "headers": raw})


def run_of(scope: Scope) -> str:
    """Return the id of the run that a call is about; "" for none."""
    found = _RUN.search(scope["path"])
    return found[1] if found else ""


def is_attach(scope: Scope) -> bool:
    """Tell whether a call asks for a run's events as a stream."""
    path: str = scope["path"]
    accept = [value.decode("latin-1") for name, value in scope["headers"] if name == b"accept"]
    return scope["method"] == "GET" and path.endswith("/events") and chosen_form(accept) == "sse"


def is_status(scope: Scope) -> bool:
    """Tell whether a call reads a run's status."""
    path: str = scope["path"]
    return scope["method"] == "GET" and path.endswith(f"/v1/runs/{run_of(scope) or None}")


def word_of(scope: Scope) -> str | None:
    """Return the text of the cursor that a call sends; None where it sends none."""
    for name, value in scope["headers"]:
        if name == b"last-event-id":
            return str(value.decode("latin-1"))
    return dict(parse_qsl(scope["query_string"].decode("latin-1"))).get("after")


def cursor_of(scope: Scope) -> Cursor | None:
    """Return the cursor that a call sends; None where it sends none that is one."""
    return parse_cursor(word_of(scope) or "")


def asking(scope: Scope, word: str | None) -> Scope:
    """Return the call with this cursor in place of its own; None: with none."""
    headers = [pair for pair in scope["headers"] if pair[0] != b"last-event-id"]
    query = [pair for pair in parse_qsl(scope["query_string"].decode("latin-1")) if pair[0] != "after"]
    if word is not None:
        query.append(("after", word))
    return {**scope, "headers": headers, "query_string": urlencode(query).encode()}
