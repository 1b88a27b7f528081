"""A Toxiproxy server in the hands of a test: real or embedded, started and ended with it; and proxies, each under its own name.

The safe procedure, which a real server needs and the embedded one does not mind: a new name and a free port a case; all toxics set
and read back before a client connects; `enabled: false` or removal as what acts on live connections; the proxy removed before the
client's sockets; a limit for each call, and a hang is nobody's verdict; a fresh server every few thousand cuts (`renew`).
"""

from __future__ import annotations

import secrets
from types import TracebackType
from typing import Literal

from reattach_chaos.ports import HOST, held
from reattach_chaos.toxiproxy.control import backends
from reattach_chaos.toxiproxy.control.backends import BackendName
from reattach_chaos.toxiproxy.control.consumer import LIMIT_S, Consumer
from reattach_chaos.toxiproxy.control.control import Control
from reattach_chaos.toxiproxy.control.errors import ToxiproxyError, Unsafe
from reattach_chaos.toxiproxy.control.proxy import Proxy


class Toxiproxy:
    """One server. Use it in a `with`, or close it. Any thread may use it; any number may live side by side.

    Args:
        backend: `auto`: the real server where there is one (`REATTACH_TOXIPROXY`, then the PATH), else the embedded one.
        url: A server that runs already: it is used, and left running.
        limit_s: Seconds for each call of its API.
        seed: Of the embedded one's toxicity, jitter and sizes.

    Raises:
        InfrastructureError: The server cannot be had, or does not start.
    """

    def __init__(
        self,
        backend: BackendName = "auto",
        *,
        url: str | None = None,
        limit_s: float = LIMIT_S,
        seed: int | None = None,
    ) -> None:
        # Looked up once: what takes its place later comes from where it came from.
        self._place = backends.place(backend, url)
        self._limit_s = limit_s
        self._seed = seed
        self._proxies: list[Proxy] = []
        self._open()

    def _open(self) -> None:
        self._backend = backends.start(self._place, self._seed)
        try:
            self._control = Control(
                Consumer(self._backend.url, limit_s=self._limit_s, condition=self._backend.condition)
            )
            self.version = self._control.version()
        except ToxiproxyError:
            self._backend.close()
            raise

    @property
    def url(self) -> str:
        """Where the API is; another after `renew`."""
        return self._backend.url

    @property
    def backend(self) -> Literal["embedded", "toxiproxy"]:
        """Which server it is."""
        return self._backend.name

    def proxy(self, upstream: str, *, resets: bool = False) -> Proxy:
        """Make a proxy in front of an upstream, on a free loopback port.

        Args:
            upstream: `host:port`. It need not be there yet.
            resets: Whether connections end with RST instead of FIN, whatever ends them.

        Raises:
            InfrastructureError: No answer, or not what was asked for.
        """
        name = f"reattach-{secrets.token_hex(8)}"
        # It is closed and opened again where connections are to end otherwise. Somebody else's server may be on another machine.
        kept = None if isinstance(self._backend, backends.Remote) else held()
        try:
            host, port = self._control.create(name, upstream, f"{HOST}:{kept.getsockname()[1] if kept else 0}")
            proxy = Proxy(self._control, name, upstream, host, port, resets=resets, kept=kept)
        except ToxiproxyError:
            if kept is not None:
                kept.close()
            self._control.destroy(name)
            raise
        self._proxies = [*(each for each in self._proxies if not each.closed), proxy]
        return proxy

    def renew(self) -> bool:
        """Start a fresh server if this one is worn out or gone; return whether that was so. For between batches of cases.

        Raises:
            Unsafe: A proxy is open.
        """
        if any(not each.closed for each in self._proxies):
            raise Unsafe("close all proxies before the server is renewed")
        if not self._backend.worn():
            return False
        self._backend.close()
        self._open()
        return True

    def close(self) -> None:
        """Remove our proxies, and end the server unless it is somebody else's. Twice is fine."""
        try:
            for each in self._proxies:
                # A server of our own takes them with it, also one that hangs.
                if isinstance(self._backend, backends.Remote):
                    each.close()
        finally:
            for each in self._proxies:
                each.release()
            self._proxies = []
            self._backend.close()

    def __enter__(self) -> Toxiproxy:
        """Use it."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        self.close()
