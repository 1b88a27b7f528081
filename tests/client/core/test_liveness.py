"""Liveness: how long silence may last."""

from __future__ import annotations

import pytest

from reattach.core.liveness import idle_limit, observed
from reattach.policy import Policy


def test_three_heartbeats_of_silence_are_a_loss() -> None:
    """One lost and one late heartbeat cut nothing."""
    assert idle_limit(Policy(), 15.0) == 45.0
    assert idle_limit(Policy(), 0.2) == pytest.approx(0.6)


@pytest.mark.parametrize("heartbeat", [None, 0.0, -1.0, float("nan")])
def test_without_a_usable_heartbeat_the_policy_decides(heartbeat: float | None) -> None:
    """A server that states nonsense makes neither a hot loop nor a deaf client."""
    assert idle_limit(Policy(idle_timeout=7.0), heartbeat) == 7.0


def test_a_heartbeat_is_observed_after_three_in_a_row() -> None:
    """The longest of the newest three counts; what comes faster than five seconds is a flow."""
    beats, heartbeat = observed((), 15.0)
    assert heartbeat is None
    beats, heartbeat = observed(beats, 14.0)
    assert heartbeat is None
    beats, heartbeat = observed(beats, 13.0)
    assert heartbeat == 15.0
    beats, heartbeat = observed(beats, 12.0)
    assert (beats, heartbeat) == ((14.0, 13.0, 12.0), 14.0)
    assert observed((0.1, 0.1), 0.1)[1] == 5.0
