"""Scenarios that come with the server, by name: `load_ready("hello")`.

The files beside this one are data, written by us to be read; a new one needs no code. `demo` alone is
made by a program, since its length is a setting.
"""

from importlib import resources

from reattach_mockserver.scenarios.demo import demo_script
from reattach_mockserver.scenarios.parse import loads_script
from reattach_mockserver.scenarios.script import Script

READY: tuple[str, ...] = (
    "hello",
    "tools",
    "failure",
    "unicode",
    "quiet",
    "burst",
    "huge-event",
    "parallel",
    "approval",
    "approvals",
    "approval-expires",
    "approval-stale",
    "cancel-me",
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
    if name == "demo":
        return demo_script()
    file = resources.files(__name__) / f"{name}.yaml"
    return loads_script(file.read_text(encoding="utf-8"), f"{name}.yaml")
