"""What a person sees: the text as it streams on stdout, everything about it on stderr.

On a terminal, connection and running tools share one updating line, which is empty when all is well; elsewhere each is a plain
line. Colour only dims what the words say anyway. What came from a server goes to a terminal without control characters.
"""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import threading
import time
from collections.abc import Callable, Sequence
from typing import TextIO

from reattach.cli import endings, exits, visible
from reattach.cli.status_line import StatusLine
from reattach.core.fold import Change, ToolAnswered, ToolCalled
from reattach.model import Connection, Event, Outcome, Status

SOON = 1.0  # seconds after which somebody who waits is told for what
_PLAIN = 120  # columns of a plain line's long parts


class People:
    """A display for people.

    Args:
        out: Where text goes.
        err: Where everything else goes.
        quiet: Leave out what is not text, an error or a bad end.
        color: Whether colour is wanted, where there is a terminal.
        clock: Seconds.
        columns: The terminal's width.
    """

    def __init__(
        self,
        out: TextIO,
        err: TextIO,
        *,
        quiet: bool,
        color: bool,
        clock: Callable[[], float] = time.monotonic,
        columns: Callable[[], int] = lambda: shutil.get_terminal_size().columns,
    ) -> None:
        self._out, self._err = out, err
        self._quiet = quiet
        self._clock, self._columns = clock, columns
        self._lock = threading.RLock()
        self._terminal = out.isatty()
        moves = err.isatty() and os.environ.get("TERM") != "dumb" and not quiet
        self._line = StatusLine(err, dim=color) if moves else None
        self._dim = color and self._terminal
        self._column = 0
        self._waiting = ""
        self._since = clock()
        self._told_waiting = False
        self._connection = Connection()
        self._connection_since = clock()
        self._was_live = False
        self._again = False
        self._tools: dict[str, str] = {}
        self._events = 0
        self._cursor = ""
        self._run_id = ""

    # words -----------------------------------------------------------------------------------------------------------

    def waiting(self, text: str) -> None:
        """See `Display.waiting`."""
        with self._lock:
            self._waiting, self._since, self._told_waiting = text, self._clock(), False

    def note(self, text: str) -> None:
        """See `Display.note`."""
        if not self._quiet:
            self._say(text)

    def _say(self, text: str) -> None:
        with self._lock:
            self._break_line()
            self._err.write(visible.line(text) + "\n")
            self._err.flush()

    def _break_line(self) -> None:
        """Leave the line that the text stands in, where text and notes share a terminal."""
        if self._line is not None:
            self._line.erase()
        if self._terminal and self._column:
            self._out.write("\n")
            self._out.flush()
            self._column = 0

    # the run ---------------------------------------------------------------------------------------------------------

    def began(self, run_id: str, key: str | None, cursor: str | None) -> None:
        """See `Display.began`."""
        self._run_id = run_id
        self._cursor = cursor or ""
        self.waiting("")
        after = f", after {cursor}" if cursor else ""
        self.note(f"run {run_id}{f', key {key}' if key else ''}{after}")

    def confirmed(self, text: str, events: int) -> None:
        """See `Display.confirmed`: on a terminal only; elsewhere the text went into the same pipe or file before."""
        if self._terminal and text:
            self.note(f"shown before ({_events(events)}):")
            self._text(text, dim=self._dim)

    def event(self, event: Event, changes: Sequence[Change]) -> None:
        """See `Display.event`."""
        with self._lock:
            self._events += 1
            self._cursor = event.cursor or self._cursor
            self._since = self._clock()
            if event.gap is not None:
                self._say(f"[{event.gap}]")
            elif event.text and event.redelivered is not self._again:
                # Said where it begins and where it ends: many events may come again, and a note at each would tear the text.
                self._again = event.redelivered
                told = "what comes again may have been shown before" if self._again else "new"
                self.note(f"(from event {event.cursor or event.id} on: {told})")
            if event.text:
                self._text(event.text)
            for change in changes:
                self._tool(change)

    def _text(self, text: str, *, dim: bool = False) -> None:
        with self._lock:
            if self._line is not None:
                self._line.erase()
            if self._terminal:
                text = visible.escaped(text)
                self._column = visible.column(self._column, text)
            self._out.write(f"\x1b[2m{text}\x1b[0m" if dim else text)
            self._out.flush()

    def _tool(self, change: Change) -> None:
        match change:
            case ToolCalled(id=called, name=name):
                self._tools[called] = name
                if self._line is None:
                    arguments = json.dumps(change.arguments, ensure_ascii=False)
                    self.note(f"tool {visible.line(name, 60)} {visible.line(arguments, _PLAIN)}")
            case ToolAnswered(id=called, result=result):
                name = self._tools.pop(called, called)
                if self._line is None:
                    failed = isinstance(result, dict) and "error" in result
                    self.note(f"tool {visible.line(name, 60)} {'failed' if failed else 'done'}")
            case _:
                pass

    # the connection ----------------------------------------------------------------------------------------------------

    def connection(self, connection: Connection) -> None:
        """See `Display.connection`."""
        with self._lock:
            before, self._connection = self._connection, connection
            self._connection_since = self._clock()
            if self._line is not None:
                return
            if connection.phase in ("waiting", "polling", "following") and connection != before:
                self.note(str(connection))
            elif connection.phase in ("live", "replaying"):
                if self._was_live and before.phase in ("attaching", "waiting", "polling"):
                    self.note(f"connected again{f', after {self._cursor}' if self._cursor else ''}")
                self._was_live = True

    def tick(self) -> None:
        """See `Display.tick`."""
        with self._lock:
            now = self._clock()
            if self._line is not None:
                text = self._state(now)
                if text:
                    self._line.draw(text, self._column if self._terminal else 0, self._columns())
                else:
                    self._line.erase()
            elif self._waiting and not self._told_waiting and now - self._since >= SOON:
                self._told_waiting = True
                self.note(self._waiting)

    def _state(self, now: float) -> str:
        """Return what the updating line says, "" when all is well."""
        quiet = now - self._since
        if self._waiting:
            return f"{self._waiting} ({quiet:.0f} s)" if quiet >= SOON else ""
        told = self._connection
        if told.phase == "waiting" and told.retry_in is not None:
            left = max(0.0, told.retry_in - (now - self._connection_since))
            return str(dataclasses.replace(told, retry_in=left))
        if told.phase in ("detached", "ended"):
            return ""
        if quiet < SOON and told.phase in ("live", "replaying"):
            return ""
        parts = [str(told), *(f"{name} is running" for name in self._tools.values())]
        parts += [f"{_events(self._events)} shown" if self._events else "", self._cursor]
        return f"{quiet:.0f} s: " + ", ".join(part for part in parts if part)

    # the end ---------------------------------------------------------------------------------------------------------

    def ended(self, outcome: Outcome) -> None:
        """See `Display.ended`."""
        with self._lock:
            self._connection = Connection(phase="ended")
            self._break_line()
        run = f"run {outcome.run_id}"
        match outcome.status:
            case Status.COMPLETED:
                result = "" if outcome.result is None else f": {endings.value(outcome.result)}"
                again = (
                    "" if self._events or self._terminal else " (all of it was shown before; --from beginning shows it)"
                )
                self.note(f"{run} completed{result}{again}")
            case Status.FAILED:
                problem = outcome.problem
                self._say(f"{run} failed" + (f" ({problem.code}: {problem.message})" if problem else ""))
            case Status.REQUIRES_ACTION:
                for line in endings.waits(outcome):
                    self._say(line)
            case status:
                self._say(f"{run} {status.value}")
        if outcome.status is Status.CANCELLED:
            for line in endings.effects(outcome):
                self._say(line)

    def failed(self, error: Exception, advice: str) -> None:
        """See `Display.failed`."""
        self._say(exits.words_of(error))
        if advice:
            self._say(advice)

    def close(self) -> None:
        """See `Display.close`: a terminal's prompt begins on a line of its own."""
        with self._lock:
            self._connection, self._waiting = Connection(), ""
            self._break_line()


def _events(count: int) -> str:
    return "1 event" if count == 1 else f"{count} events"
