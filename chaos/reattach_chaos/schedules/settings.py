"""The settings of faults: what generators write, the usual ones or drawn ones, and what holds where a schedule says nothing.

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
