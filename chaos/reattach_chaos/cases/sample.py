"""Which cases are played: a sample's schedules, and those of them that were asked for and can be played here.

What is left out is counted, with the reason, so that no run looks larger than it was.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from typing import Literal, TypeAlias

from reattach_chaos.cases.bytewise import Bytes
from reattach_chaos.cases.client import Client, Mode
from reattach_chaos.cases.errands import objection_to
from reattach_chaos.cases.exposures import EXPOSURES
from reattach_chaos.cases.inner_faults import inner_faults
from reattach_chaos.cases.inside.instants import INNER
from reattach_chaos.cases.reach import unreached
from reattach_chaos.cases.servers.log_faults import LOG_FAULTS
from reattach_chaos.cases.session import Session
from reattach_chaos.schedules import Fault, Place, Planned, Schedule, at, pairwise, quick, sim, soak
from reattach_chaos.schedules.fault import SILENCES
from reattach_chaos.schedules.quick import before
from reattach_chaos.schedules.schedule import ROUTES

SampleName: TypeAlias = Literal["quick", "full", "soak", "sim"]
SOAK_CASES = 500
MOST_DRAWN = 4_000
"""Schedules are drawn until so many can be played, or so many were looked at."""
LONGEST_STORM = 4
MOST_SILENCES = 2
"""They cost a client's read limit each, 10 s behind a head; so many come in a case."""
_UNMADE = "the client makes no request of route "
"""So `objection_to` says of which kind a client makes no request."""
SIM_CASES = 2_000
"""So many are drawn; those are counted whose faults all came."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What was asked for.

    Attributes:
        sample: Which sample.
        seed: Of what is drawn.
        faults: Only cases of these; empty: all. What only makes another fault's place, does not count: see `_means`.
        places: Only cases with a fault at one of these; empty: all.
        only: Only these ids, or their starts; empty: all.
        kill: Whether clients are killed, too.
        mutant: A client mutant's name: what shows that one is played instead of the sample.
    """

    sample: SampleName = "quick"
    seed: int = 0
    faults: tuple[Fault, ...] = ()
    places: tuple[Place, ...] = ()
    only: tuple[str, ...] = ()
    kill: bool = False
    mutant: str = ""


@dataclass(frozen=True, slots=True)
class Chosen:
    """The cases, and why others were left out, with how many each."""

    schedules: tuple[Schedule, ...]
    left_out: Counter[str] = field(default_factory=Counter)

    def notes(self) -> list[str]:
        """Return a sentence for each reason; one for all requests that the client does not make."""
        routes = sorted(why for why in self.left_out if why.startswith(_UNMADE))
        told = Counter({why: count for why, count in self.left_out.items() if why not in routes})
        if len(routes) > 1:
            names = ", ".join(why.removeprefix(_UNMADE) for why in routes)
            told[f"the client makes no request of the routes {names}"] = sum(self.left_out[why] for why in routes)
        elif routes:
            told[routes[0]] = self.left_out[routes[0]]
        return [f"{count} cases left out: {why}." for why, count in told.most_common()]


def choose(
    wanted: Wanted,
    session: Session,
    client: Client,
    mode: Mode,
    scenario: str,
    every_byte: Bytes | None = None,
    *,
    own: bool = True,
) -> Chosen:
    """Return the cases of a run, each id once.

    Args:
        wanted: What was asked for.
        session: What is played.
        client: Who is under test.
        mode: Whether it starts its runs itself.
        scenario: The session's name.
        every_byte: The cuts at each byte, for the full sample.
        own: The server is one of ours, whose log can be changed.
    """
    left_out: Counter[str] = Counter()
    found: dict[str, Schedule] = {}
    drawn = ((schedule, session) for schedule in _drawn(wanted, session, client, scenario))
    cuts = every_byte.schedules if every_byte is not None else ()
    for schedule, about in chain(drawn, ((cut, every_byte.session) for cut in cuts if every_byte is not None)):
        if not _asked(wanted, schedule):
            continue
        why = ""
        if wanted.sample != "sim":
            why = objection_to(schedule, about, client, mode, kill=wanted.kill, own=own) or unreached(schedule, about)
        if why:
            left_out[why] += 1
        else:
            found.setdefault(schedule.id, replace(schedule, seed=schedule.seed or wanted.seed))
        if wanted.sample == "soak" and len(found) == SOAK_CASES:
            break
    return Chosen(tuple(found.values()), left_out)


def _drawn(wanted: Wanted, session: Session, client: Client, scenario: str) -> Iterator[Schedule]:
    shape = session.shape
    if wanted.mutant:
        yield from EXPOSURES[wanted.mutant].schedules(wanted.seed, scenario)
        return
    match wanted.sample:
        case "quick":
            yield from quick(shape, seed=wanted.seed, scenario=scenario)
            yield from _own(client, session, wanted.seed, scenario)
        case "full":
            yield from quick(shape, seed=wanted.seed, scenario=scenario)
            yield from _own(client, session, wanted.seed, scenario)
            for schedule in pairwise(shape, seed=wanted.seed, scenario=scenario):
                faults = _bounded(schedule)
                yield schedule if faults == schedule.faults else schedule.with_faults(faults)
        case "soak":
            for schedule in islice(soak(wanted.seed, shape, scenario=scenario), MOST_DRAWN):
                yield replace(schedule, faults=_bounded(schedule))
        case "sim":
            yield from islice(sim(wanted.seed), SIM_CASES)
    if wanted.kill and wanted.sample != "soak":
        yield from _kills(wanted, session, scenario)


def _own(client: Client, session: Session, seed: int, scenario: str) -> Iterator[Schedule]:
    """Yield what the quick sample has for our clients, beside what it has for all."""
    if client.ours:
        yield from log_changes(session, seed, scenario)
        yield from second_clients(session, seed, scenario)
        yield from restarts(session, seed, scenario)
        yield from lost_ways(seed, scenario)
        yield from other_instances(seed, scenario)
    if client.instants:
        yield from inner_faults(session, seed, scenario)


def _bounded(schedule: Schedule) -> tuple[Planned, ...]:
    """Return its faults with shorter storms: a client waits longer and longer in one, and here that takes real time.

    Where a log changes behind an event the stream is cut there, since all that follows was sent before.
    """
    faults: list[Planned] = []
    silences = MOST_SILENCES
    for each in schedule.faults:
        times = min(each.times, silences if each.fault in SILENCES else LONGEST_STORM)
        if not times:
            continue
        silences -= times if each.fault in SILENCES else 0
        faults.append(replace(each, times=times))
        if each.fault in LOG_FAULTS and each.route == "stream" and each.at.place in (Place.AFTER_EVENT, Place.IDLE):
            faults.append(Planned(fault=Fault.FIN, at=each.at, nth=each.nth))
    return tuple(faults)


def log_changes(session: Session, seed: int, scenario: str) -> Iterator[Schedule]:
    """Yield a handful of cases in which a log expires, or another takes its place, and the stream ends just then."""
    empty = Schedule(id="no-fault", seed=seed, scenario=scenario)
    for run, each in enumerate(session.runs, 1):
        events = len(each.events)
        if events < 4:
            continue
        for fault, event, keep in (
            (Fault.EXPIRE, 1, 0),
            (Fault.EXPIRE, 2, 1),
            (Fault.NEW_EPOCH, 2, 1),
            (Fault.NEW_EPOCH, events - 1, events - 2),
        ):
            place = at(Place.AFTER_EVENT, event, run=run)
            changed = Planned(fault=fault, at=place, settings={"keep": keep})
            yield empty.with_faults((changed, Planned(fault=Fault.FIN, at=place)))


def second_clients(session: Session, seed: int, scenario: str) -> Iterator[Schedule]:
    """Yield a handful of cases in which a second process comes, while the first has fallen silent behind an event."""
    empty = Schedule(id="no-fault", seed=seed, scenario=scenario)
    for run, each in enumerate(session.runs, 1):
        for event in sorted({1, len(each.events) - 2} & set(range(1, len(each.events)))):
            second = Planned(fault=Fault.SECOND_CLIENT, at=at(Place.DELIVERED, event, run=run), route=None)
            yield empty.with_faults((Planned(fault=Fault.STALL, at=at(Place.AFTER_EVENT, event, run=run)), second))


def restarts(session: Session, seed: int, scenario: str) -> Iterator[Schedule]:
    """Yield a handful of cases in which the server is killed, or ends in order, and comes again a little later."""
    empty = Schedule(id="no-fault", seed=seed, scenario=scenario)
    last = len(session.runs[0].events)
    kill, term = {"signal": "kill", "down_ms": 100}, {"signal": "term", "down_ms": 100}
    places = [(at(Place.AFTER_EVENT, event), kill if event % 2 else term) for event in range(1, min(last, 4))]
    places += [(at(Place.AFTER_REQUEST), kill), (at(Place.CONNECTING), term), (at(Place.AFTER_TERMINAL), kill)]
    for place, settings in places:
        yield empty.with_faults((Planned(fault=Fault.SERVER_RESTART, at=place, settings=settings),))
    for route, settings in ((ROUTES[0], kill), (ROUTES[-1], term)):
        lost = Planned(fault=Fault.SERVER_RESTART, at=at(Place.AFTER_REQUEST), route=route, settings=settings)
        yield empty.with_faults((lost,))
    again = Planned(fault=Fault.SERVER_RESTART, at=at(Place.IN_BACKOFF), nth=2, settings=kill)
    yield empty.with_faults((before(2), again))
    for step, event in ((Place.APPENDED, 1), (Place.PUBLISHED, (last + 1) // 2), (Place.EXECUTED, last)):
        own = Planned(fault=Fault.SERVER_RESTART, at=at(step, event), route=None, settings=kill)
        yield empty.with_faults((own,))


def lost_ways(seed: int, scenario: str) -> Iterator[Schedule]:
    """Yield a handful of cases in which the server's name is not known, or its certificate is another's."""
    empty = Schedule(id="no-fault", seed=seed, scenario=scenario)
    for way in ("name", "tls"):
        for route in ROUTES[:2]:
            lost = Planned(fault=Fault.NO_ROUTE, at=at(Place.CONNECTING), route=route, settings={"how": way})
            yield empty.with_faults((lost,))
        yield empty.with_faults((before(2), replace(lost, nth=2)))


def other_instances(seed: int, scenario: str) -> Iterator[Schedule]:
    """Yield a run that one instance makes and another shows, and one that is resumed on another than it was followed on.

    The stream ends after a silence, in which what had come is made durable: so it is asked after, and not from the beginning.
    """
    empty = Schedule(id="no-fault", seed=seed, scenario=scenario)
    other = Planned(fault=Fault.OTHER_INSTANCE, at=at(Place.CONNECTING), route="create")
    yield empty.with_faults((other,))
    cut = Planned(fault=Fault.FIN, at=at(Place.IDLE, 3))
    yield empty.with_faults((cut, replace(other, route="stream", nth=2)))


def _kills(wanted: Wanted, session: Session, scenario: str) -> Iterator[Schedule]:
    """Yield a kill after each showing but the last, whose client ends by itself; on the first stream, and on a resume.

    The stream is silent behind the event, so that it is the last one shown, however fast the client is.
    """
    empty = Schedule(id="no-fault", seed=wanted.seed, scenario=scenario)
    for run, event, _ in session.shape.events():
        if event == len(session.shape.runs[run - 1]):
            continue
        kill = Planned(fault=Fault.KILL, at=at(Place.DELIVERED, event, run=run), route=None)
        silence = Planned(fault=Fault.STALL, at=at(Place.AFTER_EVENT, event, run=run))
        yield empty.with_faults((silence, kill))
        yield empty.with_faults((before(event, run), replace(silence, nth=2), kill))


def _asked(wanted: Wanted, schedule: Schedule) -> bool:
    faults = schedule.faults
    return (
        _of(wanted.faults, faults)
        and _any(wanted.places, (each.at.place for each in faults))
        and (not wanted.only or any(schedule.id.startswith(each) for each in wanted.only))
    )


def _of(wanted: tuple[Fault, ...], faults: tuple[Planned, ...]) -> bool:
    """Whether a case is about these faults alone: who leaves silence out does not want a FIN and then silence."""
    return not wanted or all(
        each.fault in wanted
        for place, each in enumerate(faults)
        if not _means(each, faults[place + 1 :]) and not _shows(each, faults[:place])
    )


def _shows(planned: Planned, earlier: tuple[Planned, ...]) -> bool:
    """Whether a fault is only there so that an earlier change of the log is met: the FIN at its place."""
    changes = (each.at for each in earlier if each.fault in LOG_FAULTS)
    return planned.fault is Fault.FIN and planned.at in changes


def _means(planned: Planned, later: tuple[Planned, ...]) -> bool:
    """Whether a fault is only there for a later one: the FIN that makes a resume or parts two commits, the silence for a kill."""
    match planned.fault:
        case Fault.FIN:
            return planned.nth == 1 and any(
                (each.nth == 2 and each.route == planned.route)
                or (each.fault in INNER and each.at.run == planned.at.run)
                for each in later
            )
        case Fault.STALL:
            where = (planned.at.run, planned.at.event)
            return any(
                each.fault in (Fault.KILL, Fault.SECOND_CLIENT) and (each.at.run, each.at.event) == where
                for each in later
            )
        case _:
            return False


def _any(wanted: tuple[object, ...], there: Iterable[object]) -> bool:
    return not wanted or any(each in wanted for each in there)
