"""I26, caused store error: an error of the store is told only when a store failed, or its lease was taken over."""

from reattach_chaos.checkers.reading import CLIENT, code
from reattach_chaos.checkers.ruling import Invalid, Ruling, ruled
from reattach_chaos.history import History, Lease, Store, Surfaced

STORE_ERRORS = frozenset({"commit_failed", "lease_lost", "store_busy", "journal_damaged", "store_error"})
"""Codes of errors that blame the store."""


def check(history: History) -> Ruling:
    """Look for the cause of each error that blames the store."""
    blamed = [
        record
        for record in history.of(Surfaced)
        if record.who == CLIENT and record.what == "error" and code(record) in STORE_ERRORS
    ]
    causes = [
        *(each.n for each in history.of(Store) if each.did != "recovered"),
        *(each.n for each in history.of(Lease)[1:]),
    ]
    found = [
        Invalid(
            anomaly="false error",
            sentence=f"the client blamed its store ({record.reason}), and none had failed",
            witness=(record,),
        )
        for record in blamed
        if not any(cause < record.n for cause in causes)
    ]
    return ruled(found, len(blamed))
