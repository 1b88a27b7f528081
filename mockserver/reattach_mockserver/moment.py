"""Times on the wire: RFC 3339, UTC, always the same width, so that texts compare as times do.

Checked by tests/mockserver/test_values.py.
"""

import time
from datetime import UTC, datetime, timedelta
from functools import lru_cache

DETERMINISTIC_START_MS = 1_767_225_600_000  # 2026-01-01T00:00:00Z: when every deterministic run begins

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def now_ms() -> int:
    """Return the server's own clock, in ms since 1970."""
    return time.time_ns() // 1_000_000


def moment(ms: int) -> str:
    """Return `ms` since 1970 as text, to the millisecond: `2026-01-01T00:00:00.000Z`."""
    return f"{_second(ms // 1000)}.{ms % 1000:03d}Z"


@lru_cache(maxsize=64)
def _second(seconds: int) -> str:
    # Most events share their second with the one before.
    return f"{_EPOCH + timedelta(seconds=seconds):%Y-%m-%dT%H:%M:%S}"


def ms_of(text: str) -> int:
    """Read what `moment` wrote."""
    return (datetime.fromisoformat(text) - _EPOCH) // timedelta(milliseconds=1)
