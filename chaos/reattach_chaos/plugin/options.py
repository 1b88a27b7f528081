"""`Options`: what was said on pytest's command line, read once. A wrong word is pytest's usage error, before any test."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

import pytest

from reattach_chaos.plugin.target import Target, TargetError, read_target
from reattach_chaos.schedules import Schedule, ScheduleError, loads
from reattach_chaos.schedules.settings import RANGES
from reattach_chaos.toxiproxy.control.backends import BackendName


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The options.

    Attributes:
        seed: Of what is drawn: the server's scenarios, the embedded proxy.
        again: What a command line needs to play a case as it was played.
        full: Cut inside events, too.
        backend: Which Toxiproxy ends connections.
        replay: The one case that is played; None: all.
        save: Where what failed is written.
        target: A server of the user's own; None: ours.
    """

    seed: int
    again: str
    full: bool
    backend: BackendName
    replay: Schedule | None
    save: Path
    target: Target | None


def options_of(config: pytest.Config) -> Options:
    """Return the options.

    Raises:
        pytest.UsageError: A number is out of range, or a file does not hold what it should.
    """
    replay, target = config.getoption("--reattach-replay"), config.getoption("--reattach-target")
    seed, (least, most) = config.getoption("--reattach-seed"), RANGES["seed"]
    if not least <= seed <= most:
        raise pytest.UsageError(f"--reattach-seed {seed}: a number from {least} to {most}")
    try:
        return Options(
            seed=seed,
            again=_again(config),
            full=config.getoption("--reattach-sample") == "full",
            backend=config.getoption("--reattach-backend"),
            replay=loads(_schedule(Path(replay)).read_bytes()) if replay else None,
            save=Path(config.getoption("--reattach-save")),
            target=read_target(Path(target)) if target else None,
        )
    except TargetError as error:
        raise pytest.UsageError(f"--reattach-target: {error}") from error
    except (OSError, ScheduleError) as error:
        raise pytest.UsageError(f"--reattach-replay {replay}: {error}") from error


def _schedule(path: Path) -> Path:
    """Return the schedule's file; that of a history stands beside it."""
    return path.with_suffix(".json") if path.suffix == ".jsonl" else path


def _again(config: pytest.Config) -> str:
    words = [f"--reattach-seed {config.getoption('--reattach-seed')}"]
    for option, usual in (("--reattach-sample", "quick"), ("--reattach-backend", "auto"), ("--reattach-target", None)):
        value = config.getoption(option)
        words += [f"{option} {shlex.quote(value)}"] if value != usual else []
    return " ".join(words)
