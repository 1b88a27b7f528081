"""Whether this process is a fork of the one in which something was made; cheaper than asking the system for each event."""

from __future__ import annotations

import os

_generation = 0


def generation() -> int:
    """Return a number that is another one in every fork."""
    return _generation


def _forked() -> None:
    global _generation
    _generation += 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
