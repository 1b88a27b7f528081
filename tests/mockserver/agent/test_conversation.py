"""The fold of a session's log: what the model is asked with, and what is still to be done."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from reattach_mockserver.agent.conversation import Conversation
from reattach_mockserver.agent.model import ModelTurn, ToolCall, ToolTurn, UserTurn

TYPES = [
    "message.delta",
    "message.completed",
    "tool.call",
    "tool.result",
    "action.required",
    "action.resolved",
    "run.created",
    "run.completed",
    "note",
]


def user(text: str) -> dict[str, Any]:
    return {"type": "message.completed", "data": {"message_id": "u", "role": "user", "text": text}}


def said(text: str, name: str = "m", **more: Any) -> dict[str, Any]:
    return {"type": "message.completed", "data": {"message_id": name, "role": "assistant", "text": text, **more}}


def delta(text: str, name: str = "m") -> dict[str, Any]:
    return {"type": "message.delta", "data": {"message_id": name, "index": 0, "text": text}}


def called(name: str) -> dict[str, Any]:
    return {"type": "tool.call", "data": {"call_id": name, "operation_id": f"op_{name}", "tool": "t", "arguments": {}}}


def came(name: str, result: Any) -> dict[str, Any]:
    return {"type": "tool.result", "data": {"call_id": name, "operation_id": f"op_{name}", "result": result}}


def call(name: str) -> ToolCall:
    return ToolCall(name, f"op_{name}", "t", {})


def fold(*events: dict[str, Any]) -> Conversation:
    talk = Conversation()
    for event in events:
        talk.apply(event)
    return talk


def test_results_follow_their_turn_in_the_order_of_its_calls():
    """Whichever came first, and though the log has them in between."""
    talk = fold(user("go"), said("Two."), called("a"), called("b"), came("b", 2), came("a", 1), said("Done."))
    assert talk.turns() == (
        UserTurn("go"),
        ModelTurn("Two.", (call("a"), call("b"))),
        ToolTurn("a", 1),
        ToolTurn("b", 2),
        ModelTurn("Done."),
    )
    assert (talk.last_words(), talk.open_calls(), talk.model_turns) == ("Done.", [], 2)


def test_a_call_after_a_result_is_another_turn():
    """A turn without a word leaves only its calls; they are not taken for those of the turn before it."""
    talk = fold(user("go"), called("a"), came("a", 1), called("b"))
    assert talk.turns() == (UserTurn("go"), ModelTurn("", (call("a"),)), ToolTurn("a", 1), ModelTurn("", (call("b"),)))
    assert [state.call for state in talk.open_calls()] == [call("b")]
    assert (talk.last_words(), talk.model_turns) == (None, 2)


def test_a_call_in_another_run_is_another_turn():
    talk = fold(user("go"), called("a"))
    talk.begin(continues=False)
    talk.apply(called("b"))
    assert [turn for turn in talk.turns() if isinstance(turn, ModelTurn)] == [
        ModelTurn("", (call("a"),)),
        ModelTurn("", (call("b"),)),
    ]
    assert talk.model_turns == 1


def test_half_a_message_is_none_of_the_conversation():
    talk = fold(user("go"), delta("Ha"), delta("lf"))
    assert (talk.half, talk.attempts) == (("m", "Half"), 1)
    talk.apply(said("Half", interrupted=True))
    assert (talk.half, talk.attempts, talk.turns()) == (None, 1, (UserTurn("go"),))
    talk.apply(delta("Whole.", "n"))
    talk.apply(said("Whole.", "n"))
    assert (talk.half, talk.attempts, talk.turns()) == (None, 0, (UserTurn("go"), ModelTurn("Whole.")))


def test_half_a_message_of_a_run_that_is_over_is_left_as_it_is():
    talk = fold(user("go"), delta("Half"))
    talk.begin(continues=False)
    assert (talk.half, talk.turns()) == (None, (UserTurn("go"),))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(
                ["message_id", "role", "text", "call_id", "action", "id", "action_id", "response", "index"]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=8,
)


@given(st.lists(st.tuples(st.sampled_from(TYPES), json_values), max_size=12))
def test_events_of_any_shape_can_be_taken_in(events):
    """A session may have runs that another service's recording played: what has our types may not have our members."""
    talk = fold(*({"type": kind, "data": data} for kind, data in events))
    talk.begin(continues=False)
    called_ids = [call.call_id for turn in talk.turns() if isinstance(turn, ModelTurn) for call in turn.calls]
    answered = [turn.call_id for turn in talk.turns() if isinstance(turn, ToolTurn)]
    assert sorted(called_ids) == sorted(answered), "whatever was called has come to something once the run is over"
