"""Many cases side by side, and the line that is written meanwhile."""

import asyncio
import io

import pytest

from chaos_cases import faults
from reattach_chaos.cases.batch import batch
from reattach_chaos.cases.progress import Progress
from reattach_chaos.checkers import CaseVerdict
from reattach_chaos.history import History
from reattach_chaos.report import Played

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend():
    return "asyncio"


def case(schedule, trouble=""):
    return Played(schedule=schedule, history=History([]), verdict=CaseVerdict(case=schedule.id, trouble=trouble))


async def test_the_cases_come_back_in_the_order_of_their_schedules():
    """Whichever ends first."""
    first_may_end = asyncio.Event()
    told = []

    async def play(schedule):
        if schedule.seed == 0:
            await first_may_end.wait()
        else:
            first_may_end.set()
        return case(schedule)

    found = await batch(
        [faults(seed=n) for n in range(4)], play, lambda each: told.append(each.schedule.seed) or each, jobs=2
    )
    assert [each.schedule.seed for each in found] == [0, 1, 2, 3]
    assert told[0] == 1


async def test_no_more_than_the_jobs_are_played_at_a_time():
    now, most = 0, 0

    async def play(schedule):
        nonlocal now, most
        now += 1
        most = max(most, now)
        await asyncio.sleep(0)
        now -= 1
        return case(schedule)

    await batch([faults(seed=n) for n in range(9)], play, lambda each: each, jobs=3)
    assert most == 3


async def test_with_fail_fast_nothing_begins_after_the_first_bad_case():
    async def play(schedule):
        return case(schedule, "broken" if schedule.seed == 1 else "")

    found = await batch([faults(seed=n) for n in range(9)], play, lambda each: each, jobs=1, fail_fast=True)
    assert [each.schedule.seed for each in found] == [0, 1]


async def test_a_case_that_does_not_count_ends_nothing_and_is_not_among_them():
    """Such as one of a drawn schedule, whose faults did not all come."""

    async def play(schedule):
        return case(schedule, "came to nothing")

    kept = await batch(
        [faults(seed=n) for n in range(3)],
        play,
        lambda each: each if each.schedule.seed else None,
        jobs=1,
        fail_fast=True,
    )
    assert [each.schedule.seed for each in kept] == [1]


async def test_what_cannot_be_saved_is_raised_as_itself():
    """A full disk is told by its own error, which the command knows, and not in a group, which it would crash of."""

    async def play(schedule):
        return case(schedule)

    def done(each):
        raise OSError("no space left")

    with pytest.raises(OSError, match="no space left"):
        await batch([faults(seed=n) for n in range(3)], play, done, jobs=2)


def test_the_line_counts_what_was_played():
    """The surface page's words."""
    out = io.StringIO()
    progress = Progress(3, out)
    progress.played(case(faults()))
    progress.played(case(faults(), "broken"))
    progress.end()
    assert out.getvalue() == "cases 2/3 fired 2 invalid 0 unknown 1 0 s\n"
