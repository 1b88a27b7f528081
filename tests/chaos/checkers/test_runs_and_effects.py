"""I7 to I10."""

from dataclasses import replace

import pytest

from chaos_history import asked, committed, exited, finished, holds, log, says, shown, silent, wrong
from reattach_chaos.checkers import effects_once, no_loss, no_work, one_run, same_run
from reattach_chaos.history import Counts, Created, Delivered, Effect, Request, Resume


def test_one_run_is_the_same_run():
    """Its records name it, or need not, as it is the only one."""
    assert holds(
        says(same_run, log(2, run="r1"), asked(None, run="r1"), shown(1, 2, run="r1"), committed(2), finished())
    )
    assert silent(says(same_run, shown(1)))


def test_another_run_is_foreign():
    """The client follows something that the case did not make."""
    assert wrong(says(same_run, log(1, run="r1"), shown(1, run="r2"))) == (
        "foreign",
        "the client speaks of run r2, the case is about r1",
        ["logged", "delivered"],
    )
    assert wrong(says(same_run, log(1, run="r1"), asked(None, run="r2")))[0] == "foreign"


def test_an_event_that_the_log_has_not_is_foreign():
    """Another run's, or nobody's."""
    assert wrong(says(same_run, log(1), shown(1, 7))) == (
        "foreign",
        "e1.7 was shown and is not in the log",
        ["delivered"],
    )
    assert holds(says(same_run, log(1), shown(1), shown(7, who="other")))


def test_what_has_no_id_is_named_in_words():
    """A sentence with a hole helps nobody: most often it is a control event."""
    nameless = Delivered(id="")
    told = "something without an id (a control event, stream.…, has none) was shown and is not in the log"
    assert wrong(says(same_run, log(1), shown(1), nameless)) == ("foreign", told, ["delivered"])


def test_one_create_makes_one_run():
    """Told twice it is still one; a session may be made of more."""
    one = Created(run="r1", key="k", who="control")
    assert holds(says(one_run, one, one))
    assert silent(says(one_run, log(1)))
    assert holds(says(one_run, one, replace(one, run="r2"), runs=2))


def test_two_runs_are_one_too_many():
    """The work was started and paid for twice."""
    two = [Created(run="r1", key="k1"), Created(run="r2", key="k2")]
    assert wrong(says(one_run, two)) == (
        "second run",
        "the work was asked for once and the server made 2 runs",
        ["created", "created"],
    )
    three = [*two, Created(run="r3")]
    assert "asked for 2 times and the server made 3 runs" in wrong(says(one_run, three, runs=2))[1]


def test_what_a_client_shows_of_the_second_run_is_that_runs():
    """It names none: it is the one that it asked to stream. Nothing of the first one is lost, since nobody could know of it."""
    two = [Created(run="r1", key="k1"), Created(run="r2", key="k2")]
    logs = [log(2, run="r1"), log(2, epoch="e2", run="r2")]
    asked_for = Resume(run="r2")
    made_twice = [*two, *logs, asked_for, shown(1, 2, epoch="e2"), finished(), exited(0)]
    assert wrong(says(one_run, *made_twice))[0] == "second run"
    assert holds(says(no_loss, *made_twice))
    short = [*two, *logs, asked_for, shown(2, epoch="e2"), finished(), exited(0)]
    assert wrong(says(no_loss, *short))[:2] == ("lost", "event 1 (e2.1) was never shown")


def test_a_retry_carries_the_same_key():
    """Another body is another create; where no body is known nothing is compared."""
    first = Request(route="create", key="k1", sha256="a")
    assert holds(says(one_run, first, first, replace(first, key="k2", sha256="b"), Request(route="stream")))
    assert wrong(says(one_run, first, replace(first, key="k2"))) == (
        "second run",
        "the create was repeated under another key (k1, then k2)",
        ["request", "request"],
    )
    assert holds(says(one_run, replace(first, sha256=None), replace(first, sha256=None, key="k2")))


def calling(*operations, settles="completed"):
    events = log(len(operations), settles=settles)
    return [replace(event, operation_id=operation) for event, operation in zip(events, operations, strict=True)]


def done(*operations):
    return [Effect(who="server", operation_id=operation) for operation in operations]


def test_each_operation_has_one_effect():
    """A handler's effects are another law's."""
    assert holds(says(effects_once, calling("op1", "op2", None), done("op1", "op2"), Effect(operation_id="x")))
    assert silent(says(effects_once, calling("op1")))


def test_two_runs_of_one_scenario_have_each_its_own_effect():
    """They call it by the same id; a second effect of one of them is double all the same."""
    both = [replace(event, run=run) for run in ("r1", "r2") for event in calling("op1")]
    effects = [replace(done("op1")[0], run=run) for run in ("r1", "r2")]
    assert holds(says(effects_once, both, effects))
    assert wrong(says(effects_once, both, effects, effects[1]))[1] == "operation op1 has 2 effects"
    assert wrong(says(effects_once, both, effects[:1]))[0] == "missing effect"


@pytest.mark.parametrize(
    ("ledger", "anomaly", "words", "kinds"),
    [
        (["op1", "op1"], "double effect", "operation op1 has 2 effects", ["logged", "effect", "effect"]),
        (["op1", "op9"], "double effect", "operation op9 has an effect, and no event calls for it", ["effect"]),
        (["op9", "op9"], "double effect", "operation op9 has 2 effects", ["effect", "effect"]),
    ],
)
def test_a_second_effect_or_one_without_a_call_is_double(ledger, anomaly, words, kinds):
    """The witness is the call and the effects."""
    assert wrong(says(effects_once, calling("op1"), done(*ledger))) == (anomaly, words, kinds)


def test_a_call_without_an_effect_is_missing_one():
    """Where the ledger was read and the run has settled."""
    assert wrong(says(effects_once, calling("op1", "op2"), done("op1"))) == (
        "missing effect",
        "operation op2 of event 2 (e1.2) was called and has no effect",
        ["logged"],
    )
    assert wrong(says(effects_once, calling("op1"), Counts(of="case", events=1)))[0] == "missing effect"
    assert silent(says(effects_once, calling("op1", settles=None), Counts(of="case", events=1)))


def test_watching_makes_no_work():
    """The case's counts are its twin's."""
    assert holds(says(no_work, Counts(of="case", events=5, calls=2), Counts(of="twin", events=5, calls=2)))
    assert silent(says(no_work, Counts(of="case", events=5)))
    assert silent(says(no_work, Counts(of="twin", events=5)))


def test_more_work_than_the_twins_was_made_by_watching():
    """And less was lost."""
    twin = Counts(of="twin", events=5, calls=2)
    assert wrong(says(no_work, twin, Counts(of="case", events=5, calls=3))) == (
        "double effect",
        "the server made 3 calls, and 2 without faults",
        ["counts", "counts"],
    )
    assert wrong(says(no_work, twin, Counts(of="case", events=4, calls=2)))[0] == "lost"
