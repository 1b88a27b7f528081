"""`Ways`: how a client of ours finds a case's server where its way there is to be lost: by a name, or by TLS.

Who asks is known only when they have come. So the request that is meant is turned off, and then, once for it, the client does
not find the name (`../inside/resolver.py`), or is shown a certificate of another name (`tls_front.py`). Both must be met, or
nothing is proven.
"""

from contextlib import AsyncExitStack
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

from reattach_chaos.cases.inside.resolver import NAME
from reattach_chaos.cases.servers.control import ServerTrouble
from reattach_chaos.cases.servers.tls_front import KNOWN, TlsFront
from reattach_chaos.schedules import Fault, Planned, Schedule
from reattach_chaos.schedules.settings import setting


class Ways:
    """The way to the server of one case.

    Args:
        schedule: What is planned.
        folder: For the failures to come.
    """

    def __init__(self, schedule: Schedule, folder: Path) -> None:
        self._hows = {how(planned) for planned in schedule.faults if planned.fault is Fault.NO_ROUTE}
        self._folder = folder / "names"
        self._front: TlsFront | None = None
        self._stack = AsyncExitStack()
        self._count = 0

    @property
    def names(self) -> Path | None:
        """Where the client's resolver finds the failures to come; None: no name is lost in this case."""
        return self._folder if self._hows else None

    @property
    def trusted(self) -> Path | None:
        """The certificate that the client has to know; None: there is no TLS in this case."""
        return KNOWN if self._front is not None else None

    async def lead(self, url: str) -> str:
        """Return the address for the client, whose way leads to this one."""
        if not self._hows:
            return url
        self._folder.mkdir()
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port or 80
        if "tls" not in self._hows:
            return f"http://{NAME}:{port}"
        self._front = await self._stack.enter_async_context(TlsFront(host, port))
        return f"https://{NAME}:{self._front.port}"

    def lose(self, planned: Planned) -> None:
        """Let the next attempt find no way."""
        if how(planned) == "tls" and self._front is not None:
            self._front.wrong += 1
            return
        self._count += 1
        (self._folder / f"{self._count:06}").touch()

    def over(self) -> None:
        """The client has ended.

        Raises:
            ServerTrouble: It has not met all that was lost.
        """
        names = len(list(self._folder.iterdir())) if self._hows else 0
        if names or (self._front is not None and self._front.wrong):
            raise ServerTrouble("the client did not ask for the way again that it was to lose")

    async def __aenter__(self) -> Self:
        """The case begins."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """The case is over."""
        await self._stack.aclose()


def how(planned: Planned) -> str:
    """Return in which way a route is lost."""
    return str(setting(planned, "how"))
