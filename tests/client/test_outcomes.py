"""What `result()` says of a run that did not complete: counted in whole sentences, with what to do now."""

import pytest

from reattach import errors
from reattach.model import Operation, Outcome, RequiredAction, Status
from reattach.runtime.outcomes import result_of


def raised(outcome):
    with pytest.raises(errors.RunNotCompleted) as caught:
        result_of(outcome, "k", "e1.3")
    return str(caught.value)


@pytest.mark.parametrize(
    ("count", "told"), [(1, "waits for 1 answer: 'act_0' (approval of mail)"), (2, "waits for 2 answers: ")]
)
def test_a_pause_names_what_it_waits_for(count, told):
    actions = tuple(RequiredAction(id=f"act_{number}", kind="approval", tool="mail") for number in range(count))
    text = raised(Outcome(run_id="run_1", status=Status.REQUIRES_ACTION, required_actions=actions))
    assert told in text
    assert "respond() takes the answers" in text


@pytest.mark.parametrize(("count", "told"), [(0, "0 effects, 0 in doubt"), (1, "1 effect, 1 in doubt")])
def test_a_cancel_names_what_it_did_not_undo(count, told):
    operations = tuple(Operation(id=f"op_{number}", tool="mail", status="unknown") for number in range(count))
    assert told in raised(Outcome(run_id="run_1", status=Status.CANCELLED, operations=operations))
