"""The checkers: one law, one file; each a pure function from a history to a ruling. Composed to the verdict of a case and of a run.

    from reattach_chaos.checkers import judge, RunVerdict, coverage

Start with `no_loss.py`, and `losses.py` for why each loss has one law that tells it. Never here: a wait, a file, anything that
the client decides; a checker that shares the client's rule shares its bug.
"""

from reattach_chaos.checkers.coverage import Coverage, Tally, coverage
from reattach_chaos.checkers.laws import LAWS
from reattach_chaos.checkers.no_loss import NOTHING_PLAYED
from reattach_chaos.checkers.ruling import Anomaly, Invalid, Law, Ruling, Unknown, Valid
from reattach_chaos.checkers.verdict import EXIT_CODES, CaseVerdict, RunVerdict, judge

__all__ = [
    "NOTHING_PLAYED",
    "judge", "CaseVerdict", "RunVerdict", "EXIT_CODES", "coverage", "Coverage", "Tally",
    "LAWS", "Law", "Ruling", "Valid", "Invalid", "Unknown", "Anomaly",
]  # fmt: skip
