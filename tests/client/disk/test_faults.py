"""The disk fails, or the process dies, at any call that changes a file: typed, nothing lost, nothing half (reports B74, B75).

Really: a library below Python and SQLite makes the n-th call fail with ENOSPC or EIO, or kills before, after or inside it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from client_stage import SCRIPTS
from disk_faults import FAULTS, build
from reattach_mockserver.live import LiveServer

CHILD = Path(__file__).with_name("child_faults.py")
STORES = ("sqlite", "jsonl")

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or (shutil.which("cc") is None and "REATTACH_REQUIRE_ALL" not in os.environ),
    reason="libraries are preloaded and built here on Linux with a C compiler",
)


@pytest.fixture(scope="session")
def library(tmp_path_factory) -> Path:
    return build(tmp_path_factory.mktemp("faults"))


@pytest.fixture(scope="session")
def live():
    with LiveServer(scripts=SCRIPTS) as server:
        yield server


def faulty(library: Path, folder: Path, kind: str, fault: str, first: int, step: int, *url: str) -> int:
    """Fault one life after the other; return how many."""
    path = os.pathsep.join([str(CHILD.parent), str(CHILD.parents[2]), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, str(CHILD), str(folder), kind, fault, str(first), str(step), *url],
        capture_output=True,
        text=True,
        timeout=1400,
        env={**os.environ, "LD_PRELOAD": str(library), "PYTHONPATH": path},
    )
    assert done.returncode == 0, done.stderr[-6000:]
    return int(done.stdout)


@pytest.mark.parametrize("kind", STORES)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_journal_whose_disk_fails_or_that_dies_keeps_its_law(library, tmp_path, kind, fault):
    """At some calls of a whole life, others for each fault."""
    first = 1 + list(FAULTS).index(fault)
    assert faulty(library, tmp_path, kind, fault, first, 53 if kind == "sqlite" else 17) >= 3


@pytest.mark.parametrize("kind", STORES)
@pytest.mark.parametrize("fault", ["full", "killed after"])
def test_a_client_whose_disk_fails_or_that_dies_shows_each_event_once(library, live, tmp_path, kind, fault):
    """CommitFailed and nothing else; then the same program goes on: none skipped, none twice but marked after a death."""
    first = 1 + list(FAULTS).index(fault)
    assert faulty(library, tmp_path, kind, fault, first, 53 if kind == "sqlite" else 17, live.url) >= 2


@pytest.mark.slow
@pytest.mark.timeout(1500)
@pytest.mark.parametrize("kind", STORES)
@pytest.mark.parametrize("fault", FAULTS)
def test_at_every_call_a_journal_keeps_its_law(library, tmp_path, kind, fault):
    assert faulty(library, tmp_path, kind, fault, 1, 1) >= 30


@pytest.mark.slow
@pytest.mark.timeout(1500)
@pytest.mark.parametrize("kind", STORES)
@pytest.mark.parametrize("fault", FAULTS)
def test_at_every_call_a_client_shows_each_event_once(library, live, tmp_path, kind, fault):
    assert faulty(library, tmp_path, kind, fault, 1, 1, live.url) >= 30
