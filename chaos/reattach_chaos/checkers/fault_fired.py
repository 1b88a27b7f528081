"""I21, the fault fired: every planned fault came, where it was planned, behind the same bytes. Else nothing was proven: unknown.

This law is never broken by a client, so it is never `Invalid`.
"""

from reattach_chaos.checkers.ruling import Ruling, Unknown, Valid
from reattach_chaos.history import CutFired, CutMissed, CutPlanned, History


def check(history: History) -> Ruling:
    """Compare what fired with what was planned."""
    planned = history.of(CutPlanned)
    for cut in planned:
        fired = [record for record in history.of(CutFired) if record.cut == cut.cut]
        where = cut.position + (f" ({cut.phase})" if cut.phase else "")
        if not fired:
            missed = next((record.reason for record in history.of(CutMissed) if record.cut == cut.cut), "")
            return Unknown(f"inconclusive: {cut.fault} {where} did not fire" + (f": {missed}" if missed else ""))
        if fired[0].position != cut.position:
            return Unknown(f"inconclusive: {cut.fault} was planned {where} and fired {fired[0].position}")
        if cut.prefix_sha256 is not None and fired[0].prefix_sha256 != cut.prefix_sha256:
            return Unknown(f"inconclusive: the bytes before {cut.fault} {where} were not those of the clean pass")
    return Valid(len(planned))
