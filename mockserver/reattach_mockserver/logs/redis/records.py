"""Runs, events, effects and operations as Redis keeps them, and back. Pure."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal

from reattach_mockserver.event import SETTLED, Entry, Operation, Stored
from reattach_mockserver.logs.base import Effect, OperationRecord, RunRecord
from reattach_mockserver.logs.redis.keys import NOBODY

_FIELDS = {field.name for field in fields(RunRecord)}


@dataclass(frozen=True, slots=True)
class Row:
    """A run as it was read: its record, the version that a writer must find again, and the replica that plays it."""

    record: RunRecord
    version: str
    owner: str = NOBODY


def row_of(found: Sequence[bytes | None]) -> Row | None:
    """Return the run of a hash's `record`, `number`, `version`, `owner`; None if there is none."""
    text, number, version, owner = found
    if text is None:
        return None
    members = json.loads(text)
    # What a newer version of this code has added means nothing to this one, and is not taken away while both run: see `text_of`.
    known = {name: value for name, value in members.items() if name in _FIELDS}
    return Row(RunRecord(**{**known, "number": int(number or 0)}), (version or b"").decode(), (owner or b"").decode())


def text_of(record: RunRecord) -> str:
    """Return a record's text; its number is a field of its own, given when it is created."""
    return json.dumps(asdict(record), ensure_ascii=False, separators=(",", ":"))


def hash_of(row: Row) -> list[str]:
    """Return the fields and values of a run's hash, but for its number."""
    record = row.record
    return [
        "record", text_of(record), "version", row.version, "owner", row.owner, "principal", record.principal,
        "writer", str(record.writer), "settled", "1" if record.status in SETTLED else "0",
    ]  # fmt: skip


def stored_of(found: Sequence[bytes]) -> Stored:
    """Return an event as a script gave it."""
    sequence, id_, kind, settles, body = found
    return Stored(int(sequence), id_.decode(), kind.decode(), settles == b"1", body)


def stream_fields(entry: Entry, event: Stored) -> list[str | bytes]:
    """Return the fields of an event in its stream; scripts know their order."""
    return [
        "id", event.id, "step", entry.step, "type", event.type, "settles", "1" if event.settles else "0",
        "at", str(entry.at), "body", event.body,
    ]  # fmt: skip


def told_text(operation: Operation) -> str:
    """Return what an event tells of an operation, for a log that has not heard of it."""
    return json.dumps(
        {
            "tool": operation.tool,
            "status": operation.status,
            "reversible": operation.reversible,
            "external": operation.external,
            "waits": operation.waits,
            "result": None,
        }
    )


def operation_of(operation_id: str, found: dict[bytes, bytes]) -> OperationRecord | None:
    """Return what the newest run that used the id knows of the operation."""
    known = {run_id: json.loads(text) for run_id, text in found.items()}
    if not known:
        return None
    run_id = max(known, key=lambda each: known[each]["order"])
    told: dict[str, Any] = known[run_id]
    status: Literal["pending", "committed", "failed", "unknown"] = told["status"]
    return OperationRecord(
        run_id.decode(),
        operation_id,
        told["tool"],
        status,
        told.get("reversible"),
        told["external"],
        told["waits"],
        told.get("result"),
    )


def effect_text(effect: Effect) -> str:
    """Return an effect's text, as it is first kept."""
    members = {name: getattr(effect, name) for name in ("tool", "reversible", "attempts", "result")}
    return json.dumps(members)


def effect_of(run_id: str, operation_id: str, text: bytes) -> Effect:
    """Return an effect."""
    done = json.loads(text)
    return Effect(run_id, operation_id, done["tool"], done["reversible"], done["attempts"], done["result"])


def effects_of(run_id: str, found: dict[bytes, bytes]) -> tuple[Effect, ...]:
    """Return a run's effects, in the order in which they were done."""
    order = sorted(found.items(), key=lambda item: json.loads(item[1])["order"])
    return tuple(effect_of(run_id, operation_id.decode(), text) for operation_id, text in order)
