"""The marker's words as cases."""

from __future__ import annotations

import pytest

from reattach_chaos.plugin.matrix import MarkerError, cuts_of, expand
from reattach_chaos.schedules import Shape

SHAPE = Shape((("created", "delta", "terminal"),))


def ids(*, full: bool = False, **words: object) -> list[str]:
    return [each.id for each in expand(cuts_of(**words), SHAPE, 7, full=full)]  # type: ignore[arg-type]  # wrong ones, too


def test_one_case_for_each_boundary_and_fault() -> None:
    """Behind the last event a client may be gone before the cut: it comes before the last line end that it waits for."""
    assert ids(faults=("fin", "rst")) == [
        *("fin-after-event-1", "rst-after-event-1"),
        *("fin-after-event-2", "rst-after-event-2"),
        *("fin-before-blank-line-of-event-3", "rst-before-blank-line-of-event-3"),
    ]


def test_on_a_resume_a_first_cut_makes_it() -> None:
    assert ids(faults="rst", on="resume") == [
        "fin-after-head-and-rst-after-event-1-on-resume",
        "fin-after-event-1-and-rst-after-event-2-on-resume",
        "fin-after-event-2-and-rst-before-blank-line-of-event-3-on-resume",
    ]
    assert len(ids(faults="rst", on="both")) == 6


def test_the_full_sample_cuts_inside_events_too() -> None:
    found = ids(faults="fin", full=True)
    assert {"fin-in-data-line-of-event-2", "fin-before-blank-line-of-event-3", "fin-after-event-2"} <= set(found)
    assert len(found) == len(set(found))


def test_what_the_marker_says_of_places_holds_in_every_sample() -> None:
    assert ids(faults="fin", positions="after-head", full=True) == ["fin-after-head"]


def test_a_case_knows_its_scenario_and_seed() -> None:
    (case, *_) = expand(cuts_of("tools"), SHAPE, 7, full=False)
    assert (case.scenario, case.seed) == ("tools", 7)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ({"faults": ("fin", "rts")}, "faults: 'rts' is unknown; there are fin, rst"),
        ({"faults": ("kill",)}, "faults: 'kill' is unknown"),
        ({"faults": ()}, "one or more words are needed"),
        ({"positions": "after-evnt"}, "positions: 'after-evnt' is unknown; there are boundaries"),
        (
            {"positions": ("in-data-line",), "faults": ("early-end",)},
            "early-end cannot come at in-data-line; it can at after-head",
        ),
        ({"on": "first"}, "on='first': stream, resume or both"),
        ({"scenario": 7}, "scenario=7: a ready scenario's name or the path of a file"),
    ],
)
def test_a_wrong_word_is_named_with_the_right_ones(words: dict[str, object], told: str) -> None:
    with pytest.raises(MarkerError, match=told.replace("(", r"\(").replace("'", "'")):
        ids(**words)
