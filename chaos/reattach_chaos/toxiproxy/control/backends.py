"""Which server: the real one where there is one, else the embedded one; and how each is started, watched and ended.

`REATTACH_TOXIPROXY` names the real one, by the path of its program or by an address; without it `toxiproxy-server` is looked for on
the PATH. What is named and cannot be had is an error: nobody shall believe that the real one was used.
"""

from __future__ import annotations

import os
import shutil
from typing import Literal, Protocol, TypeAlias, assert_never

from reattach_chaos.toxiproxy.control.errors import InfrastructureError
from reattach_chaos.toxiproxy.control.process import ServerProcess
from reattach_chaos.toxiproxy.embedded.thread import ServerThread

BackendName: TypeAlias = Literal["auto", "embedded", "toxiproxy"]
VARIABLE = "REATTACH_TOXIPROXY"
PROGRAM = "toxiproxy-server"


class Backend(Protocol):
    """A server that runs."""

    @property
    def name(self) -> Literal["embedded", "toxiproxy"]:
        """Which one it is."""
        ...

    @property
    def url(self) -> str:
        """Where its API is."""
        ...

    def condition(self) -> str:
        """Return what is known about a server that is gone; nothing while it runs."""
        ...

    def worn(self) -> bool:
        """Whether it is time for a new one."""
        ...

    def close(self) -> None:
        """End it, if it is ours."""
        ...


class Embedded:
    """Our own server, in a thread of this process."""

    name: Literal["embedded"] = "embedded"

    def __init__(self, seed: int | None) -> None:
        self._thread = ServerThread(seed=seed)
        self.url = self._thread.url

    def condition(self) -> str:
        """Return whether its thread has ended."""
        return "" if self._thread.alive else " (its thread has ended)"

    def worn(self) -> bool:
        """It does not wear."""
        return False

    def close(self) -> None:
        """End its thread."""
        self._thread.close()


class Real:
    """The real server, as a process of ours."""

    name: Literal["toxiproxy"] = "toxiproxy"

    def __init__(self, binary: str) -> None:
        self._process = ServerProcess(binary)
        self.url = self._process.url

    def condition(self) -> str:
        """Return its last words."""
        return self._process.condition()

    def worn(self) -> bool:
        """Whether it has died, or too much was left behind by the connections that were cut."""
        return not self._process.alive or self._process.goroutines() > _GOROUTINES

    def close(self) -> None:
        """End the process."""
        self._process.close()


class Remote:
    """Somebody else's server: used, never restarted or ended."""

    name: Literal["toxiproxy"] = "toxiproxy"

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")

    def condition(self) -> str:
        """Nothing is known."""
        return ""

    def worn(self) -> bool:
        """Not for us to say."""
        return False

    def close(self) -> None:
        """Leave it alone."""


_GOROUTINES = 5_000  # a fresh one has about 10; a case leaves one or two


def place(backend: BackendName, url: str | None = None) -> str | None:
    """Return where the server is to come from: a program, an address, or None for the embedded one.

    Args:
        backend: `auto`: the real one where there is one, else the embedded one.
        url: A server that runs; it is used, whatever the environment says.

    Raises:
        InfrastructureError: The real one is wanted, and there is none.
    """
    match backend:
        case "auto":
            return url or os.environ.get(VARIABLE) or shutil.which(PROGRAM)
        case "embedded":
            return url
        case "toxiproxy":
            if (found := place("auto", url)) is None:
                raise InfrastructureError(
                    f"there is no {PROGRAM} on the PATH, and {VARIABLE} names neither a program nor an address. "
                    "With Go: go install github.com/Shopify/toxiproxy/v2/cmd/server@v2.12.0"
                )
            return found
        case _:
            assert_never(backend)


def start(place: str | None, seed: int | None = None) -> Backend:
    """Return a running server.

    Args:
        place: As `place` gave it.
        seed: Of the embedded one's toxicity, jitter and sizes; the real one's cannot be set.

    Raises:
        InfrastructureError: It cannot be started.
    """
    if place is None:
        return Embedded(seed)
    return Remote(place) if "://" in place else Real(place)
