"""I24, fenced: once a lease was taken over, nothing is written under the old token: no commit, no mark."""

from reattach_chaos.checkers.reading import named
from reattach_chaos.checkers.ruling import Invalid, Ruling, ruled
from reattach_chaos.history import Applied, Committed, History, Lease


def check(history: History) -> Ruling:
    """Compare the token of each write with the newest lease of that instant."""
    newest: dict[tuple[str, str | None], Lease] = {}
    found: list[Invalid] = []
    compared = 0
    for record in history if history.of(Lease) else ():
        lease = newest.get((record.who, record.run))
        if isinstance(record, Lease):
            if lease is None or record.token > lease.token:
                newest[record.who, record.run] = record
        elif isinstance(record, Committed | Applied) and record.token is not None and lease is not None:
            compared += 1
            if record.token < lease.token:
                told = f"{record.kind} under token {record.token}, after {lease.token} was given out"
                sentence = f"{named(record.id)} was {told}"
                found.append(Invalid(anomaly="stale write", sentence=sentence, witness=(lease, record)))
    return ruled(found, compared)
