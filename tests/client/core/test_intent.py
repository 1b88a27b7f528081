"""Intent: keys, request texts and digests."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reattach.core.intent import key_fault, request_digest, request_text, stale
from reattach.core.payload import digest_of, instant

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**52), 2**52) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize("key", ["a", "order-17", "~" * 255])
def test_a_visible_ascii_text_is_a_key(key: str) -> None:
    assert key_fault(key) is None


@pytest.mark.parametrize(
    ("key", "words"),
    [(None, "a text is needed"), ("", "empty"), ("k" * 256, "256 characters"), ("a b", "' '"), ("é", "visible ASCII")],
)
def test_a_bad_key_is_named(key: object, words: str) -> None:
    """Found before anything is sent."""
    assert words in str(key_fault(key))


@given(JSON)
def test_a_request_text_is_its_value(value: object) -> None:
    """What is kept is what is sent; the digest does not depend on the order of members."""
    text = request_text({"input": value, "metadata": (1, 2)})
    turned = request_text({"metadata": [1, 2], "input": value})
    assert request_digest(text) == request_digest(turned)


@pytest.mark.parametrize("value", [float("nan"), {1, 2}, {1: "x"}, object()])
def test_what_json_cannot_say_is_refused(value: object) -> None:
    """In place of a request that the server would read otherwise."""
    with pytest.raises(ValueError, match="not JSON"):
        request_text({"input": value})


def test_a_value_that_holds_itself_is_refused() -> None:
    loop: list[object] = []
    loop.append(loop)
    with pytest.raises(ValueError, match="not JSON"):
        request_text({"input": loop})


def test_one_and_one_point_zero_are_one_value() -> None:
    """And true is neither; a half and a number beyond exactness stay what they are."""
    assert request_digest('{"n":1}') == request_digest('{"n":1.0}')
    assert request_digest('{"n":true}') != request_digest('{"n":1}')
    assert request_digest('{"n":[1.5,1e300]}') != request_digest('{"n":[1,1e300]}')


def test_a_key_older_than_the_servers_memory_is_stale() -> None:
    """Sending it again could begin a second run."""
    now = datetime(2026, 1, 2, tzinfo=UTC)
    assert not stale(now - timedelta(hours=24), now, 24.0)
    assert stale(now - timedelta(hours=24, seconds=1), now, 24.0)


def test_a_digest_tells_payloads_apart() -> None:
    """Lone surrogates too."""
    assert digest_of("a") == digest_of("a") != digest_of("b")
    assert len(digest_of("\ud800")) == 8


def test_a_time_that_is_none_loses_no_event() -> None:
    assert instant("2026-01-02T03:04:05Z") == datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert instant("yesterday") is None
