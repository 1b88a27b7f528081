"""One run of a `MemoryServer`: its log, as the protocol describes it, and everything that was ever in it.

Written from the protocol (epoch, numbers without holes, ids and predecessors, retention), not from the client. It knows no
connection and no time.
"""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

from reattach.testing import frames
from reattach.testing.answers import CallAnswer, refused

_CURSOR = re.compile(r"(e[0-9]+)\.(0|[1-9][0-9]*)\Z")


class Logged(NamedTuple):
    """One event as it is in the log: `text` is its JSON, the same on every delivery."""

    epoch: str
    sequence: int
    id: str
    prev_id: str | None
    type: str
    text: str

    @property
    def block(self) -> bytes:
        """The event as it travels on a stream."""
        return frames.block(self.text, id=f"{self.epoch}.{self.sequence}", event=self.type)

    def holds(self, data: Any) -> bool:
        """Whether this is the event's payload."""
        told: Any = json.loads(self.text)["data"]
        return bool(told == data)


class ModelRun:
    """A run and its log.

    Args:
        run_id: The run's id.
        key: The idempotency key that made it.
        request: The create's body, compared when the key comes again.
    """

    def __init__(self, run_id: str, key: str, request: bytes) -> None:
        self.id = run_id
        self.key = key
        self.request = request
        self.epoch = "e1"
        self.log: list[Logged] = []
        self.first = 1
        """The oldest sequence that is kept."""
        self.status = "running"
        self.result: Any = None
        self.session_id = "ses_1"
        self.release: str | None = None
        self.continues: str | None = None
        self.continued_by: str | None = None
        self.actions: dict[str, dict[str, Any]] = {}
        """What a pause waits for, by id."""
        self.responses: dict[str, Any] = {}
        """How it was answered."""
        self.ever: dict[str, Logged] = {}
        """Every event that was ever appended, by id."""
        self.happened: set[str] = set()
        """The reasons for which a client may be told of a gap: "expired", "epoch", "diverged"."""
        self.forgotten_id: str | None = None
        """The id of the event before the oldest that is kept."""
        self._epochs = 1
        self._made = 0

    @property
    def last(self) -> int:
        """The newest sequence."""
        return self.first - 1 + len(self.log)

    @property
    def settled(self) -> bool:
        """Whether the run has ended."""
        return self.status != "running"

    def at(self, sequence: int) -> Logged | None:
        """Return the event of a number, None where there is none (any more)."""
        index = sequence - self.first
        return self.log[index] if 0 <= index < len(self.log) else None

    def after(self, sequence: int) -> list[Logged]:
        """Return the events above a number, in order."""
        return self.log[max(0, sequence + 1 - self.first) :]

    def place(self, after: str | None) -> int | CallAnswer:
        """Return the number to go on after, or the refusal of the cursor; None is the beginning of the log."""
        if after == "earliest":
            return self.first - 1
        sequence = 0
        if after is not None:
            match = _CURSOR.match(after)
            if match is None:
                return refused(400, "cursor_malformed")
            if match[1] != self.epoch:
                return refused(410, "epoch_changed", epoch=self.epoch)
            sequence = int(match[2])
        if sequence < self.first - 1:
            return refused(410, "cursor_expired", first_sequence=self.first, last_sequence=self.last)
        if sequence > self.last:
            return refused(409, "cursor_ahead", last_sequence=self.last)
        return sequence

    def append(self, type: str = "message.delta", data: Any = None) -> Logged:
        """Append an event; a settling type ends the run."""
        sequence = self.last + 1
        self._made += 1
        before = self.log[-1].id if self.log else self.forgotten_id
        identity = f"evt_{self.id}_{self._made}"
        payload = {"message_id": "m1", "index": sequence - 1, "text": f"{self._made} "} if data is None else data
        told = frames.event_json(
            sequence, run_id=self.id, epoch=self.epoch, type=type, data=payload, id=identity, prev_id=before
        )
        event = Logged(self.epoch, sequence, identity, before, type, told)
        self.log.append(event)
        self.ever[identity] = event
        if type.startswith("run.") and type not in ("run.created", "run.started"):
            self.status = {"run.paused": "requires_action"}.get(type, type.removeprefix("run."))
            self.result = payload.get("result") if isinstance(payload, dict) else None
            if type == "run.paused" and isinstance(payload, dict):
                self.actions = {each["id"]: dict(each) for each in payload["required_actions"]}
        return event

    def trim(self, count: int) -> None:
        """Forget the oldest events; the newest is always kept."""
        count = min(count, len(self.log) - 1)
        if count > 0:
            self.forgotten_id = self.log[count - 1].id
            del self.log[:count]
            self.first += count
            self.happened.add("expired")

    def rotate(self, keep: int) -> None:
        """Begin a new epoch whose log begins with copies of the first `keep` events, under new ids."""
        kept = self.log[:keep]
        self._epochs += 1
        self.epoch = f"e{self._epochs}"
        self.log = []
        self.first = 1
        self.forgotten_id = None
        self.status = "running"
        self.happened |= {"epoch", "expired"}
        for event in kept:
            self.append(event.type, self.again(event))

    def again(self, event: Logged) -> Any:
        """Return what an event holds in a log that replaces its own: here something else, so that a mixture shows."""
        return {"message_id": "m1", "text": f"again {event.sequence} "}

    def lose(self, count: int) -> None:
        """Lose the newest events; the next ones get their numbers and the epoch stays."""
        count = min(count, len(self.log) - 1)
        if count > 0:
            del self.log[-count:]
            self.status = "running"
            self.happened.add("diverged")

    def told(self) -> dict[str, Any]:
        """Return the run as reads answer it."""
        more: dict[str, Any] = {"result": self.result} if self.status == "completed" else {}
        if self.actions:
            more["required_actions"] = list(self.actions.values())
        return frames.run_json(
            run_id=self.id,
            status=self.status,
            epoch=self.epoch,
            last=self.last,
            first_sequence=self.first,
            session_id=self.session_id,
            release=self.release,
            continues=self.continues,
            continued_by=self.continued_by,
            **more,
        )

    def snapshot(self) -> dict[str, Any]:
        """Return the state at the newest event."""
        newest = self.at(self.last)
        return frames.snapshot_json(
            self.last, epoch=self.epoch, status=self.status, cursor_id=newest.id if newest else self.forgotten_id
        )
