"""The pytest plugin: fixtures for whoever tests a client or an application. It is loaded for every pytest user.

So nothing is imported here but pytest and the standard library; a fixture imports what it needs when a test asks for it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from reattach_chaos.plugin.case import ChaosCase
    from reattach_chaos.toxiproxy.control import Doors
    from reattach_mockserver.playground import Playground


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add our options."""
    group = parser.getgroup("reattach")
    group.addoption(
        "--reattach-backend",
        choices=("auto", "embedded", "toxiproxy"),
        default="auto",
        help="which Toxiproxy; auto: the real one where there is one, none for reattach_chaos (default: %(default)s)",
    )
    group.addoption(
        "--reattach-seed", type=int, metavar="N", help="of what is drawn; told in each run (default: drawn)"
    )
    group.addoption(
        "--reattach-sample", choices=("quick", "full"), default="quick", help="full: cuts inside events, too"
    )
    group.addoption("--reattach-replay", metavar="FILE", help="play this schedule only")
    group.addoption(
        "--reattach-save", metavar="DIR", default=".reattach/pytest", help="where failures go (default: %(default)s)"
    )
    group.addoption("--reattach-target", metavar="FILE.toml", help="a server of yours in place of ours")


def pytest_configure(config: pytest.Config) -> None:
    """Declare the marker; draw the seed, or take the one that xdist's controller drew."""
    config.addinivalue_line(
        "markers",
        'reattach_cuts(scenario="hello", positions="boundaries", faults=("fin", "rst", "stall"), on="stream"): '
        "one test for each place and fault; the test takes reattach_chaos.",
    )
    if config.option.reattach_seed is None:
        drawn = getattr(config, "workerinput", {}).get("reattach_seed")
        config.option.reattach_seed = int.from_bytes(os.urandom(3)) if drawn is None else drawn


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Hand the seed on to a worker of xdist."""
    node.workerinput["reattach_seed"] = node.config.option.reattach_seed


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Expand a marked test."""
    if metafunc.definition.get_closest_marker("reattach_cuts") is not None:
        try:
            from reattach_chaos.plugin.fixture import parametrize
        except ModuleNotFoundError as missing:
            raise pytest.UsageError(_install("reattach_cuts", missing)) from missing
        parametrize(metafunc)


def pytest_report_collectionfinish(config: pytest.Config, items: list[pytest.Item]) -> list[str]:
    """Tell the seed of a run that has such a test."""
    return [_seed(config)] if any("reattach_chaos" in getattr(item, "fixturenames", ()) for item in items) else []


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Tell it behind the run where others collect (xdist)."""
    reports = (report for key in ("passed", "failed", "error") for report in terminalreporter.stats.get(key, ()))
    if getattr(config.option, "numprocesses", None) and any(
        name == "reattach_seed" for report in reports for name, _ in getattr(report, "user_properties", ())
    ):
        terminalreporter.line(_seed(config))


def _seed(config: pytest.Config) -> str:
    return f"reattach seed {config.option.reattach_seed} (again: --reattach-seed {config.option.reattach_seed})"


def _install(what: str, missing: ModuleNotFoundError, extra: str = "chaos") -> str:
    return f"{what} needs {missing.name}: pip install 'reattach[{extra}]'"


@pytest.fixture
def reattach_server() -> Iterator[Playground]:
    """A reference server of this test's own, on a free port, in this process; see `reattach_mockserver.playground`."""
    try:
        from reattach_mockserver.playground import Playground
    except ModuleNotFoundError as missing:
        pytest.fail(_install("reattach_server", missing, "mockserver"), pytrace=False)
    with Playground() as server:
        yield server


@pytest.fixture
def reattach_proxy(request: pytest.FixtureRequest) -> Iterator[Doors]:
    """Proxies of this test's own, before whatever server it names; see `reattach_chaos.toxiproxy.control.doors`."""
    try:
        from reattach_chaos.toxiproxy.control import Doors
    except ModuleNotFoundError as missing:
        pytest.fail(_install("reattach_proxy", missing), pytrace=False)
    with Doors(request.config.getoption("--reattach-backend")) as doors:
        yield doors


@pytest.fixture
def reattach_chaos(request: pytest.FixtureRequest) -> Iterator[ChaosCase]:
    """One case of a client of yours before a server; see `reattach_chaos.plugin`."""
    try:
        from reattach_chaos.plugin.fixture import case_of
    except ModuleNotFoundError as missing:
        pytest.fail(_install("reattach_chaos", missing), pytrace=False)
    yield from case_of(request)
