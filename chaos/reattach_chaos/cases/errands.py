"""What a case asks of the client under test: from a schedule's faults to errands, one for each run that they are about.

A fault of a stream is met by who follows its run; a fault of another request by who makes that request. So a case plays only
what it needs: a session's other runs would cost time and prove nothing.
"""

from dataclasses import dataclass

from reattach_chaos.cases.client import Client, Mode, Task
from reattach_chaos.cases.inside.instants import is_shown
from reattach_chaos.cases.servers.own_redis import why_none
from reattach_chaos.cases.servers.ways import how
from reattach_chaos.cases.session import Session
from reattach_chaos.schedules import Fault, Planned, Schedule
from reattach_chaos.schedules.schedule import Route

EVERY_SETTING = frozenset({"on_gap"})
"""The members of a schedule's `client` that some client obeys."""

_TASKS: dict[str, Task] = {
    "create": "start",
    "answer": "answer",
    "status": "answer",
    "list": "list",
    "cancel": "cancel",
}


@dataclass(frozen=True, slots=True)
class Part:
    """One run of the session, and what the client does with it; from 1."""

    run: int
    task: Task


def parts_of(schedule: Schedule, session: Session, mode: Mode) -> list[Part]:
    """Return what is played, in the order of the runs; everything where nothing is planned."""
    if mode == "start":
        return [Part(1, "start")]
    if not schedule.faults:
        return [Part(number, "follow") for number in range(1, len(session.runs) + 1)]
    tasks = {task: _run_of(task, session) for task in (_TASKS.get(str(each.route)) for each in schedule.faults) if task}
    parts = [Part(run, task) for task, run in tasks.items()]
    for run in sorted({each.at.run for each in schedule.faults if each.at.place.of_server}):
        made = Part(run, "answer" if session.runs[run - 1].depth else "start")  # so that it is in the middle of it
        parts += [made] if made not in parts else []
    followed = {each.at.run for each in schedule.faults if each.route in ("stream", None)}
    return parts + [Part(run, "follow") for run in sorted(followed - {part.run for part in parts})]


def _run_of(task: Task, session: Session) -> int:
    """Return the run of the session that a task is about: for an answer the one that goes on from it."""
    if task != "answer":
        return 1
    return next((number for number, run in enumerate(session.runs, 1) if run.depth), 0)


def objection_to(
    schedule: Schedule, session: Session, client: Client, mode: Mode, *, kill: bool, own: bool = True
) -> str:
    """Return why a schedule cannot be played with this client on this server; "" where it can."""
    if unknown := sorted(schedule.client.keys() & (EVERY_SETTING - client.settings)):
        return f"the client takes no setting {', '.join(unknown)}"
    if "line_end" in schedule.server and not own:
        return "the line ends are a setting of a server of ours"
    for planned in schedule.faults:
        if why := _objection(planned, session, client, mode, kill=kill, own=own):
            return why
    return ""


def _objection(planned: Planned, session: Session, client: Client, mode: Mode, *, kill: bool, own: bool) -> str:
    words = planned.fault.traits.words
    makes: Route = "answer" if _depth(planned, session) else "create"
    match planned.fault:
        case Fault.KILL if is_shown(planned.fault, planned.at.place):
            if not kill:
                return "clients are killed with --kill only"
        case Fault.KILL | Fault.STORE_FAILURE if planned.at.place not in client.instants:
            return _unseen(planned, client)
        case Fault.SECOND_CLIENT if not client.leases:
            return f"{words}: only ours know of a lease"
        case Fault.EXPIRE | Fault.NEW_EPOCH | Fault.SERVER_RESTART if not own:
            return f"{words}: done to a server of ours only"
        case Fault.EXPIRE | Fault.NEW_EPOCH if planned.route != "stream":
            return f"{words}: done at a stream's places only"
        case Fault.EXPIRE | Fault.NEW_EPOCH if mode == "start" and planned.at.event is None:
            return "which run a client starts is not known before it asks for its stream"
        case Fault.NO_ROUTE if (way := how(planned)) not in client.ways:
            return f"{words} ({way}): done to clients of ours only"
        case Fault.SERVER_RESTART if planned.route is None and makes not in client.routes:
            return f"at a server's own steps the client makes the run, and this one makes no request of route {makes}"
        case Fault.OTHER_INSTANCE if not own:
            return f"{words}: only a server of ours has one"
        case Fault.OTHER_INSTANCE if why := why_none():
            return why
        case _:
            pass
    if planned.route is not None and planned.route not in client.routes:
        return f"the client makes no request of route {planned.route}"
    if mode == "start" and planned.at.run > 1:
        return "a client that starts its run has one"
    if planned.at.run > len(session.runs):
        return f"the session has {len(session.runs)} runs"
    if _TASKS.get(str(planned.route)) == "answer" and not any(run.depth for run in session.runs):
        return "no run of the session waits for an answer"
    if planned.at.event is not None and planned.at.event > len(session.runs[planned.at.run - 1].events):
        return f"run {planned.at.run} has {len(session.runs[planned.at.run - 1].events)} events"
    return ""


def _depth(planned: Planned, session: Session) -> int:
    return session.runs[planned.at.run - 1].depth if planned.at.run <= len(session.runs) else 0


def _unseen(planned: Planned, client: Client) -> str:
    """Return why a fault cannot come at an instant of the client's own."""
    if client.instants:
        return f"{client.name} has no instant {planned.at.place.value!r}"
    if planned.fault is Fault.KILL:
        return "a client is killed when it has shown an event; what it does inside is not seen"
    return f"{planned.fault.traits.words}: what a client does inside is not seen"
