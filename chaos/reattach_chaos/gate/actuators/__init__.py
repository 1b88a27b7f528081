"""Actuators: what ends a connection at the place where the gate holds it. `base.py` is the seam."""

from reattach_chaos.gate.actuators.base import Actuator
from reattach_chaos.gate.actuators.local import LocalActuator

__all__ = ["Actuator", "LocalActuator"]
