"""What crossed the wire, as the gate saw it.

Kinds: `connect`, `request`, `head`, `resume`, `resume.ok`, `resume.rejected`, `received`, `heartbeat`, `resume.end`, `close`.
A stream request is two records: `request`, its bytes' meaning in HTTP, and `resume`, its meaning for the run. The answer is a
`head`, and then `resume.ok` where the server announces the stream, or `resume.rejected`.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

from reattach_chaos.history.record import Record, known

Route: TypeAlias = Literal["create", "stream", "status", "snapshot", "list", "cancel", "answer", "other"]


@known
@dataclass(frozen=True, slots=True, kw_only=True)
class Connect(Record):
    """A connection was accepted from the client, or refused (`ok` false). `instance`: the server behind it."""

    kind: ClassVar[str] = "connect"

    ok: bool = True
    instance: str | None = None


@known
@dataclass(frozen=True, slots=True, kw_only=True)
class Request(Record):
    """A request, once its head has come. `nth` is its number among those of its route, from 1; `sha256` is of its body."""

    kind: ClassVar[str] = "request"

    route: Route
    nth: int = 1
    method: str = "GET"
    target: str = ""
    key: str | None = None
    sha256: str | None = None


@known
@dataclass(frozen=True, slots=True, kw_only=True)
class Head(Record):
    """An answer's head, as it was sent on to the client. `retry_after_ms` is the server's wish, None for none."""

    kind: ClassVar[str] = "head"

    route: Route
    status: int
    media: str = ""
    retry_after_ms: float | None = None


@known
@dataclass(frozen=True, slots=True, kw_only=True)
class Resume(Record):
    """The client asks for a stream after this cursor; None: it names none."""

    kind: ClassVar[str] = "resume"

    after: str | None = None


@known
@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeOk(Record):
    """The server streams. `cursor`: where it goes on; `head`: the newest sequence that it has."""

    kind: ClassVar[str] = "resume.ok"

    cursor: str | None = None
    epoch: str | None = None
    head: int | None = None


@known
@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeRejected(Record):
    """The server refuses to stream after this cursor, with this status and code."""

    kind: ClassVar[str] = "resume.rejected"

    status: int
    code: str = ""


@known
@dataclass(frozen=True, slots=True, kw_only=True)
class Received(Record):
    """An event was sent on to the client: all of it up to its blank line, or, with `whole` false, at least its id line.

    `id` is the SSE id. `offset` is the number of body bytes up to its end on this connection.
    """

    kind: ClassVar[str] = "received"

    id: str
    whole: bool = True
    sequence: int | None = None
    sha256: str | None = None
    offset: int | None = None


@known
@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat(Record):
    """Bytes whose only meaning is "still here"."""

    kind: ClassVar[str] = "heartbeat"


@known
@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeEnd(Record):
    """The answer with the stream came to its end as a whole one does; the connection may go on, or be closed at leisure."""

    kind: ClassVar[str] = "resume.end"


@known
@dataclass(frozen=True, slots=True, kw_only=True)
class Close(Record):
    """A connection ended. `by`: who ended it; `how`: what the other side saw."""

    kind: ClassVar[str] = "close"

    by: Literal["client", "server", "gate"]
    how: Literal["fin", "rst", "silence"] = "fin"
