"""A log that expires, or is replaced, while our client follows it: it is told, and what is left is shown."""

import asyncio
from contextlib import suppress

import pytest

from chaos_cases import SESSION, faults, played
from reattach_chaos.cases.servers.deeds import Deeds
from reattach_chaos.cases.servers.ways import Ways
from reattach_chaos.gate.cuts import Exchange
from reattach_chaos.history import Logged, Recorder, Server, Surfaced
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


def test_what_was_begun_is_done_to_its_end_and_told_also_where_the_client_has_left(tmp_path):
    """The server had been asked for it: what becomes of its log is known, or the client would be blamed for it."""

    class Slow:
        """A server that takes its time, and does it."""

        asked, answers = asyncio.Event(), asyncio.Event()

        async def settled(self, run, limit_s):
            return {"status": "completed"}

        async def log(self, run):
            return list(SESSION.runs[0].events)

        async def new_epoch(self, run, keep):
            self.asked.set()
            await self.answers.wait()
            return "e2"

    async def play():
        recorder, control = Recorder(), Slow()
        async with Deeds(control, recorder, None, Ways(REPLACED, tmp_path), REPLACED) as deeds:
            changed = asyncio.create_task(deeds.perform(REPLACED.faults[0], Exchange(run="r")))
            await control.asked.wait()
            changed.cancel()
            with suppress(asyncio.CancelledError):
                await changed
            control.answers.set()
            await deeds.over()
        return recorder.history()

    (done,) = asyncio.run(play()).of(Server)
    assert (done.did, done.epoch) == ("epoch", "e2")
