"""I10, no work by watching: the server did as much as in the same run without any fault, its twin."""

from reattach_chaos.checkers.ruling import Invalid, Ruling, Valid
from reattach_chaos.history import Counts, History


def check(history: History) -> Ruling:
    """Compare the counts of the case with those of its twin."""
    case = next((record for record in history.of(Counts) if record.of == "case"), None)
    twin = next((record for record in history.of(Counts) if record.of == "twin"), None)
    if case is None or twin is None:
        return Valid()
    for what, many, usual in (("calls", case.calls, twin.calls), ("events", case.events, twin.events)):
        if many != usual:
            sentence = f"the server made {many} {what}, and {usual} without faults"
            return Invalid(anomaly="double effect" if many > usual else "lost", sentence=sentence, witness=(twin, case))
    return Valid(2)
