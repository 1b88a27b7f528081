"""One server's API, checked: what cannot be safe is not sent, what was sent is read back, what is not there then is an error.

Through toxiproxy-python where it can do it; a change of a toxic, which it lacks, through its consumer. Nothing here knows what a
cut is: that is `proxy.py`. Never sent: `/reset` and `/populate`, which also concern proxies of others.
"""

from __future__ import annotations

import json
import re
from typing import Any, Literal, TypeAlias

from reattach_chaos.toxiproxy.control.consumer import Consumer
from reattach_chaos.toxiproxy.control.errors import InfrastructureError, Unsafe
from reattach_chaos.toxiproxy.control.library import library
from reattach_chaos.toxiproxy.toxics import TOXICS

Stream: TypeAlias = Literal["upstream", "downstream"]
_NAME = re.compile(r"[A-Za-z0-9._-]+")  # the library quotes nothing, and a slash makes a proxy that nobody can address


class Control:
    """Speaks to one server. Any thread may use it.

    Args:
        consumer: Which server.
    """

    def __init__(self, consumer: Consumer) -> None:
        self._consumer = consumer
        self._library = library(consumer)
        self._server = self._library.toxiproxy()

    def version(self) -> str:
        """Return what the server calls its version (`git` for the original built from source)."""
        content = self._consumer.get("/version").content
        try:
            return str(json.loads(content)["version"])
        except (ValueError, KeyError, TypeError):
            return content.decode("utf-8", "replace").strip()

    def create(self, name: str, upstream: str, listen: str = "127.0.0.1:0") -> tuple[str, int]:
        """Make a proxy; return its host and port.

        Args:
            name: Nobody else's.
            upstream: Where it leads.
            listen: Where it listens; a free loopback port unless one is named.

        Raises:
            Unsafe: The name.
            Declined: The name is taken.
            InfrastructureError: No answer, or what is there is not what was asked for.
        """
        if not _NAME.fullmatch(name):
            raise Unsafe(f"a proxy cannot be called {name!r}: letters, digits, dots, dashes and underscores only")
        made = self._server.create(upstream=upstream, name=name, listen=listen)
        host, _, port = str(made.listen).rpartition(":")
        self._same("upstream", made.upstream, upstream)
        self._same("enabled", made.enabled, True)
        if not port.isdecimal() or port == "0":
            raise InfrastructureError(f"{self._consumer.url} gave no port for the proxy {name!r}: {made.listen!r}")
        return host, int(port)

    def destroy(self, name: str) -> None:
        """Remove a proxy with its connections; one that is gone is fine.

        Raises:
            InfrastructureError: No answer, or it is still there.
        """
        proxy = self._server.get_proxy(name)
        if proxy is not None:
            proxy.destroy()
            self._same("the proxy", self._server.get_proxy(name), None)

    def enable(self, name: str, enabled: bool) -> None:
        """Enable a proxy, or close its port and its connections.

        Raises:
            Declined: It is gone, or its port was taken meanwhile.
            InfrastructureError: No answer, or it did not happen.
        """
        proxy = self._proxy(name)
        if enabled:
            proxy.enable()
        else:
            proxy.disable()
        self._same("enabled", self._proxy(name).enabled, enabled)

    def toxics(self, name: str) -> dict[str, Any]:
        """Return a proxy's toxics by name: the library's objects (`type stream name toxicity attributes`)."""
        found: dict[str, Any] = self._proxy(name).toxics()
        return found

    def add(
        self, name: str, kind: str, stream: Stream, toxicity: float, attributes: dict[str, int], *, stall: bool = False
    ) -> str:
        """Add a toxic, read it back, return its name.

        Args:
            name: The proxy's.
            kind: The toxic's type.
            stream: The direction.
            toxicity: The fraction of connections, 0 to 1; 0 and 1 are the only reproducible ones.
            attributes: Its settings by the API's names.
            stall: Whether a bandwidth of 0 is meant.

        Raises:
            Unsafe: It would end or block a real server, or it names what no toxic has (servers ignore that silently).
            Declined: There is one of this type in this direction.
            InfrastructureError: No answer, or what is there is not what was asked for.
        """
        check(kind, toxicity, attributes, stall=stall)
        toxic = f"{kind}_{stream}"
        # By the constructor, not by a look first: two requests less, and the answer to the read is what counts.
        self._handle(name).add_toxic(
            type=kind, name=toxic, stream=stream, toxicity=toxicity, attributes=dict(attributes)
        )
        found = self.toxics(name).get(toxic)
        if found is None:
            raise InfrastructureError(
                f"{self._consumer.url} took the toxic {toxic!r} of {name!r}, and does not have it"
            )
        self._same("type and stream", (found.type, found.stream), (kind, stream))
        self._same("toxicity", found.toxicity, toxicity)
        self._holds(found.attributes, attributes)
        return toxic

    def change(self, name: str, toxic: str, attributes: dict[str, int]) -> None:
        """Change settings of a toxic; others stay.

        Raises:
            Unsafe: As `add`.
            Declined: There is none of the name.
            InfrastructureError: No answer, or it did not happen.
        """
        found = self.toxics(name).get(toxic)
        if found is not None:
            check(found.type, found.toxicity, {**found.attributes, **attributes})
        self._consumer.patch(f"/proxies/{name}/toxics/{toxic}", json={"attributes": attributes})
        self._holds(self.toxics(name)[toxic].attributes, attributes)

    def remove(self, name: str, toxic: str) -> None:
        """Remove a toxic.

        Raises:
            Declined: There is none of the name.
            InfrastructureError: No answer, or it is still there.
        """
        self._handle(name).destroy_toxic(toxic)
        self._same(f"the toxic {toxic!r}", self.toxics(name).get(toxic), None)

    def _proxy(self, name: str) -> Any:
        found = self._server.get_proxy(name)
        if found is None:
            raise InfrastructureError(f"{self._consumer.url} has lost the proxy {name!r}")
        return found

    def _handle(self, name: str) -> Any:
        """Return the library's object for a proxy that we know to be there."""
        return self._library.proxy(name=name, upstream="", enabled=True, listen="")

    def _same(self, what: str, found: Any, wanted: Any) -> None:
        if found != wanted:
            raise InfrastructureError(f"{self._consumer.url} answered well, but {what} is {found!r} and not {wanted!r}")

    def _holds(self, found: dict[str, Any], wanted: dict[str, int]) -> None:
        self._same("attributes", {name: found.get(name) for name in wanted}, wanted)


def check(kind: str, toxicity: float, attributes: dict[str, int], *, stall: bool = False) -> None:
    """Refuse what would end or block a real server, or would silently do nothing.

    Raises:
        Unsafe: With the way out.
    """
    if kind not in TOXICS:
        raise Unsafe(f"there is no toxic {kind!r}; there are {', '.join(TOXICS)}")
    known = TOXICS[kind].names()
    for name, value in attributes.items():
        if name not in known:
            raise Unsafe(f"a {kind} has no {name!r}; it has {', '.join(known) or 'no settings'}")
        if type(value) is not int or value < 0:
            raise Unsafe(f"{name} of a {kind} is a whole number of 0 or more, not {value!r}")
    if not 0 <= toxicity <= 1:
        raise Unsafe(f"a toxicity is from 0 to 1, not {toxicity!r}")
    if kind == "slicer" and attributes.get("average_size", 0) < 1:
        raise Unsafe("a slicer needs average_size: without it the first data end a real server's process")
    if kind == "bandwidth" and not attributes.get("rate", 0) and not stall:
        raise Unsafe('a bandwidth of 0 is a stall: cut("stall") makes one that heals')
