"""The history, counted."""

from reattach_chaos.demo.cuts import Cuts

FIRED = {"kind": "cut.fired", "route": "stream", "fault": "rst", "sequence": 2, "id": "e-1.2", "replay": True}


def test_a_history_is_counted_by_its_records():
    """Connections, creates, events that crossed, cuts with their places."""
    cuts = Cuts()
    cuts.take(
        [
            {"kind": "connect", "lane": "rst", "conn": 1},
            {"kind": "request", "route": "create", "lane": "kill"},
            {"kind": "cut.fired", "route": "create", "fault": "lose"},
            {"kind": "event", "lane": "rst", "sequence": 2, "sha256": "x"},
            {"kind": "cut.planned", "route": "stream", "fault": "rst", "sequence": 2},
            FIRED,
            {"kind": "trouble", "message": "no server"},
            {"kind": "a new kind"},
        ]
    )
    assert (cuts.connections, cuts.creates, cuts.lost_answers, cuts.during_replay) == (1, 1, 1, 1)
    assert cuts.forwarded == {("rst", 2, "x")}
    assert (cuts.count("rst"), cuts.latest["rst"]) == (1, "e-1.2")
    assert cuts.troubles == ["no server"]


def test_what_no_connection_reached_did_not_fire():
    """Planned is what the log asks for; the gate may never have heard of it."""
    cuts = Cuts()
    cuts.take([FIRED, {"kind": "cut.planned", "route": "stream", "fault": "rst", "sequence": 3}])
    assert cuts.unfired("rst", 3) == [1, 3]
    assert cuts.unfired("fin", 1) == [1]
