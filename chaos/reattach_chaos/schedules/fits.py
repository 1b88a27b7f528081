"""What makes sense where: which faults at which places, on which routes. Generators enumerate by it, files are validated by it.

A combination that cannot happen would make a case that never fires and so is never known; one that happens twice under two names
would only cost time. So there is one table.
"""

from reattach_chaos.schedules.fault import Fault
from reattach_chaos.schedules.place import IN_EVENT, OF_CLIENT, OF_SERVER, ON_REQUEST, UPSTREAM_PLACES, Place
from reattach_chaos.schedules.schedule import Direction, Planned, Route

STREAM_PLACES = (
    *IN_EVENT,
    Place.AFTER_EVENT,
    Place.IN_COMMENT,
    Place.AFTER_COMMENT,
    Place.BEFORE_LIVE,
    Place.IN_REPLAY,
    Place.AFTER_TERMINAL,
    Place.AFTER_TERMINATOR,
    Place.IDLE,
    Place.OFFSET,
)

_CUTS = (*ON_REQUEST, *STREAM_PLACES)
_CLEAN = (Place.AFTER_HEAD, Place.AFTER_EVENT, Place.AFTER_COMMENT, Place.BEFORE_LIVE, Place.IN_REPLAY, Place.IDLE)
_START = (Place.CONNECTING,)
_ANSWER = (Place.AFTER_REQUEST,)
_ANY_TIME = (Place.CONNECTING, Place.AFTER_EVENT, Place.IDLE, Place.IN_BACKOFF)

PLACES: dict[Fault, tuple[Place, ...]] = {
    Fault.FIN: _CUTS,
    Fault.RST: _CUTS,
    Fault.STALL: _CUTS,
    Fault.HALF_OPEN: _CLEAN,
    Fault.REFUSE: (Place.CONNECTING, Place.IN_BACKOFF),
    Fault.ACCEPT_CLOSE: _START,
    Fault.LATENCY: _START,
    Fault.TRICKLE: _START,
    Fault.BANDWIDTH: _START,
    Fault.SLOW_READER: _START,
    Fault.BUSY: _ANSWER,
    Fault.UNAUTHORIZED: _ANSWER,
    Fault.EMPTY: _ANSWER,
    Fault.WRONG_TYPE: _ANSWER,
    Fault.EARLY_END: _CLEAN,
    Fault.DUPLICATE: (Place.IN_REPLAY, Place.BEFORE_LIVE, Place.AFTER_EVENT),
    Fault.BROKEN_CHUNK: (Place.AFTER_HEAD, Place.AFTER_EVENT, Place.IN_CHUNK_SIZE),
    Fault.OTHER_INSTANCE: _START,
    Fault.SERVER_RESTART: (*_ANY_TIME, Place.AFTER_REQUEST, Place.AFTER_TERMINAL, *OF_SERVER),
    Fault.NEW_EPOCH: _ANY_TIME,
    Fault.KILL: OF_CLIENT,
    Fault.STORE_FAILURE: OF_CLIENT,
    Fault.NO_ROUTE: _START,
    Fault.SECOND_CLIENT: OF_CLIENT,
    Fault.SUSPEND: _ANY_TIME,
    Fault.EXPIRE: _ANY_TIME,
}
"""Fault → where it can come."""

ONLY_STREAM = frozenset(
    {Fault.SLOW_READER, Fault.EMPTY, Fault.EARLY_END, Fault.DUPLICATE, Fault.BROKEN_CHUNK, Fault.HALF_OPEN}
)
"""Faults of a stream alone."""


def objection(planned: Planned) -> str | None:
    """Return why a fault cannot come there, in words; None where it can."""
    place, route = planned.at.place, planned.route
    if place not in PLACES[planned.fault]:
        return f"the fault {planned.fault.value!r} has no place {place.value!r}"
    if (place.of_client or place.of_server) != (route is None):
        return f"the place {place.value!r} takes {'no' if route else 'a'} route"
    if route != "stream" and route is not None:
        if place in STREAM_PLACES:
            return f"the place {place.value!r} is one of a stream, not of {route!r}"
        if planned.fault in ONLY_STREAM:
            return f"the fault {planned.fault.value!r} is one of a stream, not of {route!r}"
    if place is Place.IN_REQUEST_BODY and route not in ("create", "cancel", "answer"):
        return f"a request of route {route!r} has no body"
    if place.of_event != (planned.at.event is not None):
        return f"the place {place.value!r} takes {'an' if place.of_event else 'no'} event"
    if (place is Place.OFFSET) != (planned.at.offset is not None):
        return f"an offset goes with the place 'offset', not with {place.value!r}"
    if planned.at.width is not None and place is not Place.IN_CHARACTER:
        return f"a width goes with the place 'in-character', not with {place.value!r}"
    if planned.direction not in directions(planned.fault, place):
        return f"the fault {planned.fault.value!r} at {place.value!r} is not one of the direction {planned.direction!r}"
    return None


def places(fault: Fault, route: Route | None) -> tuple[Place, ...]:
    """Return the places of a fault on a route; None: the client's and the server's own."""
    own = (*OF_CLIENT, *OF_SERVER)
    if route is None:
        return tuple(place for place in PLACES[fault] if place in own)
    if route != "stream" and fault in ONLY_STREAM:
        return ()
    with_body = route in ("create", "cancel", "answer")
    return tuple(
        place
        for place in PLACES[fault]
        if place not in own
        and (route == "stream" or place not in STREAM_PLACES)
        and (with_body or place is not Place.IN_REQUEST_BODY)
    )


def directions(fault: Fault, place: Place) -> tuple[Direction, ...]:
    """Return the ways that a fault can concern at a place; the first is the usual one."""
    if place in UPSTREAM_PLACES:
        return ("upstream",)
    match fault:
        case Fault.STALL | Fault.LATENCY | Fault.BANDWIDTH | Fault.TRICKLE:
            return ("downstream", "upstream", "both")
        case Fault.FIN | Fault.RST if place is Place.AFTER_REQUEST:
            # The server may be cut off before it answers, or after: two ways to lose one answer, alike for the client.
            return ("downstream", "upstream")
        case _:
            return ("downstream",)
