"""A path that buffers: when long polls take over, for how long, and what takes it back."""

from __future__ import annotations

from client.core.scripts import NOW, event, live, status
from reattach.core import messages as m
from reattach.core.messages import Refusal, Why
from reattach.core.path import STREAM_AGAIN, proven, struck
from reattach.core.state import Rules, State
from reattach.core.subscription import TABLE

FALLING = State(rules=Rules(falls_back=True), mode="live", held=1)


def test_the_stream_is_tried_again_later_each_time_and_never_by_all_at_once() -> None:
    """A jittered wait that doubles up to an hour."""
    windows = []
    state = FALLING
    for _ in range(6):
        effects: list[m.Effect] = []
        state = struck(state, effects)
        windows += [(each.low, each.high) for each in effects if isinstance(each, m.StartTimer)]
        state = state._replace(by="stream")
    assert windows == [(low, low * 1.25) for low in (STREAM_AGAIN, 600.0, 1200.0, 2400.0, 3600.0, 3600.0)]


def test_a_stream_that_brings_what_the_status_knows_takes_it_back() -> None:
    """Only by a stream, and only if this connection brought something."""
    good = proven(FALLING._replace(fresh=True, falls=3))
    assert (good.held, good.falls) == (0, 0)
    assert proven(FALLING).held == 1
    assert proven(FALLING._replace(by="longpoll", fresh=True)).held == 1


def test_without_a_way_to_fall_back_it_is_said_once() -> None:
    """And followed as before."""
    effects: list[m.Effect] = []
    state = FALLING._replace(rules=Rules())
    for _ in range(3):
        state = struck(state, effects)
    assert [type(each) for each in effects] == [m.Notice]
    assert state.by == "stream"


def test_a_status_that_failed_for_now_is_asked_again_by_the_poll_alone() -> None:
    """One that was wanted meanwhile would come sooner than the server may want."""
    talk = live(TABLE).tell(m.Received((event(1),)), m.Lost(), m.StatusFailed(NOW, 1, Refusal(Why.BUSY)))
    assert talk.kinds == []
    assert live(TABLE).tell(m.Lost(), status(head=0)).kinds == ["ReadStatus"]
