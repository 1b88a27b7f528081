"""`--json`: one object a line on stdout, flushed; people's text on stderr. The kinds and fields are the surface's (section 2).

ASCII only, every other character as a JSON escape: no reader can split a line at U+2028 or fail at half of a surrogate pair. A
line that only its escapes make too long is written as UTF-8.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from typing import Any, TextIO

from reattach import errors
from reattach.cli import exits, visible
from reattach.core.fold import Change
from reattach.model import Connection, Event, Outcome, Status
from reattach.stores.check import plain

LINE_BYTES = 1 << 20
_LONG = ("data", "text", "result")


class Lines:
    """A display for programs.

    Args:
        out: Where the lines go.
        err: Where people's text goes.
        quiet: Leave people's text out, but for errors.
    """

    def __init__(self, out: TextIO, err: TextIO, *, quiet: bool) -> None:
        self._out = out
        self._err = err
        self._quiet = quiet
        self._lock = threading.RLock()
        self._utf8 = (getattr(out, "encoding", None) or "").replace("-", "").lower() == "utf8"
        self._last: tuple[Any, ...] = ()

    def emit(self, kind: str, **fields: Any) -> None:
        """Write one line and flush it; one that is too long goes without its long members."""
        text = json.dumps({"kind": kind, **fields}, separators=(",", ":"))
        if len(text) >= LINE_BYTES and self._utf8:
            text = plain(json.dumps({"kind": kind, **fields}, separators=(",", ":"), ensure_ascii=False))
        if len(text) >= LINE_BYTES or (not text.isascii() and len(text.encode()) >= LINE_BYTES):
            short = {name: value for name, value in fields.items() if name not in _LONG}
            text = json.dumps({"kind": kind, **short, "truncated": True}, separators=(",", ":"))
        with self._lock:
            self._out.write(text + "\n")
            self._out.flush()

    def waiting(self, text: str) -> None:
        """See `Display.waiting`; programs wait without words."""

    def note(self, text: str) -> None:
        """See `Display.note`."""
        if not self._quiet:
            self._say(visible.line(text))

    def _say(self, text: str) -> None:
        with self._lock:
            self._err.write(text + "\n")
            self._err.flush()

    def began(self, run_id: str, key: str | None, cursor: str | None) -> None:
        """See `Display.began`."""
        self.emit("run", run=run_id, key=key, cursor=cursor)

    def confirmed(self, text: str, events: int) -> None:
        """See `Display.confirmed`; a program was told already."""

    def connection(self, connection: Connection) -> None:
        """See `Display.connection`; how far a replay is makes no line of its own."""
        facts = (connection.phase, connection.reason, connection.attempt)
        if facts == self._last:
            return
        self._last = facts
        self.emit(
            "connection",
            phase=connection.phase,
            reason=connection.reason,
            attempt=connection.attempt,
            retry_in_s=connection.retry_in,
            behind=connection.behind,
        )

    def event(self, event: Event, changes: Sequence[Change]) -> None:
        """See `Display.event`."""
        if event.gap is not None:
            gap = event.gap
            self.emit("gap", reason=gap.reason, after=gap.after, until=gap.until, missing=gap.missing)
            return
        self.emit(
            "rendered",
            id=event.id,
            cursor=event.cursor,
            type=event.type,
            text=event.text,
            data=event.data,
            redelivered=event.redelivered,
        )

    def ended(self, outcome: Outcome) -> None:
        """See `Display.ended`; what the run waits for comes first."""
        for action in outcome.required_actions:
            self.emit(
                "action",
                id=action.id,
                tool=action.tool,
                arguments=action.arguments,
                expires_at=None if action.expires_at is None else action.expires_at.isoformat(),
                thread=action.thread,
            )
        status = "paused" if outcome.status is Status.REQUIRES_ACTION else outcome.status.value
        problem = outcome.problem
        told: dict[str, Any] = {}
        if problem is not None:
            told["problem"] = {"code": problem.code, "message": problem.message}
        if outcome.status is Status.CANCELLED and outcome.operations:
            told["operations"] = [
                {
                    "id": each.id,
                    "tool": each.tool,
                    "status": each.status,
                    "reversible": each.reversible,
                    "external": each.external,
                }
                for each in outcome.operations
            ]
        self.emit("finished", status=status, result=outcome.result, evidence=outcome.evidence, **told)

    def failed(self, error: Exception, advice: str) -> None:
        """See `Display.failed`."""
        self._say(visible.line(exits.words_of(error)))
        if isinstance(error, errors.ReattachError):
            self.emit(
                "error",
                code=error.code,
                message=str(error),
                cursor=error.cursor,
                hint=error.hint,
                problem=error.problem,
            )
        else:
            code = "usage_error" if isinstance(error, exits.Declined) else "internal_error"
            self.emit("error", code=code, message=str(error), cursor=None, hint="", problem=None)

    def tick(self) -> None:
        """See `Display.tick`."""

    def close(self) -> None:
        """See `Display.close`."""
