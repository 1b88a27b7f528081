"""Asking a log again while its storage fails: how often, and after how long.

Every write of a log may be repeated (the log's law, rule 7), so an outage of some seconds is waited for, and a longer one is told.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TypeVar

from reattach_mockserver.logs.base import LogUnavailable

T = TypeVar("T")

_ATTEMPTS = 8
_FIRST_PAUSE = 0.05  # seconds; doubled after each failure, 6 s in all


async def insisting(ask: Callable[[], Awaitable[T]]) -> T:
    """Ask, and ask again while the storage fails.

    Raises:
        LogUnavailable: It failed each time.
    """
    pause = _FIRST_PAUSE
    for _ in range(_ATTEMPTS - 1):
        with suppress(LogUnavailable):
            return await ask()
        await asyncio.sleep(pause)
        pause *= 2
    return await ask()
