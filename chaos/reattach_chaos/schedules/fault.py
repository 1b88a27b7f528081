"""`Fault`: what is done, by a word; its code in the chaos page, who can do it, and the settings that it takes.

One table, because all that enumerates, validates or prints asks it the same questions.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, TypeAlias

Actor: TypeAlias = Literal["proxy", "gate", "runner"]


class Fault(StrEnum):
    """What is done to a connection, a server, a client or a store."""

    FIN = "fin"
    RST = "rst"
    STALL = "stall"
    HALF_OPEN = "half-open"
    REFUSE = "refuse"
    ACCEPT_CLOSE = "accept-close"
    LATENCY = "latency"
    TRICKLE = "trickle"
    BANDWIDTH = "bandwidth"
    SLOW_READER = "slow-reader"
    BUSY = "busy"
    UNAUTHORIZED = "unauthorized"
    EMPTY = "empty"
    WRONG_TYPE = "wrong-type"
    EARLY_END = "early-end"
    DUPLICATE = "duplicate"
    BROKEN_CHUNK = "broken-chunk"
    OTHER_INSTANCE = "other-instance"
    SERVER_RESTART = "server-restart"
    NEW_EPOCH = "new-epoch"
    KILL = "kill"
    STORE_FAILURE = "store-failure"
    NO_ROUTE = "no-route"
    SECOND_CLIENT = "second-client"
    SUSPEND = "suspend"
    EXPIRE = "expire"

    @property
    def code(self) -> str:
        """Its number in the chaos page: F1 to F25, and F26 for retention, which the page has under the server's duties."""
        return f"F{list(Fault).index(self) + 1}"

    @property
    def traits(self) -> "Traits":
        """Who does it, to what, with which settings."""
        return TRAITS[self]


@dataclass(frozen=True, slots=True, kw_only=True)
class Traits:
    """What is true of a fault.

    Attributes:
        actor: Who does it: "proxy": Toxiproxy, once the gate holds at the place; "gate": what Toxiproxy cannot do; "runner": to a
            process, a store or a clock.
        cuts: It ends the connection at its place.
        settings: Names and whether each is a number; see the README.
        words: What a person reads.
    """

    actor: Actor
    words: str
    cuts: bool = False
    settings: tuple[str, ...] = ()


TRAITS = {
    Fault.FIN: Traits(actor="proxy", cuts=True, words="FIN"),
    Fault.RST: Traits(actor="proxy", cuts=True, words="RST"),
    Fault.STALL: Traits(actor="proxy", cuts=True, words="stall"),
    Fault.HALF_OPEN: Traits(actor="proxy", cuts=True, words="half-open"),
    Fault.REFUSE: Traits(actor="proxy", words="connection refused"),
    Fault.ACCEPT_CLOSE: Traits(actor="gate", cuts=True, words="accepted, then closed"),
    Fault.LATENCY: Traits(actor="proxy", words="latency", settings=("delay_ms",)),
    Fault.TRICKLE: Traits(actor="proxy", words="one byte at a time", settings=("bytes", "delay_ms")),
    Fault.BANDWIDTH: Traits(actor="proxy", words="narrow band", settings=("kb_per_s",)),
    Fault.SLOW_READER: Traits(actor="gate", words="slow reader", settings=("delay_ms",)),
    Fault.BUSY: Traits(actor="gate", words="server busy", settings=("status", "retry_after_ms")),
    Fault.UNAUTHORIZED: Traits(actor="gate", words="401"),
    Fault.EMPTY: Traits(actor="gate", words="200 and nothing"),
    Fault.WRONG_TYPE: Traits(actor="gate", words="a web page instead"),
    Fault.EARLY_END: Traits(actor="gate", cuts=True, words="clean early end"),
    Fault.DUPLICATE: Traits(actor="gate", words="a span twice", settings=("events",)),
    Fault.BROKEN_CHUNK: Traits(actor="gate", cuts=True, words="broken chunk size"),
    Fault.OTHER_INSTANCE: Traits(actor="gate", words="another instance"),
    Fault.SERVER_RESTART: Traits(actor="runner", cuts=True, words="server restarted", settings=("signal", "down_ms")),
    Fault.NEW_EPOCH: Traits(actor="runner", words="the log replaced", settings=("keep",)),
    Fault.KILL: Traits(actor="runner", words="client killed"),
    Fault.STORE_FAILURE: Traits(actor="runner", words="store failed", settings=("lag_ms", "reason")),
    Fault.NO_ROUTE: Traits(actor="runner", words="no route", settings=("how",)),
    Fault.SECOND_CLIENT: Traits(actor="runner", words="a second client on the store"),
    Fault.SUSPEND: Traits(actor="runner", words="suspended", settings=("sleep_ms",)),
    Fault.EXPIRE: Traits(actor="runner", words="events expired", settings=("keep",)),
}

SILENCES = frozenset({Fault.STALL, Fault.HALF_OPEN})
"""Nothing comes any more, and nothing says so."""

STORE_REASONS = {"full": "no space left on device", "io": "input/output error", "locked": "database is locked"}
"""Why a store fails, and what it says then."""

WORD_SETTINGS = {"signal": ("term", "kill"), "how": ("name", "tls"), "reason": tuple(STORE_REASONS)}
"""Settings that are words; all others are numbers of at least 0."""
