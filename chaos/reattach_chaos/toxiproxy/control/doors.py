"""One test's proxies, one for each address that it asks for: what the fixture `reattach_proxy` hands out.

Everything is done to all of them, so a test need not name them. For planned cuts, and for one among several, `proxy(url)` gives
the proxy itself.
"""

from __future__ import annotations

from types import TracebackType
from typing import Literal
from urllib.parse import urlsplit

from reattach_chaos.toxiproxy.control.backends import BackendName
from reattach_chaos.toxiproxy.control.control import Stream
from reattach_chaos.toxiproxy.control.errors import Unsafe
from reattach_chaos.toxiproxy.control.proxy import Fault, Proxy
from reattach_chaos.toxiproxy.control.toxiproxy import Toxiproxy

_PORTS = {"http": 80, "ws": 80, "https": 443, "wss": 443}


class Doors:
    """Proxies by the address of their upstream, on a server of their own. Use it in a `with`.

    Args:
        backend: `auto`: the real server where there is one, else the embedded one.
    """

    def __init__(self, backend: BackendName = "auto") -> None:
        self._toxiproxy = Toxiproxy(backend)
        self._proxies: dict[str, Proxy] = {}

    @property
    def backend(self) -> Literal["embedded", "toxiproxy"]:
        """Which server it is."""
        return self._toxiproxy.backend

    def url_for(self, url: str, *, resets: bool = False) -> str:
        """Return an address as it is through a proxy; the proxy is made when its server is asked for first.

        Args:
            url: Any address of the server, with its path and query.
            resets: Whether connections end with RST instead of FIN, whatever ends them; settled when the proxy is made.

        Raises:
            Unsafe: It was made the other way.
        """
        return self.proxy(url, resets=resets).url_for(url)

    def proxy(self, url: str, *, resets: bool | None = None) -> Proxy:
        """Return the proxy before a server; see `url_for`. `resets`: None takes it as it is."""
        parts = urlsplit(url)
        upstream = f"{parts.hostname}:{parts.port or _PORTS.get(parts.scheme, 80)}"
        if upstream not in self._proxies:
            self._proxies[upstream] = self._toxiproxy.proxy(upstream, resets=bool(resets))
        proxy = self._proxies[upstream]
        if resets is not None and resets != proxy.resets:
            raise Unsafe(f"the proxy before {upstream} was made with resets={proxy.resets}")
        return proxy

    def cut(self, fault: Fault) -> None:
        """Do it to all connections of this moment: `fin`, `rst`, `stall`, `half-open`; see `Proxy.cut`."""
        for proxy in self._all():
            proxy.cut(fault)

    def refuse(self) -> None:
        """Close all connections, and refuse new ones until `heal`."""
        for proxy in self._all():
            proxy.refuse()

    def toxic(self, kind: str, stream: Stream = "downstream", /, *, toxicity: float = 1.0, **attributes: int) -> None:
        """Add a toxic to each proxy; see `Proxy.toxic`."""
        for proxy in self._all():
            proxy.toxic(kind, stream, toxicity=toxicity, **attributes)

    def heal(self) -> None:
        """Undo everything; see `Proxy.heal`."""
        for proxy in self._proxies.values():
            proxy.heal()

    def _all(self) -> list[Proxy]:
        if not self._proxies:
            raise Unsafe("there is no proxy yet: url_for(url) makes one")
        return list(self._proxies.values())

    def __enter__(self) -> Doors:
        """Use it."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close all."""
        self._toxiproxy.close()
