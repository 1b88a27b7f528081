"""A journal element and the event handed out at once are the same event."""

from __future__ import annotations

import dataclasses
import json

from hypothesis import given
from hypothesis import strategies as st

from reattach.core.messages import Arrival
from reattach.model import Event, Kind, Outcome, Status
from reattach.stores.entry import element, event_from, event_of, outcome_json, outcome_of

TEXT = st.text(st.characters())  # lone surrogates too: a vendor may cut an emoji in two
KINDS: list[Kind] = ["text", "message", "tool_call", "tool_result", "action", "status", "end", "other"]
PAYLOADS = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXT,
    lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner),
    max_leaves=5,
)


@st.composite
def arrivals(draw: st.DrawFn) -> Arrival:
    wrapped = draw(st.booleans())
    data = draw(PAYLOADS)
    identity = draw(TEXT)
    return Arrival(
        identity,
        draw(st.none() | TEXT),
        draw(st.none() | st.just("e1")),
        draw(st.none() | st.integers(1, 2**63 - 1)),
        draw(st.none() | TEXT),
        draw(st.just(identity) | TEXT),
        draw(st.binary(min_size=8, max_size=8)),
        draw(TEXT),
        draw(st.sampled_from(KINDS)),
        draw(TEXT),
        draw(st.none() | st.just("2026-11-29T19:00:00.123Z") | TEXT),
        data,
        json.dumps({"data": data} if wrapped else data),
        wrapped,
        draw(st.none() | st.just(Outcome(run_id="r", status=Status.COMPLETED))),
    )


@given(arrivals(), st.integers(1, 2**40))
def test_what_is_handed_out_at_once_is_what_the_journal_gives_back(arrival: Arrival, position: int) -> None:
    """For any payload: the event made of the arrival equals the one read from its element, and an ordinary Event."""
    at_once = event_from(arrival, "r", position)
    text = element(arrival)
    assert text.isascii() or not arrival.stored.isascii()
    assert event_of(json.loads(text), "r", position) == at_once
    assert Event(**{field.name: getattr(at_once, field.name) for field in dataclasses.fields(Event)}) == at_once


def test_an_outcome_comes_back_as_it_was() -> None:
    outcome = Outcome(run_id="r", status=Status.FAILED, result={"text": "\ud83d"}, release="r2", evidence="status")
    assert outcome_of(outcome_json(outcome), "r") == outcome
