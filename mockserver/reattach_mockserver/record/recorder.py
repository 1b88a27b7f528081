"""Records one run: each event of the client's loop, redacted and with its time, as a line of the tape.

The loop begins at the run's beginning every time; what the tape holds is compared and passed over. So the tape needs no mark of
its own, and a kill at any instruction costs nothing: the client has each event on disk before it hands it out.

An event's time is what the service says it is; where it says nothing, when it came. Time in which nobody recorded is not counted.

Where the rules come from: the surface page, section 5, Recording. Checked by tests/mockserver/record/test_recorder.py.
"""

import time
from collections.abc import Callable
from datetime import datetime
from typing import Any

from reattach.model import Event
from reattach_mockserver.record.redaction import Redactor
from reattach_mockserver.record.tape import Tape

_FOLDED = ("message.delta", "message.completed")
"""Our own types whose text is in their data."""


class Recorder:
    """Writes the events of one run, in order, from its first one.

    Args:
        tape: Where they go.
        redactor: What is taken out.
        native: Whether the run speaks our own protocol.
        timing: Whether a line says when its event came.
        ticks: Seconds, for events that have no time.

    Attributes:
        events: How many were taken, those included that the tape held before.
        written: How many of them are new on the tape.
        at_ms: When the last one came, from the first.
    """

    def __init__(
        self,
        tape: Tape,
        redactor: Redactor,
        *,
        native: bool = True,
        timing: bool = True,
        ticks: Callable[[], float] = time.monotonic,
    ) -> None:
        self._tape = tape
        self._redactor = redactor
        self._native = native
        self._timing = timing
        self._ticks = ticks
        self._began: datetime | None = None
        self._came: float | None = None
        self._offset_ms = 0
        self.events = 0
        self.written = 0
        self.at_ms = 0

    def take(self, event: Event) -> dict[str, Any] | None:
        """Record an event; return its line, None if the tape held it before.

        Raises:
            TapeError: The tape holds another one there.
            OSError: It cannot be written.
        """
        at_ms = self._when(event)
        line: dict[str, Any] = {"at_ms": at_ms} if self._timing else {}
        line |= {"id": self._redactor.text(event.id), "type": self._redactor.text(event.type)}
        data = self._redactor.value(event.data)
        # Every vendor's data are an object; a stream of plain values becomes one, so that it can be played.
        line["data"] = data if isinstance(data, dict) else {"value": data}
        if self._native and event.text and event.type not in _FOLDED:
            # By our own protocol a type that nobody knows says its text beside its data, and only such a type does.
            line["text"] = self._redactor.text(event.text)
        if event.text:
            name = event.data.get("message_id") if isinstance(event.data, dict) else None
            self._redactor.look_across(str(name), event.text)
        self.events += 1
        self.at_ms = at_ms
        if not self._tape.add(line):
            return None
        self.written += 1
        return line

    def _when(self, event: Event) -> int:
        if event.time is not None:
            self._began = self._began or event.time
            passed = round((event.time - self._began).total_seconds() * 1000)
        else:
            now = self._ticks()
            if self._came is None or self.events <= self._tape.length:
                # Those that were recorded before come at once, and so does the first one after them.
                self._came, self._offset_ms = now, max(self.at_ms, self._tape.last_ms if self.events else 0)
            passed = self._offset_ms + round((now - self._came) * 1000)
        return max(passed, self.at_ms)
