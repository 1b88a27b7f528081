"""The simulation: client, server, network, disk and clock in one event loop; about a hundred schedules a second of one core.

    from reattach_chaos.sim import play_simulated, volume

    history = play_simulated(schedule)                  # the same schedule, the same history
    found = volume(range(1000), jobs=2, progress=print) # drawn schedules, judged as they come

Start with `play.py`. Never here: a socket, a thread, real time, a decision of the client's; a verdict (`checkers/`).
"""

from reattach_chaos.sim.play import play_simulated
from reattach_chaos.sim.volume import Volume, simulate, volume

__all__ = ["play_simulated", "simulate", "volume", "Volume"]
