"""The settings of faults: what generators write, what holds where a schedule says nothing, and what any number in one may be.

Who does a fault asks `setting` alone, on sockets and in the simulation, so that a case means the same in both.
"""

import random
from typing import Any

from reattach_chaos.schedules.fault import Fault
from reattach_chaos.schedules.schedule import Planned

USUAL: dict[Fault, dict[str, Any]] = {
    Fault.LATENCY: {"delay_ms": 20},
    Fault.TRICKLE: {"bytes": 1, "delay_ms": 0},
    Fault.BANDWIDTH: {"kb_per_s": 8},
    Fault.SLOW_READER: {"delay_ms": 20},
    Fault.BUSY: {"status": 503, "retry_after_ms": 100},
    Fault.DUPLICATE: {"events": 2},
    Fault.SERVER_RESTART: {"signal": "kill"},
    Fault.NEW_EPOCH: {"keep": 0},
    Fault.STORE_FAILURE: {"lag_ms": 0},
    Fault.NO_ROUTE: {"how": "name"},
    Fault.SUSPEND: {"sleep_ms": 60_000},
    Fault.EXPIRE: {"keep": 2},
}
"""What generators write: a part of the schedules' ids."""
_UNWRITTEN: dict[Fault, dict[str, Any]] = {
    Fault.SERVER_RESTART: {"down_ms": 1_000},
    Fault.STORE_FAILURE: {"reason": "full"},
}
"""What holds beside `USUAL`, and is written by nobody."""

DAY_MS = 86_400_000
RANGES: dict[str, tuple[int, int]] = {
    "seed": (0, 2**64 - 1),
    "event": (1, 1_000_000),
    "run": (1, 1_000),
    "offset": (0, 2**40),
    "width": (2, 4),
    "nth": (1, 1_000),
    "times": (1, 1_000),
    "delay_ms": (0, DAY_MS),
    "down_ms": (0, DAY_MS),
    "lag_ms": (0, 1_000),  # longer is not waited for in a process of ours
    "retry_after_ms": (0, DAY_MS),
    "sleep_ms": (0, DAY_MS),
    "bytes": (1, 1_000_000),
    "kb_per_s": (1, 1_000_000),
    "status": (400, 599),
    "events": (1, 1_000),
    "keep": (0, 1_000),
    "heartbeat_ms": (1, 3_600_000),
}
"""Member of a schedule → the least and the most that it may be, for all who read one.

Other times may be a day: the simulation's clock does not wait. Sockets do, and refuse what is longer than a client is given.
"""


def usual(fault: Fault) -> dict[str, Any]:
    """Return the settings that a fault has where nothing else is asked for."""
    return dict(USUAL.get(fault, {}))


def settings_of(planned: Planned) -> dict[str, Any]:
    """Return all settings that a planned fault is done with: its own, else the usual ones.

    A busy server has no Retry-After but its own: to plan none is to leave it out.
    """
    whole = {**_UNWRITTEN.get(planned.fault, {}), **usual(planned.fault), **planned.settings}
    if "retry_after_ms" not in planned.settings:
        whole.pop("retry_after_ms", None)
    return whole


def setting(planned: Planned, name: str) -> Any:
    """Return one of them.

    Raises:
        KeyError: The fault has no such setting.
    """
    return settings_of(planned)[name]


def drawn(fault: Fault, chance: random.Random) -> dict[str, Any]:
    """Return settings of a fault by chance; small, so that a case stays short."""
    match fault:
        case Fault.BUSY:
            status = chance.choice((429, 503))
            return {"status": status} | ({"retry_after_ms": chance.randrange(0, 500)} if chance.random() < 0.5 else {})
        case Fault.TRICKLE:
            return {"bytes": chance.choice((1, 10, 100, 100)), "delay_ms": 0}
        case Fault.SERVER_RESTART:
            return {"signal": chance.choice(("term", "kill"))}
        case Fault.NO_ROUTE:
            return {"how": chance.choice(("name", "tls"))}
        case Fault.STORE_FAILURE:
            return {"lag_ms": chance.choice((0, 0, 50, 500))}
        case Fault.NEW_EPOCH | Fault.EXPIRE:
            return {"keep": chance.randrange(0, 4)}
        case Fault.SUSPEND:
            return {"sleep_ms": chance.choice((1_000, 60_000, 3_600_000))}
        case _:
            return usual(fault)
