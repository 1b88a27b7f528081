"""Backoff: waits as values."""

from __future__ import annotations

import random

import pytest

from reattach.core.backoff import Backoff, Window
from reattach.policy import Policy

POLICY = Policy()


def nth(attempt: int, hint: float = 0.0) -> Window:
    backoff = Backoff(hint=hint)
    for _ in range(attempt):
        window, backoff = backoff.delayed(POLICY)
    return window


def test_windows_double_up_to_the_ceiling() -> None:
    """[floor, base * 2^n], then no wider."""
    assert [nth(n) for n in (1, 2, 3, 4, 5, 6, 7)] == [
        (0.25, 1.0),
        (0.25, 2.0),
        (0.25, 4.0),
        (0.25, 8.0),
        (0.25, 16.0),
        (0.25, 30.0),
        (0.25, 30.0),
    ]


def test_jitter_does_not_vanish_at_the_ceiling_b29() -> None:
    """B29: a cap applied after the jitter made every late wait the same; 500 draws of attempt 20 are hundreds of values."""
    window = nth(20)
    assert window.low < window.high
    draw = random.Random(29)
    assert len({draw.uniform(*window) for _ in range(500)}) >= 400


def test_a_very_late_attempt_has_a_finite_window() -> None:
    """The number of doublings is bounded."""
    window, backoff = Backoff(waits=10_000).delayed(POLICY)
    assert (window, backoff.waits) == ((0.25, 30.0), 10_001)


@pytest.mark.parametrize("waits", [0, 3, 20])
def test_retry_after_is_a_floor_even_above_the_ceiling(waits: int) -> None:
    """Never sooner than the server says, and not all clients in the same instant."""
    window, _ = Backoff(waits=waits).delayed(POLICY, retry_after=120.0)
    assert window.low == 120.0
    assert window.high >= 121.0


def test_a_small_retry_after_changes_nothing() -> None:
    """Our own floor is larger."""
    assert Backoff().delayed(POLICY, retry_after=0.1)[0] == (0.25, 1.0)
    assert Backoff(waits=9).delayed(POLICY, retry_after=5.0)[0] == (5.0, 30.0)


@pytest.mark.parametrize(("hint", "high"), [(0.0, 1.0), (0.001, 1.0), (3.0, 3.0), (86_400.0, 30.0)])
def test_the_streams_wish_is_clamped_b11(hint: float, high: float) -> None:
    """B11: `retry: 0` must not make a hot loop, `retry:` of a day must not make a client that sleeps for a day."""
    window, _ = Backoff().hinted(hint).delayed(POLICY)
    assert window == (0.25, high)


def test_the_streams_wish_outlives_progress() -> None:
    """Progress narrows the window to its first width; the base stays the server's."""
    backoff = Backoff().hinted(3.0).delayed(POLICY)[1].progressed()
    assert backoff == Backoff(0, 3.0)


def test_at_once_is_no_wait_and_does_not_count() -> None:
    """The attempt after it gets the first window."""
    window, backoff = Backoff().at_once()
    assert (window, backoff) == ((0.0, 0.0), Backoff())


def test_a_planned_close_is_not_counted() -> None:
    """Its window is as wide as the last one would be, and the next is no wider."""
    window, backoff = Backoff(waits=2).delayed(POLICY, counted=False)
    assert (window, backoff.waits) == ((0.25, 4.0), 2)


def test_a_floor_above_the_window_is_the_window() -> None:
    """Low is never above high."""
    stiff = Policy(retry_floor=5.0, retry_base=5.0, retry_ceiling=5.0)
    assert Backoff().delayed(stiff)[0] == (5.0, 5.0)
