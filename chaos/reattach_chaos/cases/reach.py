"""Whether the places of a schedule come at all in this session: what a clean pass showed, and what the faults before them leave.

A case whose fault cannot come proves nothing, however often it is played. So it is left out, and said.
"""

from collections.abc import Sequence

from reattach_chaos.cases.inside.instants import INNER
from reattach_chaos.cases.servers.log_faults import LOG_FAULTS
from reattach_chaos.cases.session import Session
from reattach_chaos.schedules import Fault, Place, Planned, Schedule
from reattach_chaos.schedules.fault import SILENCES

_ENDING = frozenset(
    {Fault.REFUSE, Fault.ACCEPT_CLOSE, Fault.BUSY, Fault.UNAUTHORIZED, Fault.EMPTY, Fault.WRONG_TYPE, Fault.NO_ROUTE}
)
"""Faults that no stream gets past, beside those that cut."""
_EVERY = 1_000  # as many as a case can have
CANCELS = 3
"""So often ours asks for a cancel."""
_REFUSING = frozenset({Fault.UNAUTHORIZED, Fault.WRONG_TYPE})
_CUTTING = SILENCES | {Fault.FIN, Fault.RST, Fault.EARLY_END}
_BEHIND = (Place.AFTER_EVENT, Place.IN_REPLAY, Place.IDLE)
_OVER = (Place.AFTER_TERMINAL, Place.AFTER_TERMINATOR)
"""Behind the last event nothing is asked for again."""
_LIVE = frozenset({Place.IN_COMMENT, Place.AFTER_COMMENT, Place.BEFORE_LIVE})


def unreached(schedule: Schedule, session: Session) -> str:
    """Return why a fault of a schedule would not come, in words; "" where each can."""
    for number, planned in enumerate(schedule.faults):
        if planned.fault in LOG_FAULTS and not _noticed(number, schedule.faults, session):
            return "nothing ends the stream behind it: what had been sent comes, and nobody asks for the rest"
        if planned.at.place.of_server and _made_elsewhere(schedule.faults):
            return "the instance that makes the run is not the one that ends at a step of its own"
        if planned.fault in INNER and (why := _passed(planned, schedule.faults)):
            return why
        if planned.fault is Fault.NEW_EPOCH and _expired(planned, schedule.faults):
            return "of a log whose beginning has expired no new one can be judged"
        if why := _never(planned, session) or _crowded(planned, schedule.faults):
            return why
        if (
            planned.route == "stream"
            and planned.nth != "every"
            and planned.nth > 1 + _ends(schedule.faults[:number], planned.at.run, session)
        ):
            return "no fault before it makes the client ask for so many streams"
    return ""


def _never(planned: Planned, session: Session) -> str:
    place, route = planned.at.place, planned.route
    if place in _LIVE:
        return "the runs have settled before they are followed: nothing comes live, and no heartbeat"
    if place is Place.IDLE and route == "stream" and planned.at.event == len(session.runs[planned.at.run - 1].events):
        return "a client leaves with the run's last event, and nothing is idle behind it"
    if route == "create" and planned.at.run > 1:
        return "a client starts one run"
    if route == "cancel" and place is Place.IN_REQUEST_BODY:
        return "a cancel has no body"
    if route in ("create", "cancel") and planned.fault in _REFUSING and (planned.nth == "every" or planned.times > 1):
        return f"a {route} that is refused for good plays nothing"
    if route == "cancel" and (planned.nth == "every" or planned.times > CANCELS - 1) and _is_lost(planned):
        return "a cancel that is lost three times is given up, and the run goes on"
    if place is Place.IN_CHARACTER and not _has_character(planned, session):
        return "the event has no such character"
    return ""


def _is_lost(planned: Planned) -> bool:
    return planned.fault in _ENDING or planned.fault.traits.cuts


def _noticed(number: int, faults: Sequence[Planned], session: Session) -> bool:
    """Whether a stream ends at the place at which its log changes, before the run's end is shown."""
    planned = faults[number]
    if planned.at.place in (Place.CONNECTING, Place.IN_BACKOFF):
        return planned.nth != "every" and planned.times == 1
    return planned.times == 1 and any(
        (each.at, each.nth, each.route) == (planned.at, planned.nth, planned.route) and _is_end(each, session)
        for each in faults[number + 1 :]
    )


def _expired(planned: Planned, faults: Sequence[Planned]) -> bool:
    return any(each.fault is Fault.EXPIRE and each.at.run == planned.at.run for each in faults)


def _made_elsewhere(faults: Sequence[Planned]) -> bool:
    return any(each.fault is Fault.OTHER_INSTANCE and each.route in ("create", "answer") for each in faults)


def _has_character(planned: Planned, session: Session) -> bool:
    """Whether the event, or a later one, where a place is met that did not come, has a character of the width."""
    events = session.runs[planned.at.run - 1].events[(planned.at.event or 1) - 1 :]
    return any(planned.at.width in each.widths if planned.at.width else each.widths for each in events)


def _crowded(planned: Planned, faults: Sequence[Planned]) -> str:
    """Whether a run is needed for two things of which only one can be it."""
    streams = {each.at.run for each in faults if each.route in ("stream", None)}
    match planned.route:
        case "status" if len({each.at.run for each in faults if each.route == "status"}) > 1:
            return "one run's status is asked for in a case"
        case "status" if planned.at.run in streams:
            return "the run whose status is asked for is another than the one that is followed"
        case "cancel" if 1 in streams:
            return "which events a cancelled run has is chance"
        case _:
            return ""


def _passed(planned: Planned, faults: Sequence[Planned]) -> str:
    """Whether an instant of the client's own may be over before it is due: what was sent at once is committed at once.

    So of two of them that a commit brings about, or that follow one, the first may be the last.
    """
    own = [each for each in faults if each.fault in INNER and each.at.run == planned.at.run]
    if planned.fault is Fault.STORE_FAILURE and planned.at.place is not Place.RECEIVED:
        silent = planned.at.place is not Place.COMMITTED  # else what comes next may be written before this is shown
        if not any(_parts(each, planned, silent=silent) for each in faults):
            return "nothing is sure to be written behind that instant"
    return (
        ""
        if own == [planned]
        else "what was sent at once is committed at once: one instant of a run's client is sure to come"
    )


def _parts(cut: Planned, planned: Planned, *, silent: bool) -> bool:
    """Whether a stream ends with the event of an instant, so that what follows is written later."""
    if cut.route != "stream" or cut.nth != 1 or cut.at.run != planned.at.run or cut.at.place is not Place.AFTER_EVENT:
        return False
    return cut.at.event == planned.at.event and cut.fault in (SILENCES if silent else _CUTTING)


def _ends(faults: Sequence[Planned], run: int, session: Session) -> int:
    """Return how many streams of a run these faults end, at most."""
    ending = [each for each in faults if each.at.run == run and _is_end(each, session)]
    return sum(each.times if each.nth != "every" else _EVERY for each in ending)


def _is_end(planned: Planned, session: Session) -> bool:
    last = planned.at.event == len(session.runs[planned.at.run - 1].events) and planned.at.place in _BEHIND
    if planned.route != "stream" or last or planned.at.place in _OVER:
        return False
    hold = planned.fault in SILENCES and planned.direction == "upstream"
    return planned.fault in _ENDING or (planned.fault.traits.cuts and not hold)
