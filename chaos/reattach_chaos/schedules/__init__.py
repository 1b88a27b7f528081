"""Schedules: which faults come where in a case, as values, as JSON, enumerated, sampled, drawn and shrunk. Nothing here plays one.

    from reattach_chaos.schedules import Fault, Place, Planned, Schedule, at, quick

Start with `schedule.py` and `place.py`; `fits.py` says what makes sense where. `strategies.py` is for Hypothesis,
and imported alone.
"""

from reattach_chaos.schedules.document import ScheduleError
from reattach_chaos.schedules.fault import Fault
from reattach_chaos.schedules.files import dumps, from_json, loads, to_json
from reattach_chaos.schedules.fits import objection
from reattach_chaos.schedules.full import bytewise, full
from reattach_chaos.schedules.multiplicity import Multiplicity, multiplied
from reattach_chaos.schedules.pairwise import pairwise
from reattach_chaos.schedules.place import Place, Position
from reattach_chaos.schedules.quick import quick
from reattach_chaos.schedules.schedule import Planned, Schedule, at, name_of
from reattach_chaos.schedules.shape import CANONICAL, EVENT_KINDS, EventKind, Shape, shape_of
from reattach_chaos.schedules.shrinking import Shrinking, shrink, shrinks
from reattach_chaos.schedules.soak import drawn_schedule, sim, soak

__all__ = [
    "Schedule", "Planned", "Fault", "Place", "Position", "at", "name_of", "objection",
    "Shape", "EventKind", "EVENT_KINDS", "CANONICAL", "shape_of",
    "quick", "full", "bytewise", "pairwise", "soak", "sim", "drawn_schedule", "Multiplicity", "multiplied",
    "Shrinking", "shrink", "shrinks", "ScheduleError", "loads", "dumps", "from_json", "to_json",
]  # fmt: skip
