"""`Terms`: what a client is held to in the cases of a run: how long things may take on this server and this machine."""

from dataclasses import dataclass, field

HEARTBEAT_MS = 200.0
STALL_MS = 2_000.0
"""A stall may take at least so long to be noticed: a loaded machine is nobody's fault."""


@dataclass(frozen=True, slots=True)
class Backoff:
    """How a client waits, in ms: see the history's `Case`."""

    floor_ms: float
    base_ms: float
    ceiling_ms: float
    give_up_ms: float


OURS = Backoff(250.0, 1_000.0, 30_000.0, 600_000.0)
"""What our own client promises, written down a second time: a bug must not be able to excuse itself."""
SMALL = Backoff(20.0, 100.0, 5_000.0, 120_000.0)
"""What the right one among the small clients does: so a wrong one is measured by it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """The terms.

    Attributes:
        timeout_s: When a case's client is ended.
        heartbeat_ms: What the server keeps.
        marks: The client marks what it may have shown before.
        backoff: How the client waits; None: not known, only the rate is judged.
    """

    timeout_s: float = 30.0
    heartbeat_ms: float = HEARTBEAT_MS
    marks: bool = False
    backoff: Backoff | None = None
    stall_heartbeats: float = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "stall_heartbeats", max(4.0, STALL_MS / self.heartbeat_ms))

    @property
    def converge_ms(self) -> float:
        """A client that has not come to its end so long after the last fault hangs; it is ended later, so that this is seen."""
        return self.timeout_s * 1000 * 0.75
