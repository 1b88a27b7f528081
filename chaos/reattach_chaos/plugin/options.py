"""`Options`: what was said on pytest's command line, read once. A wrong word is pytest's usage error, before any test."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from reattach_chaos.plugin.target import Target, TargetError, read_target
from reattach_chaos.schedules import Schedule, ScheduleError, loads
from reattach_chaos.toxiproxy.control.backends import BackendName


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The options.

    Attributes:
        seed: Of what is drawn: the server's scenarios, the embedded proxy.
        full: Cut inside events, too.
        backend: Which Toxiproxy ends connections.
        replay: The one case that is played; None: all.
        save: Where what failed is written.
        target: A server of the user's own; None: ours.
    """

    seed: int
    full: bool
    backend: BackendName
    replay: Schedule | None
    save: Path
    target: Target | None


def options_of(config: pytest.Config) -> Options:
    """Return the options.

    Raises:
        pytest.UsageError: A file does not hold what it should.
    """
    replay, target = config.getoption("--reattach-replay"), config.getoption("--reattach-target")
    try:
        return Options(
            seed=config.getoption("--reattach-seed"),
            full=config.getoption("--reattach-sample") == "full",
            backend=config.getoption("--reattach-backend"),
            replay=loads(Path(replay).read_text(encoding="utf-8")) if replay else None,
            save=Path(config.getoption("--reattach-save")),
            target=read_target(Path(target)) if target else None,
        )
    except TargetError as error:
        raise pytest.UsageError(f"--reattach-target: {error}") from error
    except (OSError, ScheduleError) as error:
        raise pytest.UsageError(f"--reattach-replay {replay}: {error}") from error
