"""How long the server's host waits for whoever connects, and for how many. Values only.

Of a mounted application these are its own host's matter. Where the numbers come from: a phone on a bad line sends a request's
head within seconds and the largest body within a minute; a reader that takes nothing for ten minutes is gone, though its
machine still answers for it.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """Durations in seconds, counted from the first byte that is waited for, not from the last that came.

    Args:
        head: For the whole head of a request, also of the first one of a connection that says nothing.
        body: For the whole body, also one that nobody reads any more.
        stall: For a reader to take anything of what waits to be sent to it.
        linger: For whoever was refused by the host itself to read why.
        connections: How many may be open; None: as many as the process may have files, less what it needs itself.
    """

    head: float = 20.0
    body: float = 60.0
    stall: float = 600.0
    linger: float = 2.0
    connections: int | None = None
