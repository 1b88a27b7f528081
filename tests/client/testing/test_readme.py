"""The room's README is true: each block is a test file that passes, and what it says does not work does not."""

from __future__ import annotations

import os
import pathlib
import re
import subprocess
import sys
from typing import Any

import httpx
import httpx2
import pytest
import respx

import reattach
from client_stage import collected
from reattach.testing import frames

README = pathlib.Path(reattach.testing.__file__).parent / "README.md"
TEXT = README.read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)


def test_every_block_is_a_test_file_that_passes(tmp_path: pathlib.Path) -> None:
    """In a folder of its own, as a reader would paste it, with warnings as errors."""
    assert len(BLOCKS) == 5
    for number, block in enumerate(BLOCKS):
        (tmp_path / f"test_block_{number}.py").write_text(block)
    (tmp_path / "pytest.ini").write_text("[pytest]\nfilterwarnings = error\n")
    (tmp_path / "conftest.py").write_text(
        "import pytest\n\n@pytest.fixture(params=['asyncio', 'trio'])\ndef anyio_backend(request):\n    return request.param\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "anyio.pytest_plugin"],
        cwd=tmp_path,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "6 passed" in done.stdout, "four, and one on each loop"


def test_every_product_is_named() -> None:
    """Nothing that a user may take is missing from the table, and nothing is in it that does not exist."""
    for name in ("MemoryServer", "Wire", "VirtualClock", "FailingStore", "StoreContract", "Seams"):
        assert f"`{name}" in TEXT
        assert name in reattach.testing.__all__


@pytest.mark.anyio
async def test_one_response_for_two_attaches_is_empty_the_second_time(tmp_path: pathlib.Path) -> None:
    """As the README warns: the stream of a `return_value` is shared; the second attach finds nothing in it."""

    async def cut() -> object:
        yield frames.attached() + frames.event(1)
        raise httpx.ReadError("reset by peer")

    policy = reattach.Policy(
        give_up_after=0.2, retry_floor=0.01, retry_base=0.01, retry_ceiling=0.02, poll_interval=0.05
    )
    with respx.mock as router:
        router.post("http://server.test/v1/runs").respond(201, json=frames.run_json())
        router.get("http://server.test/v1/runs/run_1").respond(503)
        head = {"content-type": "text/event-stream"}
        events = router.get("http://server.test/v1/runs/run_1/events")
        events.mock(return_value=httpx.Response(200, headers=head, content=cut()))
        async with (
            httpx.AsyncClient() as mine,
            reattach.AsyncClient("http://server.test", tmp_path / "runs.db", http_client=mine, policy=policy) as client,
        ):
            run = await client.start("work", key="k")
            shown: list[Any] = []
            with pytest.raises(reattach.ReattachError):
                await collected(run, into=shown)
            shown = [event.sequence for event in shown]
    assert shown == [1]
    assert events.call_count > 1


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.mark.anyio
async def test_respx_does_not_see_httpx2(tmp_path: pathlib.Path) -> None:
    """As the README warns: what a client of httpx2 sends is not intercepted; it fails at the address, where nobody is."""
    policy = reattach.Policy(give_up_after=0.05, retry_floor=0.01, retry_base=0.01, retry_ceiling=0.02)
    with respx.mock(assert_all_called=False) as router:
        route = router.post("http://127.0.0.1:9/v1/runs").respond(201, json=frames.run_json())
        async with (
            httpx2.AsyncClient(trust_env=False) as mine,
            reattach.AsyncClient("http://127.0.0.1:9", tmp_path / "runs.db", http_client=mine, policy=policy) as client,
        ):
            with pytest.raises(reattach.ReconnectExhausted):
                await client.start("work", key="k")
        assert route.call_count == 0
