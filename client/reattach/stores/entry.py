"""A journal element: one committed event as JSON text, written without parsing the vendor's payload again.

    {"id":…,"type":…,"kind":…,"text":…,"cursor":…,"sequence":…,"time":…,"dedupe":…,"settles":true, "event":{the vendor's, verbatim}}

`event` holds a payload whose `data` is its member (native); `data` in its place holds a payload that is the data. Members that
are empty are left out. Pure functions; shared by all stores, so that each keeps the same text.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from json.encoder import encode_basestring_ascii
from typing import Any

from reattach.core.messages import Arrival
from reattach.core.payload import instant
from reattach.model import (
    Event,
    Gap,
    Kind,
    Operation,
    Outcome,
    Problem,
    RequiredAction,
    Status,
)

quote = encode_basestring_ascii
"""ASCII alone: a vendor may cut an emoji in two, and half a surrogate pair is no UTF-8."""


def element(arrival: Arrival) -> str:
    """Return the journal element of one event as one line of JSON text."""
    # Taken apart once: every event passes here, and a look-up of a member each costs as much as the text that is made of it.
    id, _, _, sequence, cursor, dedupe, digest, type, kind, text, time, _, stored, wrapped, outcome = arrival
    text = f',"text":{quote(text)}' if text else ""
    cursor = f',"cursor":{quote(cursor)}' if cursor is not None else ""
    number = f',"sequence":{sequence}' if sequence is not None else ""
    time = f',"time":{quote(time)}' if time is not None else ""
    dedupe = f',"dedupe":{quote(dedupe)}' if dedupe != id else ""
    settles = ',"settles":true' if outcome is not None else ""
    payload = "event" if wrapped else "data"
    return (
        f'{{"id":{quote(id)},"type":{quote(type)},"kind":"{kind}"{text}{cursor}{number}{time}{dedupe}{settles},'
        f'"digest":"{digest.hex()}","{payload}":{stored}}}'
    )


def bare_element(arrival: Arrival) -> str:
    """Return the element of an event of which only its place is kept (keep="cursor"): nothing of what it says is in it.

    `{"id":…,"type":…,"kind":…,"epoch":…,"cursor":…,"sequence":…}`: enough to go on after it.
    """
    told = {"id": arrival.id, "type": arrival.type, "kind": arrival.kind, "epoch": arrival.epoch}
    return json.dumps({**told, "cursor": arrival.cursor, "sequence": arrival.sequence}, separators=(",", ":"))


def pruned_element(until: str | None, missing: int | None) -> str:
    """Return the element of the gap that pruning leaves."""
    return gap_element(Gap(run_id="", reason="expired", after=None, until=until, missing=missing, snapshot=None))


def gap_element(gap: Gap) -> str:
    """Return the journal element of a gap."""
    return json.dumps(
        {
            "id": f"gap:{gap.until or gap.after or ''}",
            "type": "gap",
            "kind": "gap",
            "cursor": gap.until,
            "gap": {
                "reason": gap.reason,
                "after": gap.after,
                "until": gap.until,
                "missing": gap.missing,
                "snapshot": gap.snapshot,
            },
        }
    )


def event_of(stored: Mapping[str, Any], run_id: str, position: int, *, redelivered: bool = False) -> Event:
    """Return the event of a journal element."""
    told = stored.get("gap")
    gap = Gap(run_id=run_id, **told) if told else None
    wrapped = stored.get("event")
    time = stored.get("time")
    return Event(
        id=stored["id"],
        run_id=run_id,
        type=stored["type"],
        data=wrapped["data"] if wrapped is not None else stored.get("data"),
        kind=stored["kind"],
        text=stored.get("text", ""),
        sequence=stored.get("sequence"),
        cursor=stored.get("cursor"),
        time=instant(time) if time else None,
        settles=stored.get("settles", False),
        redelivered=redelivered,
        gap=gap,
        position=position,
    )


class _Unfrozen:
    """An `Event` that is being filled: it has the same slots, so that it becomes one by its class alone."""

    __slots__ = Event.__slots__
    id: str
    run_id: str
    type: str
    data: Any
    kind: Kind
    text: str
    sequence: int | None
    cursor: str | None
    time: datetime | None
    settles: bool
    redelivered: bool
    gap: Gap | None
    position: int


def event_from(arrival: Arrival, run_id: str, position: int) -> Event:
    """Return the event of an arrival that was just committed: the same as `event_of` of its element.

    Every event passes here, and a frozen dataclass's own constructor costs more than parsing the event's JSON.
    """
    event = _Unfrozen()
    event.id, _, _, event.sequence, event.cursor, _, _, event.type, event.kind, event.text, time, data, _, _, end = (
        arrival
    )
    event.run_id = run_id
    event.data = data
    event.time = instant(time) if time else None
    event.settles = end is not None
    event.redelivered = False
    event.gap = None
    event.position = position
    event.__class__ = Event  # type: ignore[assignment]  # the same layout, which Python itself checks here
    return event  # type: ignore[return-value]


def outcome_json(outcome: Outcome) -> str:
    """Return an outcome as JSON text, without what the journal holds anyway (text, gaps)."""
    return json.dumps(
        {
            "status": outcome.status.value,
            "result": outcome.result,
            "problem": _plain(outcome.problem, "code", "message", "data"),
            "required_actions": [
                _plain(
                    each, "id", "kind", "tool", "arguments", "source_event_id", "operation_id", "thread", "resolution"
                )
                | {"expires_at": each.expires_at.isoformat() if each.expires_at else None}
                for each in outcome.required_actions
            ],
            "operations": [
                _plain(each, "id", "tool", "status", "reversible", "run_id", "result", "external")
                for each in outcome.operations
            ],
            "release": outcome.release,
            "evidence": outcome.evidence,
        }
    )


def outcome_of(text: str, run_id: str) -> Outcome:
    """Return the outcome that `outcome_json` wrote."""
    told = json.loads(text)
    problem = told["problem"]
    return Outcome(
        run_id=run_id,
        status=Status(told["status"]),
        result=told["result"],
        problem=Problem(**problem) if problem else None,
        required_actions=tuple(
            RequiredAction(**{**each, "expires_at": instant(each["expires_at"]) if each["expires_at"] else None})
            for each in told["required_actions"]
        ),
        operations=tuple(Operation(**each) for each in told["operations"]),
        release=told["release"],
        evidence=told["evidence"],
    )


def _plain(value: Any, *names: str) -> dict[str, Any]:
    return {name: getattr(value, name) for name in names} if value is not None else {}
