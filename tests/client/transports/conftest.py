"""What the transports' tests share: both event loops, and a count of open descriptors."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable

import anyio
import pytest

from reattach.transports.base import Wire
from reattach.transports.http import HttpWire


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """Every asynchronous test runs on both."""
    return str(request.param)


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine's own proxies are nobody's business here."""
    for name in list(os.environ):
        if name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)


@pytest.fixture
async def wire(anyio_backend: str) -> Wire:
    """A wire as the client makes it; closed by nobody, since nothing may stay open without that."""
    return HttpWire()


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.fixture
def settles() -> Callable[[int], Awaitable[int]]:
    """Return what waits until the open descriptors are back to a count, and says how many there are."""

    async def settled(count: int) -> int:
        for _ in range(1000):  # the origin's threads close their ends when they see ours closed; nothing tells when
            if descriptors() <= count:
                break
            await anyio.sleep(0.01)
        return descriptors()

    return settled
