"""toxiproxy-python, once a server: its own classes, over a consumer of ours.

Its modules name one global consumer. They are executed here once more, into modules that are nobody else's, and given ours; the
library that a user's tests may import at the same time is not touched.
"""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from reattach_chaos.toxiproxy.control.consumer import Consumer
from reattach_chaos.toxiproxy.control.errors import ToxiproxyError


@dataclass(frozen=True, slots=True)
class Library:
    """The library's classes `Toxiproxy` and `Proxy` for one server; it has no types."""

    toxiproxy: Any
    proxy: Any


def library(consumer: Consumer) -> Library:
    """Return the library for one server.

    Raises:
        ToxiproxyError: It is not installed.
    """
    proxy, server = _copy("toxiproxy.proxy"), _copy("toxiproxy.server")
    for module in (proxy, server):
        vars(module)["APIConsumer"] = consumer
    vars(server)["Proxy"] = proxy.Proxy
    return Library(server.Toxiproxy, proxy.Proxy)


def _copy(name: str) -> ModuleType:
    try:
        spec = importlib.util.find_spec(name)
    except ModuleNotFoundError:
        spec = None
    if spec is None or spec.loader is None:
        raise ToxiproxyError("toxiproxy-python is not installed. Run: pip install 'reattach[chaos]'")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
