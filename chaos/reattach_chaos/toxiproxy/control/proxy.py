"""A proxy in the hands of a test: where it is, what it does to connections, how that is undone.

Two ways to cut, and no third. *Planned*: toxics are set before a client connects, and the cut comes after exactly so many bytes,
whatever the timing (`plan`). *Now*: all connections of this moment (`cut`, `refuse`). What is done now never touches a toxic
that a real server could hang or die of; where toxics must go, the proxy goes with them and comes back on its port. (Disabling is
not enough: a real server keeps the links of closed connections that wait in a `slow_close`, and dies of the next toxic.)

A stall made by `cut("stall")` heals without a close: `heal` lets what waited go on, on the same connection (a removed `timeout`
toxic would close it; PocketShell-io/pocketshell#1678). A planned stall does not heal: the bytes after it are gone.
"""

from __future__ import annotations

import socket
from types import TracebackType
from typing import Literal, TypeAlias
from urllib.parse import urlsplit, urlunsplit

from reattach_chaos.toxiproxy.control.control import Control, Stream
from reattach_chaos.toxiproxy.control.errors import Unsafe

PlannedFault: TypeAlias = Literal["fin", "rst", "stall"]
Fault: TypeAlias = Literal["fin", "rst", "stall", "half-open"]
_STREAMS: tuple[Stream, Stream] = ("upstream", "downstream")
_FOR_EVER_MS = 3_600_000  # longer than any case; what waits for it ends with the proxy


class Proxy:
    """One proxy, made by `Toxiproxy.proxy`. Close it, or leave its `with`.

    Args:
        control: The server.
        name: The proxy's, nobody else's.
        upstream: Where it leads.
        host: Where it listens.
        port: Where it listens.
        resets: Whether its connections end with RST.
        kept: Has the port, so that nobody else is given it while the proxy is closed for a moment; goes with the proxy.
    """

    def __init__(
        self,
        control: Control,
        name: str,
        upstream: str,
        host: str,
        port: int,
        *,
        resets: bool,
        kept: socket.socket | None = None,
    ) -> None:
        self._control = control
        self._kept = kept
        self._upstream = upstream
        self._resets = resets
        self._planned_resets = False
        self._stalled = False
        self._down = False
        self._closed = False
        self.name = name
        self.host = host
        self.port = port
        if resets:
            self._arm_resets()

    @property
    def resets(self) -> bool:
        """Whether its connections end with RST."""
        return self._resets

    @property
    def address(self) -> str:
        """`host:port`."""
        return f"{self.host}:{self.port}"

    def url_for(self, url: str) -> str:
        """Return an address of the upstream as it is through this proxy: the same path and query, another port."""
        return urlunsplit(urlsplit(url)._replace(netloc=self.address))

    # -- before a client connects

    def plan(self, fault: PlannedFault, *, after: int, direction: Stream = "downstream") -> None:
        """Cut each connection that begins from now on after exactly so many bytes.

        Connections that are there already may or may not be concerned: plan before the client connects.

        Args:
            fault: How it ends. `fin`: a clean close. `rst`: a reset; exact as long as the client reads (some 60 kB unread at most).
                `stall`: open and silent; the server is held back, not closed.
            after: Bytes that pass, heads and framing included. 0: closed when the first byte comes.
            direction: Whose bytes count: downstream is the answer, upstream the request.

        Raises:
            Unsafe: A negative number, or something is planned or stalled already: `heal` first.
        """
        if after < 0:
            raise Unsafe(f"after={after}: bytes that pass are 0 or more")
        if self._toxics() - ({"reset_peer_downstream"} if self._resets else set()):
            raise Unsafe(f"the proxy {self.name} has toxics already: heal it before something is planned")
        if fault == "rst" and not self._resets:
            self._arm_resets()
            self._planned_resets = True
        self.toxic("limit_data", direction, bytes=after)
        if fault == "stall":
            # The order matters: the close of the first is what the second delays.
            self.toxic("slow_close", direction, delay=_FOR_EVER_MS)

    def toxic(self, kind: str, stream: Stream = "downstream", /, *, toxicity: float = 1.0, **attributes: int) -> str:
        """Add any toxic, and return its name; it is read back.

        Args:
            kind: `latency`, `bandwidth`, `slow_close`, `timeout`, `reset_peer`, `slicer`, `limit_data`.
            stream: The direction.
            toxicity: The fraction of connections concerned. Between 0 and 1 nothing can be repeated, and so it is with jitter.
            **attributes: Its settings, named and in the units of Toxiproxy.

        Raises:
            Unsafe: It would end or block a real server, or names what it has not.
            Declined: There is one of the kind in the direction.
        """
        return self._control.add(self.name, kind, stream, toxicity, attributes)

    def change(self, toxic: str, **attributes: int) -> None:
        """Change settings of a toxic, by its name."""
        self._control.change(self.name, toxic, attributes)

    def remove(self, toxic: str) -> None:
        """Remove a toxic, by its name. With a real server: only while no connection is blocked by a client that does not read."""
        self._control.remove(self.name, toxic)

    # -- now

    def cut(self, fault: Fault) -> None:
        """Do it to all connections of this moment; new ones are served, but for a stall or a half-open, which are for all.

        Args:
            fault: `fin`, `rst` (only of a proxy made with `resets=True`, which in turn has no `fin`): closed on both sides.
                `stall`: open and silent both ways, until `heal`. `half-open`: what the server sends vanishes, and its close too;
                what the client sends vanishes.

        Raises:
            Unsafe: The connections of this proxy cannot end so.
        """
        match fault:
            case "fin" | "rst":
                if (fault == "rst") != (resets := self._resets or self._planned_resets):
                    raise Unsafe(
                        f"connections of the proxy {self.name} end with {'RST' if resets else 'FIN'}: that is settled when "
                        f"they begin. Make the proxy with resets={fault == 'rst'}"
                    )
                self._control.enable(self.name, False)
                self._control.enable(self.name, True)
                self._down = False
            case "stall":
                self._stalled = True
                for stream in _STREAMS:
                    self._control.add(self.name, "bandwidth", stream, 1.0, {"rate": 0}, stall=True)
            case "half-open":
                for stream in _STREAMS:
                    self.toxic("timeout", stream, timeout=0)
                    self.toxic("slow_close", stream, delay=_FOR_EVER_MS)

    def end_with(self, fault: Literal["fin", "rst"]) -> None:
        """Let every connection that begins from now on end so, whatever ends it; those of this moment are closed.

        Raises:
            Unsafe: Something is planned or stalled: `heal` first.
        """
        if self._stalled or self._planned_resets or self._toxics() - {"reset_peer_downstream"}:
            raise Unsafe(f"the proxy {self.name} has toxics: heal it before it ends connections otherwise")
        if self._resets == (fault == "rst"):
            return
        # While it is disabled it has no connections: only then a real server's toxics may be changed.
        self._control.enable(self.name, False)
        self._resets = fault == "rst"
        if self._resets:
            self._arm_resets()
        else:
            self._control.remove(self.name, "reset_peer_downstream")
        self._control.enable(self.name, True)

    def refuse(self) -> None:
        """Close all connections and the port: a client that connects is refused, until `heal`."""
        self._down = True
        self._control.enable(self.name, False)

    def heal(self) -> None:
        """Undo everything: afterwards bytes pass as if nothing had been.

        After `cut("stall")` alone, on the same connections, and what waited comes; else the connections are closed.

        Raises:
            Declined: The port was taken in the moment between.
        """
        stall = {f"bandwidth_{stream}" for stream in _STREAMS} if self._stalled else set()
        toxics = self._toxics()
        if toxics - stall - ({"reset_peer_downstream"} if self._resets else set()):
            self._control.destroy(self.name)
            self._control.create(self.name, self._upstream, self.address)
            if self._resets:
                self._arm_resets()
        else:
            for name in sorted(toxics & stall):
                self._control.remove(self.name, name)
            if self._down:
                self._control.enable(self.name, True)
        self._stalled = self._planned_resets = self._down = False

    def close(self) -> None:
        """Remove the proxy; its connections are closed. Twice is fine."""
        if not self._closed:
            self._closed = True
            try:
                self._control.destroy(self.name)
            finally:
                self.release()

    def release(self) -> None:
        """Give the port away; for who ends the server, and all proxies with it."""
        if self._kept is not None:
            self._kept.close()

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self._closed

    def __enter__(self) -> Proxy:
        """Use it."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        self.close()

    def _toxics(self) -> set[str]:
        return set(self._control.toxics(self.name))

    def _arm_resets(self) -> None:
        # At work on no connection, but whoever begins while it is there ends with RST.
        self._control.add(self.name, "reset_peer", "downstream", 0.0, {"timeout": 0})
