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


def test_an_event_may_be_named_in_three_ways() -> None:
    assert [id_of("a"), id_of({"id": "b"}), id_of(SimpleNamespace(id="c"))] == ["a", "b", "c"]
    with pytest.raises(TypeError, match="takes the ids of the events that were shown, in order; 7 has none"):
        id_of(7)
