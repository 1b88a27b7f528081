"""Actuators: what ends a connection at the place where the gate holds it. `base.py` is the seam.

`toxiproxy.py` is imported alone: most gates need no Toxiproxy.
"""

from reattach_chaos.gate.actuators.base import Actuator, ActuatorFailed
from reattach_chaos.gate.actuators.local import LocalActuator

__all__ = ["Actuator", "ActuatorFailed", "LocalActuator"]
