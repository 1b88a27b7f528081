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
from reattach_mockserver.logs.redis.log import RedisLog
from reattach_mockserver.logs.sqlite import SqliteLog
from reattach_mockserver.scenarios.script import Script
from reattach_mockserver.settings import Settings
from redis_stage import empty_database

Sites: TypeAlias = Callable[..., Awaitable[Site]]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(params=["memory", "sqlite", pytest.param("redis", marks=pytest.mark.slow)])
def a_log(request: pytest.FixtureRequest, tmp_path: Path) -> EventLog:
    match request.param:
        case "memory":
            return MemoryLog()
        case "sqlite":
            return SqliteLog(tmp_path / "log.db")
        case _:
            return RedisLog(empty_database())


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
