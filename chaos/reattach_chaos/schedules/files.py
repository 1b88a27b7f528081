"""Schedules as JSON: written, read, and refused with the place of what is wrong.

    {"reattach": "schedule/1", "id": "rst-after-event-7", "seed": 7, "scenario": "session",
     "faults": [{"fault": "rst", "at": {"place": "after-event", "event": 7}}]}

The README of this folder has all members. What has its default is left out. Unknown members are errors: a schedule is an order,
and half an order obeyed is another case. Pure: text in, values out.

Checked by tests/chaos/schedules/test_files.py.
"""

import json
import re
from collections.abc import Mapping
from typing import Any, NoReturn, TypeVar

from reattach_chaos.schedules.document import ScheduleError, document, shown
from reattach_chaos.schedules.fault import WORD_SETTINGS, Fault
from reattach_chaos.schedules.fits import objection
from reattach_chaos.schedules.place import Place, Position
from reattach_chaos.schedules.schedule import DIRECTIONS, ROUTES, Planned, Schedule
from reattach_chaos.schedules.settings import RANGES

FORMAT = "schedule/1"
MOST_FAULTS = 1000
MOST_ID = 200
"""An id is a file's name, with a suffix, and an Idempotency-Key; ours are below 150, see `name_of`."""
_ID = re.compile(f"[A-Za-z0-9][A-Za-z0-9._-]{{0,{MOST_ID - 1}}}")

V = TypeVar("V")


def to_json(schedule: Schedule) -> dict[str, Any]:
    """Return a schedule as its JSON object."""
    value: dict[str, Any] = {
        "reattach": FORMAT,
        "id": schedule.id,
        "seed": schedule.seed,
        "scenario": schedule.scenario,
    }
    value["faults"] = [_planned_json(planned) for planned in schedule.faults]
    for name in ("client", "server", "versions", "requirements"):
        if getattr(schedule, name):
            value[name] = getattr(schedule, name)
    return value


def dumps(schedule: Schedule) -> str:
    """Return a schedule as the text of its file."""
    return json.dumps(to_json(schedule), ensure_ascii=False, indent=1) + "\n"


def loads(text: str | bytes) -> Schedule:
    """Read a schedule's text, or its file's bytes.

    Raises:
        ScheduleError: Not JSON, or not a schedule.
    """
    return from_json(document(text))


def from_json(value: Any) -> Schedule:
    """Make a schedule from its JSON object.

    Raises:
        ScheduleError: Something is not as the README says.
    """
    known = ("reattach", "id", "seed", "scenario", "faults", "client", "server", "versions", "requirements")
    members = _object(value, "schedule", known)
    if members.get("reattach") != FORMAT:
        _wrong("reattach", f"must be {FORMAT!r}, is {shown(members.get('reattach'))}")
    faults = members.get("faults", [])
    if not isinstance(faults, list) or len(faults) > MOST_FAULTS:
        _wrong("faults", f"must be a list of at most {MOST_FAULTS} faults")
    scenario = members.get("scenario", "session")
    if not isinstance(scenario, str | Mapping):
        _wrong("scenario", f"must be a name or a script, is {scenario!r}")
    return Schedule(
        id=_id(_text(members, "id", "id")),
        seed=_number(members, "seed", "seed", "seed", default=0),
        scenario=scenario,
        faults=tuple(_planned(each, f"faults[{place}]") for place, each in enumerate(faults)),
        client=_object(members.get("client", {}), "client"),
        server=_object(members.get("server", {}), "server"),
        versions={name: str(each) for name, each in _object(members.get("versions", {}), "versions").items()},
        requirements=_text(members, "requirements", "requirements", default=""),
    )


def _planned_json(planned: Planned) -> dict[str, Any]:
    position = planned.at
    at: dict[str, Any] = {"place": position.place.value}
    at |= {
        name: getattr(position, name) for name in ("event", "offset", "width") if getattr(position, name) is not None
    }
    if position.run != 1:
        at["run"] = position.run
    value: dict[str, Any] = {"fault": planned.fault.value, "at": at}
    if planned.route != "stream":
        value["route"] = planned.route
    defaults = {"nth": 1, "times": 1, "direction": "downstream"}
    value |= {name: getattr(planned, name) for name, usual in defaults.items() if getattr(planned, name) != usual}
    return value | ({"settings": dict(planned.settings)} if planned.settings else {})


def _planned(value: Any, where: str) -> Planned:
    members = _object(value, where, ("fault", "at", "route", "nth", "times", "direction", "settings"))
    at = _object(members.get("at"), f"{where}.at", ("place", "event", "run", "offset", "width"))
    fault = Fault(_one_of(members.get("fault"), [each.value for each in Fault], f"{where}.fault"))
    nth = members.get("nth", 1)
    planned = Planned(
        fault=fault,
        at=Position(
            place=Place(_one_of(at.get("place"), [each.value for each in Place], f"{where}.at.place")),
            event=_number(at, "event", f"{where}.at.event", "event", default=None),
            run=_number(at, "run", f"{where}.at.run", "run", default=1),
            offset=_number(at, "offset", f"{where}.at.offset", "offset", default=None),
            width=_number(at, "width", f"{where}.at.width", "width", default=None),
        ),
        route=_one_of(members.get("route", "stream"), (*ROUTES, None), f"{where}.route"),
        nth="every" if nth == "every" else _number(members, "nth", f"{where}.nth", "nth", default=1),
        times=_number(members, "times", f"{where}.times", "times", default=1),
        direction=_one_of(members.get("direction", "downstream"), DIRECTIONS, f"{where}.direction"),
        settings=_settings(members.get("settings", {}), fault, f"{where}.settings"),
    )
    if (why := objection(planned)) is not None:
        _wrong(where, why)
    return planned


def _settings(value: Any, fault: Fault, where: str) -> dict[str, Any]:
    members = _object(value, where, fault.traits.settings)
    for name in members:
        if name in WORD_SETTINGS:
            _one_of(members[name], WORD_SETTINGS[name], f"{where}.{name}")
        else:
            _number(members, name, f"{where}.{name}", name, default=0)
    return members


def _object(value: Any, where: str, known: tuple[str, ...] | None = None) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        _wrong(where, f"must be an object, is {shown(value)}")
    for name in value:
        if known is not None and name not in known:
            _wrong(where, f"has no member {shown(name)}; known are {', '.join(known) or 'none'}")
    return dict(value)


def _one_of(value: Any, words: Any, where: str) -> Any:
    if value not in words:
        _wrong(where, f"must be one of {', '.join(map(str, words))}; is {shown(value)}")
    return value


def _text(members: Mapping[str, Any], name: str, where: str, default: str | None = None) -> str:
    value = members.get(name, default)
    if not isinstance(value, str) or (not value and default is None):
        _wrong(where, f"must be a text, is {shown(value)}")
    return value


def _number(members: Mapping[str, Any], name: str, where: str, range_: str, *, default: Any) -> Any:
    if name not in members or members[name] is default is None:
        return default
    value, (least, most) = members[name], RANGES[range_]
    if type(value) is not int or not least <= value <= most:
        _wrong(where, f"must be a whole number from {least} to {most}, is {shown(value)}")
    return value


def _id(value: str) -> str:
    if _ID.fullmatch(value) is None:
        signs = "letters, digits, '.', '_' and '-'"
        _wrong("id", f"must be of {signs}, the first a letter or digit, at most {MOST_ID}; is {shown(value)}")
    return value


def _wrong(where: str, words: str) -> NoReturn:
    raise ScheduleError(f"{where}: {words}")
