"""How long a plan takes by itself on sockets, where nobody can turn a clock on: longer than a client is given is no case. Pure."""

from reattach_chaos.schedules import Fault, Planned, Schedule
from reattach_chaos.schedules.settings import settings_of


def takes_ms(schedule: Schedule) -> float:
    """Return how many ms a schedule's faults take at least, one after the other."""
    return sum(_takes_ms(planned) for planned in schedule.faults)


def objection_to_time(schedule: Schedule, timeout_s: float) -> str:
    """Return why a client with so much time could not come to its end whatever it did; "" where it could."""
    needs_s = takes_ms(schedule) / 1000
    if needs_s < timeout_s:
        return ""
    return f"the plan itself needs {needs_s:g} s, a client is given {timeout_s:g}: --client-timeout"


def _takes_ms(planned: Planned) -> float:
    """Return it for one fault.

    A suspended client's clocks are turned and a store lags a second at most, so neither is counted.
    """
    settings = settings_of(planned)
    match planned.fault:
        case Fault.SERVER_RESTART:
            return float(settings["down_ms"])
        case Fault.BUSY:
            return float(settings.get("retry_after_ms", 0)) * planned.times
        case Fault.LATENCY | Fault.SLOW_READER | Fault.TRICKLE:
            return float(settings["delay_ms"]) * planned.times
        case _:
            return 0.0
