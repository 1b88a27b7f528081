"""The judge: what the clients showed, against the server's log. A pure function, with names for what is wrong.

Laws, for each follower
    * Every event of the log is shown, once, in the log's order, as it is in the log.
    * After a kill the event in hand may be shown once more: at most one a kill, the last one shown, and marked `redelivered`. A
      repeat without the mark is a duplicate.
    * The end that a client tells is the log's end. A client that stops without one has lost what it has not shown.
Laws for all: one run, whatever happened to its create; each tool call's effect once.

It shares no code with the client. Words are the glossary's anomalies. Checked by tests/chaos/demo/test_judge.py on hand-written
showings, good and bad.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from reattach_chaos.demo.showing import Logged, Showing, Shown

AnomalyKind: TypeAlias = Literal[
    "lost",
    "duplicated",
    "reordered",
    "changed",
    "foreign",
    "false end",
    "second run",
    "double effect",
    "missing effect",
]
SETTLING = {
    "run.completed": "completed",
    "run.failed": "failed",
    "run.cancelled": "cancelled",
    "run.paused": "requires_action",
}
"""The type of a settling event → the status of a run that it settled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Anomaly:
    """One thing that is proven wrong: with whom, at which event, in words."""

    kind: AnomalyKind
    who: str
    sequence: int | None
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What one follower's showing came to. `again`: events shown again as they may be."""

    anomalies: tuple[Anomaly, ...] = ()
    again: int = 0


def judge_showing(log: Sequence[Logged], showing: Showing) -> Judgement:
    """Compare one follower's showing with the log."""
    places = {event.id: place for place, event in enumerate(log)}
    first_shown: dict[int, int] = {}  # place in the log → life in which it was first shown
    anomalies: list[Anomaly] = []
    again = 0
    last: int | None = None  # the place shown last
    highest = -1
    repeated_in_life: set[int] = set()

    def wrong(kind: AnomalyKind, event: Logged | None, message: str) -> None:
        sequence = event.sequence if event else None
        anomalies.append(Anomaly(kind=kind, who=showing.who, sequence=sequence, message=message))

    for shown in showing.shown:
        place = places.get(shown.id)
        if place is None:
            wrong("foreign", None, f"{shown.id or 'something without an id'} was shown and is not in the log")
            continue
        event = log[place]
        for difference in _differences(event, shown):
            wrong("changed", event, f"{named(event)} was shown with another {difference}")
        if place not in first_shown:
            if place < highest:
                wrong("reordered", event, f"{named(event)} was shown after {named(log[highest])}")
            first_shown[place] = shown.life
        elif (
            shown.redelivered
            and place == last
            and shown.life > first_shown[place]
            and shown.life not in repeated_in_life
        ):
            repeated_in_life.add(shown.life)
            again += 1
        else:
            wrong(
                "duplicated", event, f"{named(event)} was shown twice{_why(shown, first_shown[place], last == place)}"
            )
        highest = max(highest, place)
        last = place

    if not showing.stopped:
        for place, event in enumerate(log):
            if place not in first_shown:
                wrong("lost", event, f"{named(event)} was never shown")
    anomalies += _false_end(log, showing)
    return Judgement(anomalies=tuple(anomalies), again=again)


def judge_runs(runs: int, creates: int) -> list[Anomaly]:
    """One piece of work is one run, however often it was asked for. None at all is not proven wrong: nothing was played."""
    if runs <= 1:
        return []
    message = f"{creates} creates made {runs} runs: the work was started and paid for {runs} times"
    return [Anomaly(kind="second run", who="create", sequence=None, message=message)]


def judge_effects(called: Iterable[tuple[int, str]], done: Iterable[str]) -> list[Anomaly]:
    """Each call of a tool has its effect once. `called`: (sequence, operation id) of the log; `done`: the ledger's ids."""
    sequences = {operation: sequence for sequence, operation in called}
    counts = Counter(done)
    found: list[Anomaly] = []
    for operation, sequence in sequences.items():
        if not counts[operation]:
            message = f"operation {operation} of event {sequence} was called and has no side effect"
            found.append(Anomaly(kind="missing effect", who="server", sequence=sequence, message=message))
    for operation, count in counts.items():
        if count > 1 or operation not in sequences:
            message = f"operation {operation} has {count} side effects and {int(operation in sequences)} calls"
            found.append(
                Anomaly(kind="double effect", who="server", sequence=sequences.get(operation), message=message)
            )
    return found


def judge_wire(log: Sequence[Logged], forwarded: Iterable[tuple[str, int, str]]) -> list[Anomaly]:
    """What crossed the gate is the log's bytes. `forwarded`: (who, sequence, sha256 of the bytes)."""
    digests = {event.sequence: event for event in log}
    found: dict[int, Anomaly] = {}
    for who, sequence, sha256 in forwarded:
        event = digests.get(sequence)
        if event is None or event.sha256 != sha256:
            name = named(event) if event else f"event {sequence}"
            message = f"{name} crossed the wire with other bytes than the log's"
            found.setdefault(sequence, Anomaly(kind="changed", who=who, sequence=sequence, message=message))
    return list(found.values())


def named(event: Logged) -> str:
    """Name an event to a person."""
    return f"event {event.sequence} ({event.type})"


def _differences(event: Logged, shown: Shown) -> Iterable[str]:
    if shown.content != event.content:
        yield "content"
    if shown.type != event.type:
        yield "type"
    if shown.sequence != event.sequence:
        yield "sequence"
    if event.text is not None and shown.text != event.text:
        yield "text"


def _why(shown: Shown, first_life: int, in_hand: bool) -> str:
    if shown.life == first_life:
        return ""
    if not shown.redelivered:
        return ", not marked redelivered"
    return ", more than once after one kill" if in_hand else ", though it was not in hand at the kill"


def _false_end(log: Sequence[Logged], showing: Showing) -> list[Anomaly]:
    if showing.status is None:
        return []
    end = log[-1] if log else None
    settled = SETTLING.get(end.type) if end else None
    told = "requires_action" if showing.status == "paused" else showing.status
    if told == settled:
        return []
    message = f"told the end {told!r}, the log says {settled!r}"
    return [Anomaly(kind="false end", who=showing.who, sequence=end.sequence if end else None, message=message)]
