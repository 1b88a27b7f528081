"""A client's stdout lines as records: the contract of the surface page, section 3, and what our own clients say beyond it.

`rendered` is a showing; `gap`, `error` and `finished` are what the application was told; `committed`, `applied`, `acked` and
`lease` are a client's own words on its marks and on who may write, which only then are judged. All else is kept as `Said`.
"""

from collections.abc import Mapping
from typing import Any

from reattach_chaos.history.client import Acked, Applied, Committed, Delivered, Finished, Said, Surfaced
from reattach_chaos.history.content import content_sha256
from reattach_chaos.history.record import Record
from reattach_chaos.history.truth import Lease


def record_of(line: Any, *, who: str = "client", life: int = 1, run: str | None = None) -> Record:
    """Return what a line says, as a record without a time.

    Args:
        line: The line's JSON value, or its text where it is none.
        who: The client.
        life: The process's number.
        run: The run that the client follows.
    """
    if not isinstance(line, Mapping):
        return Said(text=str(line)[:1000], who=who, life=life, run=run)
    match line:
        case {"kind": "rendered", "id": str(name)}:
            sha256 = content_sha256(_data(line["data"])) if "data" in line else None
            redelivered = line.get("redelivered") is True
            return Delivered(id=name, sha256=sha256, redelivered=redelivered, who=who, life=life, run=run)
        case {"kind": "committed", "id": str(name)}:
            return Committed(id=name, token=_number(line.get("token")), who=who, life=life, run=run)
        case {"kind": "applied", "id": str(name)}:
            return Applied(id=name, token=_number(line.get("token")), who=who, life=life, run=run)
        case {"kind": "lease", "token": int(token)}:
            return Lease(token=token, who=who, life=life, run=run)
        case {"kind": "acked", "id": str(name)}:
            return Acked(id=name, who=who, life=life, run=run)
        case {"kind": "gap"}:
            return Surfaced(
                what="gap",
                reason=str(line.get("reason", "")),
                after=_text(line.get("after")),
                until=_text(line.get("until")),
                missing=_number(line.get("missing")),
                who=who,
                life=life,
                run=run,
            )
        case {"kind": "error"}:
            reason = str(line.get("code") or line.get("message") or "")
            return Surfaced(what="error", reason=reason, who=who, life=life, run=run)
        case {"kind": "finished", "status": str(status)}:
            evidence = line.get("evidence")
            proven = evidence if evidence in ("event", "status") else None
            return Finished(status=status, evidence=proven, who=who, life=life, run=run)
        case _:
            return Said(text=str(dict(line))[:1000], who=who, life=life, run=run)


def _data(data: Any) -> Any:
    """Return an event's data: a client may say the frame's whole JSON, or its member `data`."""
    whole = isinstance(data, Mapping) and {"id", "sequence", "type", "data"} <= set(data)
    return data["data"] if whole else data


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _number(value: Any) -> int | None:
    return value if type(value) is int else None
