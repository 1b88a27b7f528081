"""A record as a row that a person reads: connection, who, what, and of what. The one place where records get words."""

from typing import NamedTuple

from reattach_chaos.history import (
    Applied,
    Backoff,
    Close,
    Committed,
    Connect,
    CutFired,
    CutMissed,
    CutPlanned,
    Delivered,
    Discarded,
    Effect,
    Exited,
    Finished,
    Head,
    Logged,
    Other,
    Received,
    Record,
    Request,
    Resume,
    ResumeEnd,
    ResumeOk,
    ResumeRejected,
    Said,
    Server,
    Status,
    Store,
    Surfaced,
)
from reattach_chaos.schedules import Fault


class Row(NamedTuple):
    """One line of a table of records."""

    at_ms: float
    conn: str
    who: str
    what: str
    of: str


def row(record: Record) -> Row:
    """Return a record in words."""
    what, of = _words(record)
    who = f"{record.who} {record.life}" if record.life > 1 else record.who
    return Row(record.at_ms, "" if record.conn is None else str(record.conn), who, what, of)


def fault_words(word: str) -> str:
    """Return what a person calls a fault; a word that is none stays as it is."""
    try:
        return Fault(word).traits.words
    except ValueError:
        return word


def place_words(position: str, sequence: int | None) -> str:
    """Return where a fault came, as a person says it."""
    words = position.replace("-", " ")
    return words if sequence is None else f"{words} {sequence}"


def _id(name: str) -> str:
    return name or "(no id)"


def _words(record: Record) -> tuple[str, str]:
    match record:
        case CutPlanned():
            return "plan", f"{fault_words(record.fault)} {place_words(record.position, record.sequence)}"
        case CutFired():
            return fault_words(record.fault), f"{place_words(record.position, record.sequence)} (fired)"
        case CutMissed():
            return "missed", f"fault {record.cut}: {record.reason}"
        case Connect():
            return ("connect" if record.ok else "refused"), record.instance or ""
        case Request():
            return "request", f"{record.method} {record.target or record.route}" + (
                f" key {record.key}" if record.key else ""
            )
        case Head():
            return "answer", f"{record.status} {record.media}".strip()
        case Resume():
            return "attach", "from the beginning" if record.after is None else f"after {record.after}"
        case ResumeOk():
            return "attached", f"after {record.cursor}" if record.cursor is not None else ""
        case ResumeEnd():
            return "ended", "the stream, in good order"
        case ResumeRejected():
            return "rejected", f"{record.status} {record.code}".strip()
        case Received():
            return "received", _id(record.id) + ("" if record.whole else " (not whole)")
        case Close():
            return "close", f"{record.how} by {record.by}"
        case Delivered():
            return "rendered", _id(record.id) + (" (marked redelivered)" if record.redelivered else "")
        case Committed() | Applied():
            return record.kind, _id(record.id)
        case Discarded():
            return "discarded", f"{_id(record.id)} ({record.reason})"
        case Backoff():
            return "wait", f"{record.delay_ms:.0f} ms, attempt {record.attempt}"
        case Surfaced():
            between = f" after {record.after}" if record.after is not None else ""
            return record.what, f"{record.reason}{between}"
        case Finished():
            return "finished", record.status
        case Exited():
            return "exited", "its time was up" if record.code is None else f"code {record.code}"
        case Said():
            return "said", record.text
        case Logged():
            return "logged", f"{record.cursor} {record.type}".strip()
        case Status():
            return "status", record.status + (f", newest {record.head}" if record.head is not None else "")
        case Server():
            return "server", record.did + (f" up to {record.until}" if record.until is not None else "")
        case Store():
            return "store", f"{record.operation} {record.did}"
        case Effect():
            return "effect", record.operation_id
        case Other():
            return record.name, ""
        case _:
            return record.kind, ""
