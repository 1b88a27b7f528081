"""A client's stdout lines as records: the contract of `cases/README.md`, and what our own clients say beyond it.

`rendered` is a showing; `gap`, `error` and `finished` are what the application was told; `committed`, `applied`, `acked` and
`lease` are a client's own words on its marks and on who may write, which only then are judged. All else is kept as `Said`, also a
line whose id, status or number cannot be one.
"""

from collections.abc import Mapping
from typing import Any

from reattach_chaos.history.client import Acked, Applied, Committed, Delivered, Finished, Said, Surfaced
from reattach_chaos.history.content import content_sha256
from reattach_chaos.history.foreign import is_number, is_plain, printable
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
        return Said(text=printable(line), who=who, life=life, run=run)
    match line:
        case {"kind": "rendered", "id": str(name)} if is_plain(name):
            sha256 = content_sha256(_data(line["data"])) if "data" in line else None
            redelivered = line.get("redelivered") is True
            return Delivered(id=name, sha256=sha256, redelivered=redelivered, who=who, life=life, run=run)
        case {"kind": "committed", "id": str(name)} if is_plain(name):
            return Committed(id=name, token=_number(line.get("token")), who=who, life=life, run=run)
        case {"kind": "applied", "id": str(name)} if is_plain(name):
            return Applied(id=name, token=_number(line.get("token")), who=who, life=life, run=run)
        case {"kind": "lease", "token": token} if is_number(token):
            return Lease(token=token, who=who, life=life, run=run)
        case {"kind": "acked", "id": str(name)} if is_plain(name):
            return Acked(id=name, who=who, life=life, run=run)
        case {"kind": "gap"}:
            return Surfaced(
                what="gap",
                reason=printable(line.get("reason", "")),
                after=_text(line.get("after")),
                until=_text(line.get("until")),
                missing=_number(line.get("missing")),
                who=who,
                life=life,
                run=run,
            )
        case {"kind": "error"}:
            reason = printable(line.get("code") or line.get("message") or "")
            return Surfaced(what="error", reason=reason, who=who, life=life, run=run)
        case {"kind": "finished", "status": str(status)} if is_plain(status):
            evidence = line.get("evidence")
            proven = evidence if evidence in ("event", "status") else None
            return Finished(status=status, evidence=proven, who=who, life=life, run=run)
        case _:
            return Said(text=printable(dict(line)), who=who, life=life, run=run)


def _data(data: Any) -> Any:
    """Return an event's data: a client may say the frame's whole JSON, or its member `data`."""
    whole = isinstance(data, Mapping) and {"id", "sequence", "type", "data"} <= set(data)
    return data["data"] if whole else data


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and is_plain(value) else None


def _number(value: Any) -> int | None:
    return value if is_number(value) else None
