"""A process dies by SIGKILL in a step of a workflow, of DBOS or Temporal, and another goes on; what it lives: `agent_lives.py`.

The points are those of `test_agent_killed.py`, and two of each step of the workflow: where it begins, and where all that it says
is in the log and the engine has yet to hear of it.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_checks import check_death, check_whole
from agent_lives import Nursery, On, lines
from engines_stage import address_of

ENGINES = ("dbos", "temporal")
POINTS = 112  # of one undisturbed life; see test_a_life_without_a_death
UNRECORDED = 63  # the second turn and its calls are in the log, and its step is not recorded
PARTS = 4  # of the long enumeration, so that two processes share it
ELSEWHERE = re.compile(r"publish |append .*_0\.[123]$|published .*_0\.[123]$")
"""What our own loop's test dies at too and no engine has to do with: before a wake-up, within a sentence."""


@pytest.fixture(params=ENGINES)
def on(request: pytest.FixtureRequest) -> On:
    return On(request.param, address_of(request.param))


@pytest.fixture
def nursery(on: On) -> Iterator[Nursery]:
    with Nursery(f"reattach_mockserver.engines.{on.engine}") as started:
        yield started


def test_a_step_that_was_killed_before_it_was_recorded_is_done_again_and_changes_nothing(
    nursery: Nursery, on: On, tmp_path: Path
) -> None:
    """RS-45, RS-46, RS-61, RS-62: no event twice, no hole, no effect twice, no model asked for a turn that is there."""
    check_death(nursery, tmp_path / "life", UNRECORDED, on)
    (point,) = lines(tmp_path / "life" / "deaths")
    assert point == "done turn.1"


@pytest.mark.slow
def test_a_life_without_a_death(nursery: Nursery, on: On, tmp_path: Path) -> None:
    """It has so many points, and the steps of the workflow among them; each turn is asked for once, each tool is used once."""
    assert not nursery.live(tmp_path, on=on)
    points = lines(tmp_path / "points")
    assert len(points) == POINTS
    steps = [re.sub("[0-9a-f]{20}", "", point.removeprefix("begin ")) for point in points if point.startswith("begin ")]
    first = ["turn.0", "call.call__0_0", "call.call__0_1", "call.call__0_2", "turn.1", "call.call__1_0", "turn.2"]
    assert sorted(steps) == sorted([*first, "turn.0", "call.call__1_1", "turn.1"])
    check_whole(tmp_path, unknown=False)
    assert lines(tmp_path / "asked") == ["0", "1", "2"]
    assert not nursery.live(tmp_path, on=on), "another life finds nothing to do"
    check_whole(tmp_path, unknown=False)
    assert lines(tmp_path / "asked") == ["0", "1", "2"]


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_a_death_at_any_point_changes_nothing(nursery: Nursery, on: On, tmp_path: Path, part: int) -> None:
    """RS-45, RS-46, RS-61, RS-62: log, effects, model calls and what a client saw, for a death at every point of an engine's."""
    (tmp_path / "life").mkdir()
    nursery.live(tmp_path / "life", on=on)
    points = [
        number for number, point in enumerate(lines(tmp_path / "life" / "points"), 1) if not ELSEWHERE.match(point)
    ]
    assert len(points) > POINTS // 2
    for dies_at in points[part::PARTS]:
        check_death(nursery, tmp_path / str(dies_at), dies_at, on)


@pytest.mark.slow
def test_dying_again_and_again_is_no_more_than_dying_once(nursery: Nursery, on: On, tmp_path: Path) -> None:
    """RS-62: each process gets a little further, and the last one to the end."""
    deaths = 0
    while nursery.live(tmp_path, 29, on):
        deaths += 1
        assert deaths < 20, "the run makes no progress"
    assert deaths > 1
    check_whole(tmp_path, unknown=None)
