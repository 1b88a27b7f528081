"""Reads the frames of one native subscription: position and identity from the event's JSON, the frame's id only as a hint."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import Any

from reattach.core.messages import UNSTATED, Arrival, Closing, Opened, Received, Refusal, Refused, Why
from reattach.core.payload import digest_of, encodable
from reattach.model import Event
from reattach.profiles.base import Told
from reattach.profiles.native_values import (
    CURSOR,
    KINDS,
    NESTING,
    SETTLING,
    json_object,
    json_scan,
    maybe,
    maybe_int,
    outcome,
)
from reattach.wire.frame import Frame

LONGEST_BEAT = 3_600_000  # ms; what a server states beyond an hour, or in numbers that are none, is not believed

_new = tuple.__new__  # a NamedTuple's own constructor is a Python function; every event passes here
_members = itemgetter("id", "prev_id", "sequence", "type", "time", "run_id", "data")


def _doubts(data: dict[str, Any]) -> tuple[str, ...]:
    """Say what a server of an older text, or a newer one, leaves unproven."""
    found = []
    version = data.get("protocol")
    if version is None:
        found.append("the server does not name its protocol's version; it is taken for 1")
    elif version != 1:
        found.append(f"the server speaks version {str(version)[:20]} of the protocol; what is new in it is passed over")
    if "cursor_id" not in data:
        found.append(
            "the server does not name the event at the cursor: another log under the same numbers may go unnoticed"
        )
    return tuple(found)


class NativeReader:
    """Reads the frames of one subscription; remembers the epoch that the stream stated and which messages had deltas."""

    def __init__(self, run_id: str) -> None:
        self._run_id = run_id
        self._epoch: str | None = None
        self._growing: set[str] = set()

    def recall(self, events: Iterable[Arrival | Event]) -> None:
        """Take in which of the newest messages already gave their text in deltas."""
        for event in events:
            if isinstance(event.data, dict):
                self._added(event.type, event.data)

    def read(self, frames: Sequence[Frame]) -> tuple[Told, ...]:
        """Return what the frames say, in order, neighbouring events in one `Received`."""
        told: list[Told] = []
        batch: list[Arrival] = []
        at, size = 0, len(frames)
        usual = True
        while at < size:
            if usual:
                begin, at = at, self._plain(frames, at, batch)
                usual = at > begin  # a server whose every event is unusual is not looked at twice
                if at == size:
                    break
            frame = frames[at]
            at += 1
            if frame.event.startswith("stream."):
                control = self._control(frame)
                if control is None:
                    continue
                if batch:
                    told.append(Received(tuple(batch)))
                    batch = []
                told.append(control)
                if isinstance(control, Refused):
                    return tuple(told)
                continue
            arrival = self._arrival(frame)
            if isinstance(arrival, Refusal):
                if batch:
                    told.append(Received(tuple(batch)))
                told.append(Refused(arrival))
                return tuple(told)
            if arrival is not None:
                batch.append(arrival)
        if batch:
            told.append(Received(tuple(batch)))
        return tuple(told)

    def _plain(self, frames: Sequence[Frame], begin: int, batch: list[Arrival]) -> int:
        """Read from `begin` on what is in every way as usual; return where it is not, for `_arrival` to judge.

        Of the many events of a replay almost all are: what `_arrival` would say of each, at less than half the price.
        """
        epoch, run_id = self._epoch, self._run_id
        if epoch is None:
            return begin
        scan, members, add, new = json_scan, _members, batch.append, _new
        for at in range(begin, len(frames)):
            event, stored, hint = frames[at]
            if event[:7] == "stream.":
                return at
            if len(stored) > 2 * NESTING and stored.count("{") + stored.count("[") > NESTING:
                return at
            try:
                told, end = scan(stored, 0)
                identity, prev, sequence, type_, time, told_run, data = members(told)
            except (StopIteration, ValueError, LookupError, TypeError, RecursionError):
                return at
            kind = KINDS.get(type_) if type(type_) is str else None
            if (
                end != len(stored)
                or kind is None
                or kind == "end"
                or told_run != run_id
                or type(sequence) is not int
                or sequence < 1
                or hint != f"{epoch}.{sequence}"
                or type(identity) is not str
                or not identity.isascii()
                or type(time) is not str
                or not (type(prev) is str or prev is None)
            ):
                return at
            added = self._added(type_, data) if (kind == "text" or kind == "message") and type(data) is dict else ""
            add(
                new(
                    Arrival,
                    (
                        identity,
                        prev,
                        epoch,
                        sequence,
                        hint,
                        identity,
                        digest_of(stored),
                        type_,
                        kind,
                        added,
                        time,
                        data,
                        stored,
                        True,
                        None,
                    ),
                )
            )
        return len(frames)

    def _control(self, frame: Frame) -> Opened | Closing | Refused | None:
        try:
            data = json_object(frame.data)
        except ValueError:
            return None  # a newer server's frame; clients ignore what they do not know
        if frame.event == "stream.closing":
            return Closing(str(data.get("reason") or "max_age"))
        return self.attached(data) if frame.event == "stream.attached" else None

    def attached(self, data: dict[str, Any]) -> Opened | Refused:
        """Read where the stream begins."""
        run_id = data.get("run_id")
        if run_id is not None and run_id != self._run_id:
            return Refused(Refusal(Why.FOREIGN, f"a stream of another run ({str(run_id)[:80]!r})"))
        cursor = maybe(data, "cursor")
        place = CURSOR.match(cursor) if cursor else None
        epoch = maybe(data, "epoch") or (place[1] if place else None)
        if (cursor and place is None) or (epoch is not None and CURSOR.match(f"{epoch}.0") is None):
            # It would be sent back in a header: judged before it is kept, or every later attach fails for its sake (B10).
            return Refused(
                Refusal(Why.FOREIGN, f"a stream with cursor {str(cursor)[:80]!r} of epoch {str(epoch)[:80]!r}")
            )
        self._epoch = epoch
        beat = data.get("heartbeat_ms")
        known = isinstance(beat, int | float) and not isinstance(beat, bool) and 0 < beat < LONGEST_BEAT
        heartbeat = beat / 1000.0 if known and beat is not None else None
        cursor_id = data.get("cursor_id", UNSTATED)
        return Opened(
            self._epoch,
            cursor,
            int(place[2]) if place else None,
            cursor_id if cursor_id is None or isinstance(cursor_id, str) else UNSTATED,
            maybe_int(data, "last_sequence"),
            heartbeat,
            _doubts(data),
        )

    def _arrival(self, frame: Frame) -> Arrival | Refusal | None:
        _, text, hint = frame
        try:
            told = json_object(text)
        except ValueError as error:
            if not hint:
                return None
            return Refusal(Why.FOREIGN, f"event {hint!r} is not JSON: {error}")
        return self.arrival(told, text, hint)

    def arrival(self, told: dict[str, Any], stored: str, hint: str) -> Arrival | Refusal | None:
        """Read one event.

        Args:
            told: The event's JSON object.
            stored: Its text, as it came.
            hint: The cursor that came beside it, "" for none.
        """
        get = told.get
        sequence, identity, type_ = get("sequence"), get("id"), get("type")
        if type(sequence) is not int or type(identity) is not str or type(type_) is not str or sequence < 1:
            if not hint:
                return None
            return Refusal(Why.FOREIGN, f"event {hint!r} has no id, sequence and type")
        if not identity.isascii() and not encodable(identity):
            return Refusal(Why.FOREIGN, f"event {hint!r} has an id that cannot be kept: {identity[:80]!r}")
        epoch = self._epoch
        cursor = f"{epoch}.{sequence}"
        if hint != cursor and hint:
            place = CURSOR.match(hint)
            if place is not None and int(place[2]) != sequence:
                return Refusal(Why.FOREIGN, f"the frame's id {hint!r} disagrees with its event's sequence {sequence}")
            if place is not None:
                epoch, cursor = place[1], hint  # no stated epoch, or another in mid-stream: admission says so
        run_id = get("run_id")
        if run_id != self._run_id and run_id is not None:
            return Refusal(Why.FOREIGN, f"an event of another run ({run_id!r})")
        data, time, prev = get("data"), get("time"), get("prev_id", UNSTATED)
        kind = KINDS.get(type_)
        added = ""
        if kind is None:
            extra = get("text")
            added = extra if type(extra) is str else ""
            kind = "text" if added else "other"
        elif (kind == "text" or kind == "message") and type(data) is dict:
            added = self._added(type_, data)
        settling = SETTLING.get(type_) if kind == "end" else None
        return _new(
            Arrival,
            (
                identity,
                prev if type(prev) is str or prev is None else UNSTATED,
                epoch,
                sequence,
                None if epoch is None else cursor,
                identity,
                digest_of(stored),
                type_,
                kind,
                added,
                time if type(time) is str else None,
                data,
                stored,
                True,
                None if settling is None else outcome(self._run_id, settling, data, "event"),
            ),
        )

    def _added(self, type_: str, data: dict[str, Any]) -> str:
        """Return what an event adds to the visible text: a whole message adds it only if no delta of it came before."""
        if type_ == "message.delta":
            message = data.get("message_id")
            self._growing.add(message if type(message) is str else str(message))
            text = data.get("text")
            return text if type(text) is str else ""
        if type_ == "message.completed":
            identity = str(data.get("message_id"))
            if identity in self._growing:
                self._growing.discard(identity)
                return ""
            text = data.get("text")
            return text if type(text) is str else ""
        return ""
