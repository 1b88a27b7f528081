"""`Tap`: what passes the gate, as records. Each is in the history before the bytes that it speaks of are sent.

A record says what was seen; nothing here concludes. What the client under test can use only when it is whole (a status, a JSON
page) is recorded when it is whole.
"""

from typing import Literal

from reattach_chaos.gate.around import Around
from reattach_chaos.gate.blocks import Block
from reattach_chaos.gate.cuts import Cut, Exchange
from reattach_chaos.gate.framing import Head as HttpHead
from reattach_chaos.gate.numbering import sequence_of
from reattach_chaos.gate.routes import Dialect, json_object
from reattach_chaos.history import (
    Answer,
    Cancel,
    Close,
    Connect,
    Create,
    CutFired,
    CutMissed,
    Head,
    Heartbeat,
    Other,
    Received,
    Record,
    Recorder,
    Request,
    Resume,
    ResumeEnd,
    ResumeOk,
    ResumeRejected,
    Snapshot,
    Status,
    Terminal,
    bytes_sha256,
    is_number,
    printable,
)

MOST_BODY = 1024 * 1024  # a longer answer is not understood, only relayed
MOST_DIGITS = 15  # of a Retry-After; one of more is no wish that anybody could keep


class Tap:
    """Records one connection.

    Args:
        recorder: Where to.
        dialect: Of the server.
        who: Whose connection it is.
        life: Which process of theirs.
        conn: Its number.
    """

    def __init__(self, recorder: Recorder, dialect: Dialect, who: str, life: int, conn: int) -> None:
        self._recorder = recorder
        self._dialect = dialect
        self._who = who
        self._life = life
        self.conn = conn

    def _record(self, kind: type[Record], run: str | None = None, **facts: object) -> None:
        made = kind(who=self._who, life=self._life, conn=self.conn, run=run, **facts)  # type: ignore[arg-type]  # its own
        self._recorder.record(made)

    def connect(self, instance: str | None, *, ok: bool = True) -> None:
        """A connection was accepted, or refused."""
        self._record(Connect, ok=ok, instance=instance)

    def request(self, exchange: Exchange, head: HttpHead, body: bytes) -> None:
        """A request has come: its head, and its body where that was waited for."""
        key = head.get("idempotency-key")
        digest = bytes_sha256(body) if body else None
        facts = {"nth": exchange.nth, "method": head.method, "target": head.target, "key": key, "sha256": digest}
        self._record(Request, exchange.run, route=exchange.route, **facts)
        match exchange.route:
            case "create":
                self._record(Create, key=key, sha256=digest)
            case "answer":
                told = json_object(body)
                responses = told.get("responses")
                for each in responses if isinstance(responses, list) else ():
                    if isinstance(each, dict) and isinstance(each.get("action_id"), str):
                        self._record(Answer, str(told.get("continues")), action_id=each["action_id"])
            case "cancel":
                self._record(Cancel, exchange.run)
            case "stream":
                self._record(Resume, exchange.run, after=exchange.after)
            case _:
                pass

    def head(self, exchange: Exchange, head: HttpHead) -> None:
        """An answer's head goes to the client."""
        wish = head.get("retry-after") or ""
        self._record(
            Head,
            exchange.run,
            route=exchange.route,
            status=head.status,
            media=media_of(head),
            retry_after_ms=float(wish) * 1000
            if wish.isascii() and wish.isdigit() and len(wish) <= MOST_DIGITS
            else None,
        )

    def attached(self, exchange: Exchange, cursor: str | None, epoch: str | None, last: int | None) -> None:
        """The server announces the stream."""
        self._record(ResumeOk, exchange.run, cursor=cursor, epoch=epoch, head=last)

    def ended(self, exchange: Exchange) -> None:
        """The stream's answer has come to its end as a whole one."""
        self._record(ResumeEnd, exchange.run)

    def event(self, exchange: Exchange, block: Block, offset: int | None) -> None:
        """An event goes to the client, whole."""
        run = exchange.run
        if block.id is not None:
            sha256 = bytes_sha256(block.data)
            self._record(Received, run, id=block.id, sequence=sequence_of(block.id), sha256=sha256, offset=offset)
        status = self.settles(block)
        if status is not None:
            self._record(Terminal, run, witness="stream", status=status)

    def settles(self, block: Block) -> str | None:
        """Return the status of the run that an event settles; None where it settles none."""
        known = self._dialect.settling
        if block.type != "message":
            return known.get(block.type)
        return known.get(str(json_object(block.data).get("type", "")))  # the stream names no types

    def partial(self, exchange: Exchange, id: str, offset: int) -> None:
        """Of an event at least the id line went to the client, and not the whole."""
        self._record(Received, exchange.run, id=id, whole=False, sequence=sequence_of(id), offset=offset)

    def heartbeat(self, exchange: Exchange) -> None:
        """A comment goes to the client."""
        self._record(Heartbeat, exchange.run)

    def body(self, exchange: Exchange, head: HttpHead, body: bytes) -> str | None:
        """A whole JSON answer goes to the client; return the run that it names."""
        told = json_object(body)
        run = exchange.run
        if head.status >= 400:
            if exchange.route == "stream":
                self.rejected(exchange, head.status, printable(told.get("code", "")))
            return None
        match exchange.route:
            case "create" | "answer" | "status" | "cancel" if isinstance(told.get("id"), str):
                last = told.get("last_sequence")
                epoch = told.get("epoch")
                self._record(
                    Status,
                    told["id"],
                    status=printable(told.get("status", "")),
                    head=last if is_number(last) else None,
                    epoch=epoch if isinstance(epoch, str) else None,
                )
                return str(told["id"])
            case "snapshot" if isinstance(told.get("cursor"), str):
                self._record(Snapshot, run, boundary=told["cursor"], status=printable(told.get("status", "")))
            case _:
                pass
        return None

    def rejected(self, exchange: Exchange, status: int, code: str) -> None:
        """The server refuses a resume; `status` is 0 where it has none, on a WebSocket."""
        self._record(ResumeRejected, exchange.run, status=status, code=code)

    def page(self, exchange: Exchange, body: bytes, events: list[Block]) -> None:
        """A whole page of events goes to the client: what it may use of it, it may use now."""
        told = json_object(body)
        run, epoch, last = exchange.run, told.get("epoch"), told.get("last_sequence")
        epoch = epoch if isinstance(epoch, str) else None
        last = last if is_number(last) else None
        self.attached(exchange, exchange.after, epoch, last)
        for each in events:
            if each.id is not None:
                name = f"{epoch}.{each.id}" if epoch is not None and each.id.isdecimal() else each.id
                self.event(exchange, Block(name, each.type, each.data), None)
        if isinstance(told.get("status"), str):
            self._record(Status, run, status=printable(told["status"]), head=last, epoch=epoch)

    def fired(self, cut: Cut, exchange: Exchange, around: Around) -> None:
        """A fault is done."""
        planned = cut.planned
        self._record(
            CutFired,
            exchange.run,
            cut=cut.number,
            fault=planned.fault.value,
            position=planned.at.place.value,
            sequence=around.number,
            offset=around.offset,
            prefix_sha256=around.prefix_sha256,
            around=around.caption(),
        )

    def missed(self, cut: Cut, reason: str) -> None:
        """A fault could not be done."""
        self._record(CutMissed, cut=cut.number, reason=reason)

    def trouble(self, message: str) -> None:
        """Something is wrong with the gate or what stands behind it."""
        self._record(Other, name="trouble", facts={"message": message})

    def close(self, by: Literal["client", "server", "gate"], how: Literal["fin", "rst", "silence"]) -> None:
        """The connection has ended."""
        self._record(Close, by=by, how=how)


def media_of(head: HttpHead) -> str:
    """Return an answer's media type, without its parameters."""
    return (head.get("content-type") or "").partition(";")[0].strip().lower()
