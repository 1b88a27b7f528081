"""What one server is told: limits, scripts, tokens, the log. Values only; reads no file and no environment.

Where the defaults come from: PROTOCOL, sections 7 and 8; the heartbeat is below 20 s, since common proxies cut
a quiet connection at 60 s.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from reattach_mockserver.bearer import Tokens
from reattach_mockserver.engine.work import Work
from reattach_mockserver.hooks import Hooks
from reattach_mockserver.logs.base import EventLog
from reattach_mockserver.logs.memory import MemoryLog
from reattach_mockserver.moment import now_ms
from reattach_mockserver.patience import Patience
from reattach_mockserver.scenarios.recording import Recording
from reattach_mockserver.scenarios.script import Limits as ScriptLimits
from reattach_mockserver.scenarios.script import LineEnd, Script

Playable: TypeAlias = Script | Recording | Work
"""What a run can play."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What the server holds itself to. None: no limit. Durations in ms, sizes in bytes."""

    heartbeat_ms: int = 15_000
    stream_age_ms: int | None = None
    retention_events: int | None = None
    retention_ms: int | None = None
    key_retention_ms: int | None = None
    event_bytes: int = 1_048_576
    body_bytes: int = 1_048_576
    header_bytes: int = 32_768
    streams_per_principal: int | None = 1_000
    runs_per_principal: int | None = 1_000
    line_end: LineEnd = "lf"

    def with_script(self, limits: ScriptLimits) -> "Limits":
        """Return these limits with what a script asks for in their place."""
        given = {name: getattr(limits, name) for name in ScriptLimits.__slots__}
        return replace(self, **{name: value for name, value in given.items() if value is not None})


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """One server.

    `scripts` are the named ones that a run may ask for; `default` plays everything else. `tokens` None: nobody
    is asked who they are. `kill` is called by a script's kill step and does not return from a process that dies; None:
    the engine restarts instead, which is all that a mounted application may do to its host. `now` is the clock of
    retention and expiry, in ms; scripts wait by another, which never jumps. A create whose key is in flight
    waits `in_flight_wait` seconds for the first one: longer than a create takes that has to cancel a run. A socket has
    `hello_wait` seconds for its token, and as many for what it wants. `patience` is our own
    host's; another's has its own.
    """

    scripts: Mapping[str, Playable]
    default: str
    log: EventLog = field(default_factory=MemoryLog)
    limits: Limits = field(default_factory=Limits)
    tokens: Tokens | None = None
    deterministic: bool = False
    seed: int | None = None
    hooks: Hooks = field(default_factory=Hooks)
    kill: Callable[[], None] | None = None
    now: Callable[[], int] = now_ms
    in_flight_wait: float = 15.0
    hello_wait: float = 10.0
    patience: Patience = field(default_factory=Patience)
