"""What an engine gets to play."""

import dataclasses
from collections.abc import Iterable

import pytest

from reattach_mockserver.scenarios.expand import (
    Branches,
    CallTool,
    Emit,
    Finish,
    Operate,
    Pause,
    Planned,
    Rest,
    SettleTool,
    blob_text,
    plan,
    plan_continuation,
)
from reattach_mockserver.scenarios.parse import loads_script
from reattach_mockserver.scenarios.ready import READY, load_ready
from reattach_mockserver.scenarios.script import Restart, Script


def script(*steps: str) -> Script:
    """Make a script from its steps in YAML."""
    return loads_script("reattach: scenario/1\nseed: 5\nsteps:\n" + "".join(f"  - {step}\n" for step in steps) or "[]")


def flat(steps: Iterable[Planned]) -> list[Planned]:
    """List the planned steps with those of their branches."""
    found: list[Planned] = []
    for step in steps:
        found.append(step)
        if isinstance(step, Branches):
            for branch in step.branches:
                found += flat(branch)
    return found


def test_a_say_becomes_deltas_and_a_completion_that_share_a_message():
    """Deltas count from 0, the completion has the whole text, the pace comes before each piece."""
    steps = list(plan(script('{say: "Hi you", every_ms: 20}')))
    assert steps == [
        Rest(path="0.0.rest", ms=20),
        Emit(path="0.0", type="message.delta", data={"message_id": "msg_0", "index": 0, "text": "Hi "}),
        Rest(path="0.1.rest", ms=20),
        Emit(path="0.1", type="message.delta", data={"message_id": "msg_0", "index": 1, "text": "you"}),
        Emit(
            path="0.done",
            type="message.completed",
            data={"message_id": "msg_0", "role": "assistant", "text": "Hi you"},
        ),
        Finish(path="end", status="completed"),
    ]


def test_a_tool_is_called_takes_its_time_and_is_settled():
    """The call comes first; the effect, with the result, after the time that it takes."""
    call, rest, settle, _ = plan(
        script("{tool: pay, id: c1, operation_id: op_1, arguments: {a: 1}, takes_ms: 9, result: 4}")
    )
    assert isinstance(call, CallTool)
    assert rest == Rest(path="0.rest", ms=9)
    assert settle == SettleTool(path="0.result", call=call.call)
    assert call.call.call_data("op_1") == {
        "call_id": "c1",
        "operation_id": "op_1",
        "tool": "pay",
        "arguments": {"a": 1},
    }
    assert call.call.result_data("op_1") == {"call_id": "c1", "operation_id": "op_1", "result": 4}


def test_a_tool_that_fails_has_an_error_and_no_result():
    """The data of the result names the error instead."""
    _, settle, _ = plan(script("{tool: pay, error: {code: no, message: never}}"))
    assert isinstance(settle, SettleTool)
    assert settle.call.result_data("op") == {
        "call_id": "call@0",
        "operation_id": "op",
        "error": {"code": "no", "message": "never"},
    }


def test_a_repeat_fills_in_its_round_everywhere():
    """`{i}` stands for the round of the innermost repeat in texts, ids and data; outside of one it is text."""
    steps = flat(
        plan(
            script(
                '{status: "{i}"}',
                '{repeat: 2, steps: [{status: "s{i}"}, {event: {type: n, data: {a: ["{i}"], b: {c: "{i}"}}, text: "t{i}"}},'
                ' {tool: t, id: "c{i}", arguments: {x: "{i}"}}, {repeat: 2, steps: [{status: "in {i}"}]}]}',
            )
        )
    )
    emitted = [(step.path, step.data, step.text) for step in steps if isinstance(step, Emit)]
    assert emitted[0] == ("0", {"text": "{i}"}, None)
    assert emitted[1:5] == [
        ("1.0.0", {"text": "s0"}, None),
        ("1.0.1", {"a": ["0"], "b": {"c": "0"}}, "t0"),
        ("1.0.3.0.0", {"text": "in 0"}, None),
        ("1.0.3.1.0", {"text": "in 1"}, None),
    ]
    calls = [step.call for step in steps if isinstance(step, CallTool)]
    assert [(call.call_id, call.arguments) for call in calls] == [("c0", {"x": "0"}), ("c1", {"x": "1"})]


def test_branches_stay_apart_and_do_not_end_the_run():
    """Each branch is a plan of its own, without a settling step, and can be read twice."""
    branches, _ = plan(script("{parallel: [[{status: a}, {wait_ms: 5}], [{status: b}]]}"))
    assert isinstance(branches, Branches)
    first, second = branches.branches
    assert [step.path for step in first] == [step.path for step in first] == ["0.0.0", "0.0.1"]
    assert [step.path for step in second] == ["0.1.0"]


def test_a_blob_is_so_many_ascii_characters_and_always_the_same():
    """Seed and place decide its content."""
    text = blob_text(1000, "7:3")
    assert len(text) == 1000
    assert text.isascii()
    assert text == blob_text(1000, "7:3") != blob_text(1000, "8:3")


def test_another_seed_takes_the_place_of_the_scripts():
    """So one file can be played with many seeds."""
    blob = script("{blob: {bytes: 50}}")
    assert list(plan(blob, 5)) == list(plan(blob)) != list(plan(blob, 6))


def test_server_steps_are_handed_on():
    """The engine decides how a server is restarted."""
    assert next(iter(plan(script("{server: restart}")))) == Operate(path="0", step=Restart())


def test_nothing_is_planned_after_a_pause():
    """The pause settles the run; what follows belongs to its continuation."""
    steps = list(plan(script("{ask: [{id: a, tool: t}], approved: [{status: yes}]}", "{status: later}")))
    assert [type(step) for step in steps] == [Pause]


def test_a_continuation_plays_its_answer_and_then_the_rest():
    """Also where asks stand inside each other; paths go on meaning the same steps."""
    asked = script(
        "{status: before}",
        "{ask: [{id: a, tool: t}], approved: [{status: yes}, {ask: [{id: b, tool: t}], rejected: [{status: no}]},"
        " {status: inner}], rejected: [{end: cancelled}]}",
        "{status: rest}",
    )
    pause = list(plan(asked))[-1]
    assert [step.path for step in plan_continuation(asked, pause.path, "approved")] == ["1.approved.0", "1.approved.1"]
    assert list(plan_continuation(asked, "1", "rejected")) == [Finish(path="1.rejected.0", status="cancelled")]
    inner = plan_continuation(asked, "1.approved.1", "rejected")
    assert [step.path for step in inner] == ["1.approved.1.rejected.0", "1.approved.2", "2", "end"]


@pytest.mark.parametrize("path", ["0", "9", "1.maybe.0", "end", "", "1.approved", "1.approved.0"])
def test_a_path_that_is_no_ask_is_refused(path: str):
    """A continuation of nothing is a fault of the caller."""
    asked = script("{status: before}", "{ask: [{id: a, tool: t}], approved: [{status: yes}]}")
    with pytest.raises(KeyError):
        plan_continuation(asked, path, "approved")


@pytest.mark.parametrize("name", READY)
def test_paths_are_unique_and_the_last_step_settles(name: str):
    """An event's id is made from its path, and a log ends with its settling event."""
    steps = flat(plan(load_ready(name)))
    paths = [step.path for step in steps]
    assert len(paths) == len(set(paths))
    assert isinstance(steps[-1], Finish | Pause)
    assert sum(isinstance(step, Finish | Pause) for step in steps) == 1


def test_a_script_of_a_million_events_is_planned_as_it_is_read():
    """The first steps cost no more than a few steps do."""
    steps = iter(plan(script("{repeat: 1000000, steps: [{status: x}]}")))
    assert [next(steps).path for _ in range(3)] == ["0.0.0", "0.1.0", "0.2.0"]


def test_planned_steps_are_values():
    """Nobody can change a plan that another run plays."""
    with pytest.raises(dataclasses.FrozenInstanceError):
        next(iter(plan(script("{status: x}")))).path = "9"  # type: ignore[misc]  # frozen: that is the test
