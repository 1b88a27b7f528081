"""The pytest plugin: fixtures for whoever tests a client or an application. It is loaded for every pytest user.

So nothing is imported here but pytest and the standard library; a fixture imports what it needs when a test asks for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from reattach_chaos.toxiproxy.control import Doors
    from reattach_mockserver.playground import Playground


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add our options."""
    group = parser.getgroup("reattach")
    group.addoption(
        "--reattach-backend",
        choices=("auto", "embedded", "toxiproxy"),
        default="auto",
        help="which Toxiproxy breaks connections; auto: the real one where there is one (default: %(default)s)",
    )


@pytest.fixture
def reattach_server() -> Iterator[Playground]:
    """A reference server of this test's own, on a free port, in this process; see `reattach_mockserver.playground`."""
    try:
        from reattach_mockserver.playground import Playground
    except ModuleNotFoundError as missing:
        pytest.fail(f"reattach_server needs {missing.name}: pip install 'reattach[mockserver]'", pytrace=False)
    with Playground() as server:
        yield server


@pytest.fixture
def reattach_proxy(request: pytest.FixtureRequest) -> Iterator[Doors]:
    """Proxies of this test's own, before whatever server it names; see `reattach_chaos.toxiproxy.control.doors`."""
    try:
        from reattach_chaos.toxiproxy.control import Doors
    except ModuleNotFoundError as missing:
        pytest.fail(f"reattach_proxy needs {missing.name}: pip install 'reattach[chaos]'", pytrace=False)
    with Doors(request.config.getoption("--reattach-backend")) as doors:
        yield doors
