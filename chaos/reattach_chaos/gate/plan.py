"""The plan: which faults, at which places, once each.

A plan is JSON, read before the first connection. It has lanes; each lane is a port of its own, so that the gate knows whose
connection it sees without a word in the request. A lane's cuts are shared by all connections that come through it: whichever
reaches a boundary first takes the cut. Nothing here touches a socket.

    {"gate": "plan/1", "lanes": [
        {"name": "fin",  "cuts": [{"route": "stream", "after": "every", "fault": "fin"}]},
        {"name": "some", "cuts": [{"route": "stream", "after": [3, 9], "fault": "stall"}]},
        {"name": "kill", "cuts": [{"route": "create", "nth": 1, "fault": "lose"}]}]}

`after`: the sequences of the events after whose blank line the stream is cut, or "every". `nth`: the how manyth create of the lane
loses its answer, from 1.

Checked by tests/chaos/gate/test_plan.py.
"""

from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, get_args

StreamFault: TypeAlias = Literal["fin", "rst", "stall"]


class PlanError(ValueError):
    """The plan's JSON is not a plan; says where."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamCut:
    """Cut after the blank line of each of these events; None stands for every event."""

    after: frozenset[int] | None
    fault: StreamFault


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateCut:
    """Let the `nth` create through and lose its answer."""

    nth: int


Cut: TypeAlias = StreamCut | CreateCut


@dataclass(slots=True, kw_only=True)
class Lane:
    """One port's cuts and which of them are used up."""

    name: str
    cuts: tuple[Cut, ...] = ()
    _taken: set[tuple[int, StreamFault]] = field(default_factory=set)
    _seen: set[int] = field(default_factory=set)
    _creates: int = 0

    def first_seen(self, sequence: int) -> list[StreamFault]:
        """Return the faults planned after this event, but only the first time that it is asked for."""
        if sequence in self._seen:
            return []
        self._seen.add(sequence)
        return self.planned(sequence)

    def planned(self, sequence: int) -> list[StreamFault]:
        """Return the faults planned after this event, used up or not."""
        return [
            cut.fault
            for cut in self.cuts
            if isinstance(cut, StreamCut) and (cut.after is None or sequence in cut.after)
        ]

    def take(self, sequence: int) -> StreamFault | None:
        """Use up and return the first fault that is left after this event, or None."""
        for fault in self.planned(sequence):
            if (sequence, fault) not in self._taken:
                self._taken.add((sequence, fault))
                return fault
        return None

    def give_back(self, sequence: int, fault: StreamFault) -> None:
        """Say that a fault that was taken could not be done: the next connection may."""
        self._taken.discard((sequence, fault))

    def loses_create(self) -> bool:
        """Count a create; return whether its answer is to be lost."""
        self._creates += 1
        return any(isinstance(cut, CreateCut) and cut.nth == self._creates for cut in self.cuts)


def read_plan(value: Any) -> tuple[Lane, ...]:
    """Make lanes from a plan's JSON value.

    Raises:
        PlanError: Something is not as the module says.
    """
    if not isinstance(value, dict) or value.get("gate") != "plan/1":
        raise PlanError("a plan begins with {'gate': 'plan/1'}")
    lanes = tuple(
        Lane(name=_name(lane), cuts=tuple(_cut(cut, _name(lane)) for cut in lane.get("cuts", ())))
        for lane in value.get("lanes", ())
    )
    if not lanes or len({lane.name for lane in lanes}) != len(lanes):
        raise PlanError("a plan needs lanes, each with a name of its own")
    return lanes


def _name(lane: Any) -> str:
    name = lane.get("name") if isinstance(lane, dict) else None
    if not isinstance(name, str) or not name:
        raise PlanError(f"a lane without a name: {lane!r}")
    return name


def _cut(cut: Any, lane: str) -> Cut:
    match cut:
        case {"route": "create", "fault": "lose", "nth": int(nth)} if nth >= 1:
            return CreateCut(nth=nth)
        case {"route": "stream", "fault": fault, "after": "every"} if fault in get_args(StreamFault):
            return StreamCut(after=None, fault=fault)
        case {"route": "stream", "fault": fault, "after": [*after]} if fault in get_args(StreamFault) and all(
            type(each) is int and each > 0 for each in after
        ):
            return StreamCut(after=frozenset(after), fault=fault)
        case _:
            raise PlanError(f"lane {lane!r}: not a cut: {cut!r}")
