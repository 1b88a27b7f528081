"""Scenarios that come with the server, by name: `load_ready("hello")`.

The files beside this one are data, written by us to be read; a new one needs a file, and a line in READY. Its first line, a
comment, is what the help and the README say of it. `demo` alone is made by a program, since its length is a setting.

Checked by tests/mockserver/test_ready.py: every one is valid and played.
"""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # names and sentences are had without the reader of YAML, for the help of the command
    from reattach_mockserver.scenarios.script import Script

READY: tuple[str, ...] = (
    "hello",
    "long-text",
    "tools",
    "parallel-tools",
    "approval",
    "approvals",
    "approval-expires",
    "approval-stale",
    "failure",
    "cancel-me",
    "cancelled",
    "huge-event",
    "unicode",
    "quiet",
    "silence",
    "burst",
    "parallel",
    "session",
    "session-approval",
    "canonical",
    "demo",
)
"""The names, in the order in which they are worth a look."""


def load_ready(name: str) -> Script:
    """Return a ready scenario.

    Raises:
        KeyError: There is none of this name; READY has the names.
    """
    if name not in READY:
        raise KeyError(name)
    from reattach_mockserver.scenarios.demo import demo_script
    from reattach_mockserver.scenarios.parse import loads_script

    if name == "demo":
        return demo_script()
    return loads_script(_text(name), f"{name}.yaml")


def about(name: str) -> str:
    """Return what a ready scenario is for, a sentence or two.

    Raises:
        KeyError: There is none of this name.
    """
    if name not in READY:
        raise KeyError(name)
    if name == "demo":
        return "What `reattach demo` plays: a day of an invented shop, 132 events, nine tool calls."
    return _text(name).partition("\n")[0].removeprefix("# ")


def _text(name: str) -> str:
    return (resources.files(__name__) / f"{name}.yaml").read_text(encoding="utf-8")
