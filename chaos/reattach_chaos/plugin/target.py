"""`Target`: a server of the user's own, as `--reattach-target FILE.toml` names it.

    url = "http://127.0.0.1:9000"     # speaks the reference protocol; loopback or not, only its door is used
    token_env = "MY_TOKEN"            # optional: the variable that holds the bearer token, which is never in a file
    input = {prompt = "count"}        # optional: what runs are created with; else the marker's scenario, by its name
    heartbeat_ms = 15000              # optional: what the server keeps

The environment is read here, since this is the user's command and not a library.
"""

from __future__ import annotations

import os
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HEARTBEAT_MS = 15_000.0
_KINDS: dict[str, tuple[type, ...]] = {
    "url": (str,),
    "token_env": (str,),
    "input": (str, dict),
    "heartbeat_ms": (int, float),
}


class TargetError(ValueError):
    """The file names no server; says what is wrong in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A server.

    Attributes:
        url: Its address.
        token: For its door; "" for none. Not shown.
        input: Of each create; None: the scenario's name.
        heartbeat_ms: What it keeps.
    """

    url: str
    token: str = ""
    input: Any = None
    heartbeat_ms: float = HEARTBEAT_MS


def read_target(path: Path) -> Target:
    """Read the file.

    Raises:
        TargetError: It cannot be read, is no TOML, or says what it may not.
    """
    try:
        told = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise TargetError(f"{path} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise TargetError(f"{path} is no TOML: {error}") from error
    for name, value in told.items():
        if name not in _KINDS:
            raise TargetError(f"{path}: {name!r} is unknown; there are {', '.join(_KINDS)}")
        if not isinstance(value, _KINDS[name]) or isinstance(value, bool):
            raise TargetError(f"{path}: {name} = {value!r} is a {type(value).__name__}")
    url = told.get("url", "")
    if not url.startswith("http://"):
        raise TargetError(
            f"{path}: url = {url!r}: an address that begins with http:// is needed; the cuts are made in plain bytes"
        )
    variable = told.get("token_env", "")
    if variable and not os.environ.get(variable):
        raise TargetError(f"{path}: token_env names {variable}, which is not set")
    return Target(
        url=url.rstrip("/"),
        token=os.environ.get(variable, "") if variable else "",
        input=told.get("input"),
        heartbeat_ms=float(told.get("heartbeat_ms", HEARTBEAT_MS)),
    )
