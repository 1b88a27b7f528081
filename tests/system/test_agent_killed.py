"""An agent's process kills itself at every append, publish, claim, execute, record step, and another goes on with its log."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_checks import check_death, check_whole
from agent_lives import Nursery, lines

POINTS = 92  # of one undisturbed life; see test_a_life_without_a_death


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    with Nursery() as started:
        yield started


def test_a_life_without_a_death(nursery: Nursery, tmp_path: Path) -> None:
    """RS-38, RS-40, RS-45: it has so many points; each turn is asked for once, each tool is used once."""
    assert not nursery.live(tmp_path)
    assert len(lines(tmp_path / "points")) == POINTS
    check_whole(tmp_path, unknown=False)
    assert lines(tmp_path / "asked") == ["0", "1", "2"]
    assert len(lines(tmp_path / "mail_attempts")) == 1
    assert not nursery.live(tmp_path), "another life finds nothing to do"
    check_whole(tmp_path, unknown=False)
    assert lines(tmp_path / "asked") == ["0", "1", "2"]


@pytest.mark.parametrize("dies_at", [12, 24, 43, 57, 58, 73])
def test_a_death_changes_nothing(nursery: Nursery, tmp_path: Path, dies_at: int) -> None:
    """RS-45, RS-46, RS-61, RS-62: at some points; at all of them in the slow run."""
    check_death(nursery, tmp_path / "life", dies_at)


@pytest.mark.slow
def test_a_death_at_any_point_changes_nothing(nursery: Nursery, tmp_path: Path) -> None:
    """RS-45, RS-46, RS-61, RS-62: log, effects, model calls and what a client saw, for a death at every point there is."""
    for dies_at in range(1, POINTS + 1):
        check_death(nursery, tmp_path / str(dies_at), dies_at)


def test_dying_again_and_again_is_no_more_than_dying_once(nursery: Nursery, tmp_path: Path) -> None:
    """RS-62: each process gets a little further, and the last one to the end."""
    deaths = 0
    while nursery.live(tmp_path, 29):
        deaths += 1
        assert deaths < 20, "the run makes no progress"
    assert deaths > 1
    check_whole(tmp_path, unknown=None)
