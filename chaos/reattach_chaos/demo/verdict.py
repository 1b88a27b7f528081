"""The verdict on a whole demo: what is proven wrong, what is not known, and the numbers. Pure.

Proven wrong beats not known. A fault that did not fire makes the demo fail, but as *not known*: nothing was proven of the client
there.

Checked by tests/chaos/demo/test_verdict.py.
"""

from dataclasses import dataclass

from reattach_chaos.demo.cuts import FAULTS
from reattach_chaos.demo.judge import Anomaly, judge_effects, judge_runs, judge_showing, judge_wire
from reattach_chaos.demo.stage import Played

GOOD, PROVEN_BAD, NOT_KNOWN = 0, 1, 3
LABELS = {"fin": "FIN", "rst": "RST", "stall": "stall"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Anomalies in the order of their events, reasons why something is not known, and counts."""

    anomalies: tuple[Anomaly, ...]
    unknown: tuple[str, ...]
    events: int
    planned: int
    fired: int
    during_replay: int
    connections: int
    kills: int
    again: int
    creates: int
    runs: int
    tool_calls: int
    effects: int
    seconds: float

    @property
    def exit_code(self) -> int:
        """0 good, 1 proven bad, 3 not known."""
        return PROVEN_BAD if self.anomalies else NOT_KNOWN if self.unknown else GOOD

    def count(self, kind: str) -> int:
        """Return how many anomalies there are of a kind."""
        return sum(anomaly.kind == kind for anomaly in self.anomalies)


def decide(played: Played) -> Verdict:
    """Judge what was played."""
    log, cuts = played.log, played.cuts
    judgements = [judge_showing(log, showing) for showing in played.showings]
    called = [(event.sequence, event.operation_id) for event in log if event.operation_id is not None]
    anomalies = [
        *(anomaly for judgement in judgements for anomaly in judgement.anomalies),
        *judge_wire(log, cuts.forwarded),
        *judge_runs(played.ledger.runs, cuts.creates),
        *judge_effects(called, played.ledger.effects_of(played.run_id)),
    ]
    fired = {fault: len(log) - len(cuts.unfired(fault, len(log))) for fault in FAULTS}
    return Verdict(
        anomalies=tuple(sorted(anomalies, key=lambda anomaly: anomaly.sequence or 0)),
        unknown=tuple(_unknown(played, bool(anomalies))),
        events=len(log),
        planned=len(log) * len(FAULTS) + 1 + played.kills_planned,
        fired=sum(fired.values()) + min(1, cuts.lost_answers) + played.kills,
        during_replay=cuts.during_replay,
        connections=cuts.connections,
        kills=played.kills,
        again=sum(judgement.again for judgement in judgements),
        creates=cuts.creates,
        runs=played.ledger.runs,
        tool_calls=len(called),
        effects=len(played.ledger.effects),
        seconds=played.seconds,
    )


def _unknown(played: Played, proven: bool) -> list[str]:
    """Return why something is not known; the first is the most telling."""
    log, cuts = played.log, played.cuts
    reasons = list(played.troubles)
    if not log:
        reasons.append("the server's log is empty: nothing was played")
    for fault in FAULTS:
        if unfired := cuts.unfired(fault, len(log)):
            more = f" and {len(unfired) - 1} more" if len(unfired) > 1 else ""
            reasons.append(f"{LABELS[fault]} was planned after event {unfired[0]}{more} and did not fire")
    if not cuts.lost_answers:
        reasons.append("the create's answer was to be lost, and was not")
    if played.kills < played.kills_planned:
        reasons.append(f"{played.kills_planned} kills were planned, {played.kills} happened")
    if not cuts.during_replay and len(log) > 1:
        reasons.append("no cut came during a replay")
    reasons += [
        f"{showing.who} follower: {showing.trouble}"
        for showing in played.showings
        if showing.trouble and not showing.stopped and not proven
    ]
    return reasons + [f"gate: {trouble}" for trouble in dict.fromkeys(cuts.troubles)]
