"""A run of three cases by hand, for tests of the report: one valid, one that shows an event twice, one whose fault missed."""

from chaos_history import asked, at, came, flat, log, shown, streams
from reattach_chaos.checkers import RunVerdict, coverage, judge
from reattach_chaos.history import (
    Backoff,
    Born,
    Case,
    Close,
    Connect,
    CutFired,
    CutPlanned,
    Exited,
    Finished,
    History,
    Said,
)
from reattach_chaos.report import Played, Suite
from reattach_chaos.schedules import Fault, Planned, Schedule, name_of
from reattach_chaos.schedules import at as placed


def suite(**facts):
    """Return the run; `facts` replace what it says of itself."""
    cases = (valid(), doubled(), missed())
    verdict = RunVerdict(cases=tuple(each.verdict for each in cases), coverage=coverage(each.history for each in cases))
    told = {
        "target": "http://127.0.0.1:8700",
        "client": "./mine.sh",
        "backend": "embedded",
        "sample": "quick",
        "seed": 7,
        "seconds": 41.2,
        "again": f"reattach chaos replay {cases[1].id}",
        "planned": 3,
        "versions": {"reattach": "0.1.0"},
    }
    return Suite(verdict=verdict, played=cases, **{**told, **facts})


def valid():
    """Return a case in which all is shown once, over a FIN after event 3."""
    return played("fin", 3, fired=True, shows=([1, 2, 3], [4, 5, 6]), after=3)


def doubled():
    """Return a case in which event 4 is shown on both connections."""
    return played("rst", 4, fired=True, shows=([1, 2, 3, 4], [4, 5, 6]), after=3)


def missed():
    """Return a case whose stall never came."""
    return played("stall", 5, fired=False, shows=([1, 2, 3, 4, 5, 6],), after=None)


def played(fault, event, *, fired, shows, after, text=""):
    """Return a case of six events on one or two connections; `text` is what the client says beside."""
    faults = (Planned(fault=Fault(fault), at=placed("after-event", event)),)
    name = name_of(faults)
    records = [Case(id=name, seed=7), Born(), *log(6)]
    records.append(CutPlanned(cut=1, fault=fault, position="after-event", phase="stream", sequence=event))
    clock = 10.0
    for number, events in enumerate(shows, 1):
        records += [
            at(clock, Connect(who="gate", conn=number)),
            at(clock + 2, asked(after if number > 1 else None, conn=number)),
        ]
        records.append(at(clock + 3, streams(conn=number)))
        for event_shown in events:
            clock += 20
            records += at(clock, came(event_shown, conn=number)), at(clock + 1, shown(event_shown))
        last = number == len(shows)
        if fired and not last:
            records.append(
                at(
                    clock + 2,
                    CutFired(
                        who="gate",
                        conn=number,
                        cut=1,
                        fault=fault,
                        position="after-event",
                        sequence=event,
                        around='data: {"t":"h|',
                    ),
                )
            )
        records.append(
            at(clock + 3, Close(who="gate", conn=number, by="server" if last else "gate", how="fin" if last else "rst"))
        )
        if not last:
            records.append(at(clock + 4, Backoff(delay_ms=80)))
            clock += 90
    if text:
        records.append(at(clock, Said(text=text)))
    records += [at(clock + 5, Finished(status="completed")), at(clock + 6, Exited(code=0))]
    history = History(flat(records))
    return Played(schedule=Schedule(id=name, seed=7, faults=faults), history=history, verdict=judge(history))
