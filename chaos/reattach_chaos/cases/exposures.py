"""`EXPOSURES`: what shows each mutant, client or server: a few cases, and what else it takes. Nothing here says what will be found.

A mutant is wrong in one decision, and few cases ask for it: a whole sample would be right but for one or two, or have none
that asks. So `reattach chaos run --mutant ID` plays these, unless other cases are named. The laws judge them as all others.
Servers that no client under test can show are not here: the registry of the servers says why.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from reattach_chaos.cases.client import Mode
from reattach_chaos.cases.terms import HEARTBEAT_MS
from reattach_chaos.schedules import Fault, Place, Planned, Schedule, at
from reattach_mockserver.mutants.registry import SERVER_MUTANTS

SKIPPING = "skips-one"
"""The server that leaves out an event: the only way to see what a client makes of a hole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exposure:
    """What is played with one mutant.

    Attributes:
        cases: The faults of each case.
        mode: Whether it starts its runs itself.
        scenario: A ready scenario in place of the default session; "" for that.
        wrong: For a wrong client, a wrong server's name in place of ours; "" for none. What that does is known, and the client
            is judged.
        timeout_s: For a case's client; None: the usual time.
        heartbeat_ms: What the server keeps; longer where a client's haste is to be told from a machine's slowness.
    """

    cases: tuple[tuple[Planned, ...], ...]
    mode: Mode = "follow"
    scenario: str = ""
    wrong: str = ""
    timeout_s: float | None = None
    heartbeat_ms: float = HEARTBEAT_MS

    def schedules(self, seed: int, scenario: str) -> list[Schedule]:
        """Return the cases.

        Args:
            seed: Of the run.
            scenario: The name of what is played.
        """
        empty = Schedule(id="no-fault", seed=seed, scenario=scenario)
        return [empty.with_faults(faults) if faults else empty for faults in self.cases]

    def words(self) -> str:
        """Return what is special, for a person; "" for nothing."""
        told = [
            "the client starts its run" if self.mode == "start" else "",
            f"the scenario is {self.scenario}" if self.scenario else "",
            f"the server is the mutant {self.wrong}" if self.wrong else "",
            f"a client is ended after {self.timeout_s:g} s" if self.timeout_s else "",
            f"the heartbeat is {self.heartbeat_ms:g} ms" if self.heartbeat_ms != HEARTBEAT_MS else "",
        ]
        return ", ".join(filter(None, told))


def _behind(fault: Fault, event: int, run: int = 1) -> Planned:
    return Planned(fault=fault, at=at(Place.AFTER_EVENT, event, run=run))


def _expired(event: int, run: int, keep: int) -> tuple[Planned, ...]:
    """Return the faults of a log that is gone but for its last events when the stream ends behind one."""
    expired = Planned(fault=Fault.EXPIRE, at=at(Place.AFTER_EVENT, event, run=run), settings={"keep": keep})
    return expired, _behind(Fault.FIN, event, run)


def _second(event: int, run: int = 1) -> tuple[Planned, ...]:
    """Return the faults of a second process on the same state, which comes while the stream of the first is silent."""
    second = Planned(fault=Fault.SECOND_CLIENT, at=at(Place.DELIVERED, event, run=run), route=None)
    return _behind(Fault.STALL, event, run), second


_CUT = ((_behind(Fault.FIN, 4),), (_behind(Fault.RST, 2, run=2),))
_GONE = (_expired(2, 1, 1), _expired(1, 2, 2))
_HALF = tuple((Planned(fault=Fault.FIN, at=at(Place.BEFORE_BLANK_LINE, event)),) for event in (3, 7))
_ENDED = tuple((_behind(Fault.EARLY_END, event),) for event in (2, 6))
_LOST_CREATE = ((Planned(fault=Fault.FIN, at=at(Place.AFTER_REQUEST), route="create"),),)
_TWO = (_second(2), _second(1, run=2))
_SILENT = (_behind(Fault.STALL, 3),)
"""A silence, not a FIN: who is cut off at once may have committed nothing, and asks for all again, which no server does wrong."""
_SILENCES = tuple(
    tuple(_behind(Fault.STALL, event) for event in events)
    for events in ((3,), (4,), (5,), (6,), (7,), (3, 5), (4, 6), (5, 7), (3, 5, 7))
)
_SILENT_LATER = Exposure(cases=((_behind(Fault.STALL, 2),),), scenario="silence")
"""What only shows while a run goes on: the stream comes back while the run says nothing yet."""
_EXPIRED = Exposure(cases=((_expired(2, 1, 2)[0], _behind(Fault.STALL, 2)),))
_REPLACED = Planned(fault=Fault.NEW_EPOCH, at=at(Place.AFTER_EVENT, 3), settings={"keep": 7})
_NO_ANSWER = tuple(
    (Planned(fault=Fault.FIN, at=at(place), route=route),)
    for route in ("status", "answer")
    for place in (Place.IN_REQUEST_HEAD, Place.AFTER_REQUEST)
)
_NOTHING_BUT_200 = ((Planned(fault=Fault.EMPTY, at=at(Place.AFTER_REQUEST), times=16),),)

_CLIENTS = {
    "deliver-first": Exposure(cases=_CUT),
    "half-event": Exposure(cases=_HALF),
    "from-received": Exposure(cases=_CUT),
    "new-key": Exposure(cases=_LOST_CREATE, mode="start"),
    "end-of-stream": Exposure(cases=_ENDED),
    "by-text": Exposure(cases=_CUT),
    "reset-on-200": Exposure(cases=_NOTHING_BUT_200),
    "retry-gone": Exposure(cases=_GONE, timeout_s=6.0),
    "after-end": Exposure(cases=_CUT),
    "hasty": Exposure(cases=((),), scenario="silence", heartbeat_ms=600.0),
    "silent-restart": Exposure(cases=_GONE),
    "swallow-gap": Exposure(cases=_CUT, wrong=SKIPPING),
    "two-appliers": Exposure(cases=_TWO, heartbeat_ms=1_000.0),
}

_SERVERS = {
    "beats-with-ids": _SILENT_LATER,
    "ends-when-left": _SILENT_LATER,
    "forgets-key-at-end": Exposure(cases=_LOST_CREATE),
    "forgets-with-events": _EXPIRED,
    "goes-back": Exposure(cases=_NO_ANSWER),  # it does so every other time
    "hides-failure": Exposure(cases=((_behind(Fault.STALL, 3, run=3),),)),
    "ignores-key": Exposure(cases=_LOST_CREATE),
    "ignores-query": _EXPIRED,
    "jumps-over-expired": _EXPIRED,
    "loses-at-page-edge": Exposure(cases=(_SILENT,), scenario="demo"),
    "loses-at-seam": _SILENT_LATER,
    "refuses-all-alike": _EXPIRED,
    "repeats-at-seam": _SILENT_LATER,
    "serves-old-epoch": Exposure(cases=((_REPLACED, *_SILENT),)),
    "status-stands-still": Exposure(
        cases=_SILENCES
    ),  # seen where a status is there before the stream asked for beside it
}
"""What shows a server, where that is not one silence in the session."""

EXPOSURES: Mapping[str, Exposure] = {
    **{name: Exposure(cases=(_SILENT,)) for name, wrong in SERVER_MUTANTS.items() if not wrong.unseen},
    **_SERVERS,
    **_CLIENTS,
}
"""Mutant → what shows it."""


def chosen(mutant: str, *, others: bool) -> Exposure:
    """Return what is played with a mutant; where other cases are named, of its own no more than its mode.

    Args:
        mutant: A mutant's name; what is not in the table has nothing of its own.
        others: Other cases, another client or another server are named.
    """
    found = EXPOSURES.get(mutant, Exposure(cases=()))
    return Exposure(cases=(), mode=found.mode) if others else found
