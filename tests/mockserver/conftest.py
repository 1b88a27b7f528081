"""Fixtures of the server's tests; the stage itself is `mockserver_stage.py`."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from mockserver_stage import OPEN, QUICK, Site
from reattach_mockserver.app import create_app
from reattach_mockserver.engine.work import Work
from reattach_mockserver.library import Library
from reattach_mockserver.logs.base import EventLog
from reattach_mockserver.logs.memory import MemoryLog
from reattach_mockserver.logs.sqlite import SqliteLog
from reattach_mockserver.scenarios.script import Script
from reattach_mockserver.settings import Settings

Sites: TypeAlias = Callable[..., Awaitable[Site]]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(params=["memory", "sqlite"])
def a_log(request: pytest.FixtureRequest, tmp_path: Path) -> EventLog:
    return MemoryLog() if request.param == "memory" else SqliteLog(tmp_path / "log.db")


@pytest.fixture
async def sites() -> AsyncIterator[Sites]:
    """Return a maker of sites, to be awaited; takes scripts, the first is the default, and settings."""
    opened: list[Site] = []

    async def make(
        *scripts: Script, root_path: str = "", works: Mapping[str, Work] | None = None, **settings: Any
    ) -> Site:
        scripts = scripts or (QUICK, OPEN)
        library = Library({script.name: script for script in scripts}).including(works or {})
        app = create_app(Settings(scripts=library, **{"default": scripts[0].name, **settings}))
        await app.engine.start()
        site = Site(app, root_path)
        opened.append(site)
        return site

    yield make
    for site in opened:
        await site.close()
