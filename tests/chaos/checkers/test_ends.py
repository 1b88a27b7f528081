"""I11, I12, I16."""

import pytest

from chaos_history import (
    asked,
    came,
    closed,
    exited,
    finished,
    holds,
    killed,
    log,
    says,
    shown,
    silent,
    wrong,
)
from reattach_chaos.checkers import agreement, definite_ends, no_reattach
from reattach_chaos.history import Head, Request, Server, Snapshot, Status, Terminal


@pytest.mark.parametrize(
    "proof",
    [came(2), shown(2), [Status(status="completed")], [Snapshot(boundary="e1.2", status="completed")]],
    ids=["wire", "screen", "status", "snapshot"],
)
def test_an_end_with_proof_is_definite(proof):
    """The settling event, or a settled status that the client read."""
    assert holds(says(definite_ends, log(2), proof, finished()))


@pytest.mark.parametrize(
    "no_proof",
    [came(1), came(2, whole=False), [Status(status="running")], [Status(status="completed", who="control")]],
    ids=["another event", "half of it", "running", "read by another"],
)
def test_an_end_without_proof_is_false(no_proof):
    """An end of stream says nothing."""
    ruling = says(definite_ends, log(2), no_proof, closed(by="server"), finished(), came(2), shown(2))
    assert wrong(ruling) == (
        "false end",
        "the client told the end 'completed' without a settling event or a settled status",
        ["close", "finished"],
    )


def test_without_a_close_the_word_alone_is_the_witness():
    """Nobody saw the wire."""
    assert wrong(says(definite_ends, log(2), finished()))[2] == ["finished"]


def test_no_end_no_law():
    """Who tells none is not judged here."""
    assert silent(says(definite_ends, log(2), shown(1)))


def test_all_witnesses_agree():
    """Paused is the command line's word for requires_action."""
    words = [Terminal(witness="stream", status="completed"), Status(status="completed"), Status(status="running")]
    assert holds(says(agreement, log(2), words, shown(2), finished()))
    assert holds(says(agreement, log(2, settles="requires_action"), shown(2), finished("paused")))
    assert silent(says(agreement, log(2, settles=None), shown(2)))


@pytest.mark.parametrize(
    "other", [Terminal(witness="status", status="failed"), Status(status="failed", who="control"), finished("failed")]
)
def test_another_end_is_false(other):
    """Whoever says it."""
    ruling = says(agreement, log(2), came(2), other)
    assert wrong(ruling)[:2] == ("false end", "the end is 'completed' for one witness and 'failed' for another")


def test_an_end_without_proof_is_not_compared():
    """It is told by another law."""
    assert holds(says(agreement, log(2), finished("failed")))


def test_the_end_of_a_log_that_was_replaced_is_of_another_log():
    """Words from before that are not compared."""
    before = [Status(status="failed"), Server(did="epoch", epoch="e2")]
    assert holds(says(agreement, log(2, settles="failed"), before, log(2, epoch="e2")))


def test_a_status_that_knows_no_run_disagrees_with_its_log():
    """Events that expired are no reason, nor a server that was ended and came again; a log that lost something is."""
    gone = Head(route="status", status=404)
    expired = Server(did="expired", until=1)
    assert wrong(says(agreement, log(2), expired, gone)) == (
        "lost",
        "a status was answered 404, as if there were no run, and its log has the end 'completed'",
        ["head", "logged"],
    )
    assert wrong(says(agreement, log(2), Server(did="killed"), Server(did="started"), gone))[0] == "lost"
    assert holds(says(agreement, log(2), Server(did="lost"), gone))
    assert holds(says(agreement, log(2), Head(route="status", status=503), Head(route="stream", status=410)))


def test_a_status_does_not_take_an_end_back():
    """Asked for after the end was told; what had been asked for before may be older. A new log begins anew."""
    ended = [Terminal(witness="stream", status="completed", conn=1)]
    asks, running = Request(route="status", conn=2), Status(status="running", conn=2)
    assert wrong(says(agreement, log(2), ended, asks, running)) == (
        "false end",
        "a status says 'running' of a run whose end had been told",
        ["terminal", "status"],
    )
    assert wrong(says(agreement, log(2), asks, Status(status="completed", conn=2), asks, running))[0] == "false end"
    assert holds(says(agreement, log(2), asks, ended, running))
    assert holds(says(agreement, log(2), ended, Request(route="status", conn=2, who="other"), running))
    assert holds(says(agreement, log(2), ended, Server(did="epoch", epoch="e2"), log(2, epoch="e2"), asks, running))


def test_after_the_end_nothing_is_asked_for():
    """The stream was asked for before; other subscribers may."""
    assert holds(says(no_reattach, log(2), asked(None), shown(1, 2), finished(), asked(2, who="other")))
    assert silent(says(no_reattach, log(2), shown(1), asked(1)))
    assert silent(says(no_reattach, log(2, settles="completed"), log(1, epoch="e2", settles=None), shown(2), asked(2)))


def test_an_attach_after_the_end_is_a_storm():
    """After the settling event was shown, or the end was told."""
    assert wrong(says(no_reattach, log(2), shown(1, 2), asked(2))) == (
        "storm",
        "the client asked for the stream again after the end",
        ["delivered", "resume"],
    )
    assert wrong(says(no_reattach, log(2), shown(1), finished(), asked(1)))[2] == ["finished", "resume"]


def test_a_new_process_may_look_once():
    """Its mark may have been lost with the kill."""
    assert holds(says(no_reattach, log(2), shown(1, 2), killed(), asked(2, life=2), exited()))


def test_a_process_cannot_know_what_another_showed_meanwhile():
    """Of two on one state the elder was silent while the younger went on to the end; of the younger it is a storm."""
    assert holds(says(no_reattach, log(2), shown(1), shown(2, life=2), asked(1)))
    assert wrong(says(no_reattach, log(2), shown(1), shown(2, life=2), asked(1), asked(1)))[0] == "storm"
    assert wrong(says(no_reattach, log(2), shown(1), shown(2, life=2), asked(1, life=2)))[0] == "storm"
