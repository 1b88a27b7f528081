"""Retry-After in all its forms: seconds, milliseconds, a date; what cannot be read is no wish."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from reattach.profiles.hints import retry_after

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0.0), ("7", 7.0), (" 7 ", 7.0),
        ("1.5", 1.5), ("120", 120.0),
        ("", None), ("-1", None), ("+5", None), ("1_000", None), ("nan", None), ("inf", None), ("1e9", None), ("٣", None),
        ("soon", None), ("1.", None), ("9" * 400, None),
        ("Mon, 99 Foo 2026", None), ("Thu, 01 Jan 2026 12:00:00 +99999999999999", None),
    ],
)  # fmt: skip
def test_seconds(text, seconds):
    assert retry_after({"retry-after": text}) == seconds


def test_milliseconds_are_finer_and_win():
    assert retry_after({"retry-after": "7", "retry-after-ms": "250"}) == 0.25
    assert retry_after({"retry-after": "7", "retry-after-ms": "odd"}) == 7.0


def test_a_date_is_compared_with_the_answers_own():
    later = format_datetime(NOON + timedelta(seconds=30), usegmt=True)
    assert retry_after({"retry-after": later, "date": format_datetime(NOON, usegmt=True)}) == 30.0
    assert retry_after({"retry-after": format_datetime(NOON, usegmt=True), "date": later}) == 0.0
    assert retry_after({"retry-after": "Thu, 01 Jan 2026 12:00:30", "date": format_datetime(NOON, usegmt=True)}) == 30.0


def test_without_the_answers_date_our_clock_is_asked():
    later = format_datetime(datetime.now(UTC) + timedelta(seconds=1000), usegmt=True)
    assert 900 < retry_after({"retry-after": later}) <= 1000
    assert 900 < retry_after({"retry-after": later, "date": "odd"}) <= 1000


def test_no_wish():
    assert retry_after({}) is None
