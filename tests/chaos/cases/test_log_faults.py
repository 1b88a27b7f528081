"""A log that expires, or is replaced, while our client follows it: it is told, and what is left is shown."""

import pytest

from chaos_cases import faults, played
from reattach_chaos.history import Logged, Server, Surfaced
from reattach_chaos.schedules import Fault, Place, Planned, at


def _changed(fault, keep):
    place = at(Place.AFTER_EVENT, 2)
    return faults(Planned(fault=fault, at=place, settings={"keep": keep}), Planned(fault=Fault.FIN, at=place))


EXPIRED, EMPTIED = _changed(Fault.EXPIRE, 2), _changed(Fault.EXPIRE, 0)
REPLACED, KEPT = _changed(Fault.NEW_EPOCH, 1), _changed(Fault.NEW_EPOCH, 4)


@pytest.fixture(scope="module")
def cases():
    return played(EXPIRED, EMPTIED, REPLACED, KEPT, seed=3)


@pytest.mark.parametrize(
    ("schedule", "did"), [(EXPIRED, "expired"), (EMPTIED, "expired"), (REPLACED, "epoch"), (KEPT, "epoch")]
)
def test_a_log_changes_and_the_client_tells_it(cases, schedule, did):
    """Both faults fired, the server's deed is in the history, a gap was told behind it, and no law is broken."""
    case = cases[schedule.id]
    assert case.verdict.word == "valid", case.verdict.sentence()
    assert case.verdict.fired == case.verdict.planned == 2
    (done,) = case.history.of(Server)
    (gap,) = case.history.of(Surfaced)
    assert (done.did, gap.what) == (did, "gap")
    assert done.n < gap.n


def test_all_that_ever_was_in_the_log_is_the_truth(cases):
    """What has expired is there once; of a replaced log both are."""
    assert len(cases[EXPIRED.id].history.of(Logged)) == 9
    assert len({record.epoch for record in cases[REPLACED.id].history.of(Logged)}) == 2
