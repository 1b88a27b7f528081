"""The stage of tests that run on every engine of workflows: our own loop, DBOS, and Temporal on a real server."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from reattach_mockserver.engine.work import Work
from temporal_stage import server

ENGINES = ("own", "dbos", "temporal")
Engines: TypeAlias = Callable[[Any], Work]


def required(package: str) -> None:
    """Skip aloud without a package, or fail where all must run."""
    if importlib.util.find_spec(package) is None:
        text = f"no {package} here: pip install 'reattach[dev]'"
        if os.environ.get("REATTACH_REQUIRE_ALL"):
            pytest.fail(text)
        pytest.skip(text)


def address_of(kind: str) -> str:
    """Return where the engine's server is, "" for one that has none; start it if it is not there."""
    if kind == "dbos":
        required("dbos")
    return server().address if kind == "temporal" else ""


def work_on(kind: str, agent: Any, folder: Path, address: str) -> Work:
    """Return an agent's work on an engine; what that keeps on disk is in the folder."""
    match kind:
        case "own":
            return agent
        case "dbos":
            from reattach_mockserver.engines.dbos import DbosEngine

            return DbosEngine(agent, folder / "workflows.db")
        case _:
            from reattach_mockserver.engines.temporal import TemporalEngine

            return TemporalEngine(agent, address)
