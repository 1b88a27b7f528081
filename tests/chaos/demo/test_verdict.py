"""The verdict: proven wrong beats not known, and a fault that did not fire is never green."""

from reattach_chaos.demo.cuts import FAULTS, Cuts
from reattach_chaos.demo.server_log import Ledger
from reattach_chaos.demo.showing import Logged, Showing, Shown
from reattach_chaos.demo.stage import Played
from reattach_chaos.demo.verdict import decide

LOG = [
    Logged(sequence=1, id="a", type="run.created", content="{}"),
    Logged(sequence=2, id="b", type="tool.call", content="{}", operation_id="op_1"),
    Logged(sequence=3, id="c", type="run.completed", content="{}"),
]


def played() -> Played:
    """A good demo of three events with one follower, killed once."""
    cuts = Cuts(connections=11, creates=2, lost_answers=1, during_replay=4)
    cuts.fired = {fault: {1, 2, 3} for fault in FAULTS}
    shown = [Shown(id=event.id, sequence=event.sequence, type=event.type, content="{}") for event in LOG]
    return Played(
        log=LOG,
        showings=[Showing(who="kill -9", shown=shown, kills=1, status="completed")],
        cuts=cuts,
        ledger=Ledger(1, (("r", "op_1"),)),
        run_id="r",
        kills_planned=1,
        seconds=1.5,
    )


def test_a_good_demo_is_good():
    """Planned: each boundary with each fault, the create, the kills; all fired."""
    verdict = decide(played())
    assert (verdict.exit_code, verdict.anomalies, verdict.unknown) == (0, (), ())
    assert (verdict.planned, verdict.fired) == (11, 11)
    assert (verdict.tool_calls, verdict.effects, verdict.runs) == (1, 1, 1)


def test_a_cut_that_did_not_fire_is_not_known():
    """All events were shown, and still nothing is proven of that boundary."""
    demo = played()
    demo.cuts.fired["stall"].discard(2)
    verdict = decide(demo)
    assert (verdict.exit_code, verdict.fired) == (3, 10)
    assert verdict.unknown == ("stall was planned after event 2 and did not fire",)


def test_a_kill_or_a_lost_answer_that_did_not_happen_is_not_known():
    """They are faults like the others."""
    demo = played()
    demo.showings[0].kills = 0
    demo.cuts.lost_answers = 0
    verdict = decide(demo)
    assert (verdict.exit_code, verdict.fired) == (3, 9)
    assert verdict.unknown == (
        "the create's answer was to be lost, and was not",
        "1 kills were planned, 0 happened",
    )


def test_no_cut_during_a_replay_is_not_known():
    """Replays are part of the main job."""
    demo = played()
    demo.cuts.during_replay = 0
    assert decide(demo).unknown == ("no cut came during a replay",)


def test_a_client_that_gives_up_after_all_events_is_not_good():
    """It has shown all, and says that it failed: something is not understood."""
    demo = played()
    demo.showings[0].status, demo.showings[0].trouble = None, "ReconnectExhausted: gone"
    verdict = decide(demo)
    assert (verdict.exit_code, verdict.unknown) == (3, ("kill -9 follower: ReconnectExhausted: gone",))


def test_what_is_proven_wrong_beats_what_is_not_known():
    """A naive client loses events, and the later faults never come to it: that is a failure, not an open question."""
    demo = played()
    demo.showings[0].shown.pop()
    demo.showings[0].status = None
    demo.cuts.fired["fin"].clear()
    verdict = decide(demo)
    assert verdict.exit_code == 1
    assert [(anomaly.kind, anomaly.sequence) for anomaly in verdict.anomalies] == [("lost", 3)]


def test_a_second_run_is_proven_wrong():
    """Whatever was shown."""
    demo = played()
    demo.ledger = Ledger(2, (("r", "op_1"), ("r2", "op_2")))
    verdict = decide(demo)
    assert (verdict.exit_code, verdict.count("second run"), verdict.runs) == (1, 1, 2)


def test_an_empty_log_is_not_known():
    """Nothing was played: nothing was lost, and nothing was shown to hold."""
    assert decide(Played()).exit_code == 3
    demo = played()
    demo.log = []
    demo.showings = []
    demo.kills_planned = 0
    demo.ledger = Ledger(1, ())
    assert decide(demo).exit_code == 3
