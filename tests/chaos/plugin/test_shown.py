"""What a test says that its client showed, put into the history."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from reattach_chaos.checkers import judge
from reattach_chaos.history import (
    Case,
    CutFired,
    CutPlanned,
    Delivered,
    Finished,
    History,
    Logged,
    Received,
    Resume,
)
from reattach_chaos.plugin.shown import id_of, told

LOG = [
    Logged(who="control", run="r", id=f"evt_{n}", cursor=f"e1.{n}", sequence=n, epoch="e1", type="x", settles=settles)
    for n, settles in ((1, None), (2, None), (3, "completed"))
]


def came(*numbers: int, conn: int) -> list[Received]:
    return [Received(id=f"e1.{n}", sequence=n, run="r", conn=conn) for n in numbers]


def history(*shown: int, again: tuple[int, ...] = (3,), after: int = 2) -> History:
    records = [
        Case(id="no"),
        CutPlanned(cut=1, fault="rst", position="after-event", sequence=2),
        *came(1, 2, conn=1),
        CutFired(cut=1, fault="rst", position="after-event", sequence=2, conn=1, run="r"),
        Resume(after=f"e1.{after}", run="r", conn=2),
        *came(*again, conn=2),
        *LOG,
    ]
    return told(records, [f"e1.{n}" for n in shown], "r", Case(id="case"))


def test_what_was_shown_once_is_valid() -> None:
    found = history(1, 2, 3)
    assert judge(found).word == "valid"
    assert [each.conn for each in found.of(Delivered)] == [1, 1, 2]
    assert [each.status for each in found.of(Finished)] == ["completed"]
    assert [each.n for each in found] == list(range(1, len(found) + 1))


@pytest.mark.parametrize(
    ("shown", "again", "after", "anomaly"),
    [
        ((1, 2, 2, 3), (2, 3), 1, "duplicated"),
        ((1, 3), (3,), 2, "lost"),
        ((2, 1, 3), (3,), 2, "reordered"),
        ((1, 2), (), 2, "lost"),
    ],
)
def test_what_was_not_is_named(shown: tuple[int, ...], again: tuple[int, ...], after: int, anomaly: str) -> None:
    verdict = judge(history(*shown, again=again, after=after))
    assert anomaly in [each.anomaly for each in verdict.broken.values()]


def placed(*records: Received, shown: tuple[str, ...]) -> list[int | None]:
    """Return the connection of the arrival that each showing stands behind."""
    found = told([Case(id="no"), *records, *LOG], list(shown), "r", Case(id="case"))
    return [each.conn for each in found.of(Delivered)]


def test_what_came_in_part_and_then_whole_was_shown_of_the_whole() -> None:
    """Else a right client whose event was cut in the middle were blamed."""
    part = Received(id="e1.3", sequence=3, run="r", conn=1, whole=False)
    assert placed(part, *came(3, conn=2), shown=("e1.3",)) == [2]
    assert placed(part, shown=("e1.3",)) == [1]


def test_what_came_twice_and_was_shown_once_is_the_second() -> None:
    """The first may have been thrown away by a reset; what was shown twice is behind each."""
    assert placed(*came(2, conn=1), *came(2, conn=2), shown=("e1.2",)) == [2]
    assert placed(*came(2, conn=1), *came(2, conn=2), shown=("e1.2", "evt_2")) == [1, 2]
    assert placed(*came(2, conn=1), *came(2, conn=2), shown=("e1.2", "e1.2")) == [1, 2]


def test_an_events_own_id_stands_behind_its_arrival() -> None:
    """The log knows which it is."""
    assert placed(*came(1, conn=1), *came(2, conn=2), shown=("evt_2",)) == [2]


def test_an_event_may_be_named_in_three_ways() -> None:
    assert [id_of("a"), id_of({"id": "b"}), id_of(SimpleNamespace(id="c"))] == ["a", "b", "c"]
    with pytest.raises(TypeError, match="takes the ids of the events that were shown, in order; 7 has none"):
        id_of(7)
