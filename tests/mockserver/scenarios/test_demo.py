"""The run that the demo plays, and the scenarios that come with the server."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reattach_mockserver.scenarios.demo import LEAST_EVENTS, TOOLS, demo_script
from reattach_mockserver.scenarios.dump import dump_script
from reattach_mockserver.scenarios.expand import Branches, CallTool, Emit, Finish, Plan, Rest, SettleTool, plan
from reattach_mockserver.scenarios.parse import loads_script
from reattach_mockserver.scenarios.ready import READY, load_ready
from reattach_mockserver.scenarios.script import Problem

ENGINES_OWN = 3  # run.created, run.started and the settling event


def events(of: Plan) -> int:
    """Count the events that a plan appends."""
    count = 0
    for step in of:
        count += isinstance(step, Emit | CallTool | SettleTool)
        if isinstance(step, Branches):
            count += sum(events(branch) for branch in step.branches)
    return count


def texts(of: Plan) -> list[str]:
    """List the texts of the deltas."""
    return [str(step.data["text"]) for step in of if isinstance(step, Emit) and step.type == "message.delta"]


@given(count=st.integers(LEAST_EVENTS, 400), seed=st.integers(0, 2**31))
@settings(max_examples=60, deadline=None)
def test_a_demo_has_exactly_the_events_that_were_asked_for(count: int, seed: int):
    """Those of the engine are counted in, as the log counts them; the file survives being written."""
    script = demo_script(count, seed)
    assert events(plan(script)) + ENGINES_OWN == count
    assert loads_script(dump_script(script)) == script


@pytest.mark.parametrize("count", [LEAST_EVENTS, 132, 1000])
def test_every_demo_has_what_breaks_readers(count: int):
    """Long, short, multi-line, four bytes wide, with U+2028; nine tools, status, an event of 64 KiB."""
    steps = list(plan(demo_script(count)))
    shown = "".join(texts(plan(demo_script(count))))
    assert "\u2028" in shown
    assert "\n" in shown
    assert any(char > "\uffff" for char in shown)
    assert sum(isinstance(step, CallTool) for step in steps) == TOOLS == 9
    emitted = [step for step in steps if isinstance(step, Emit)]
    assert sum(step.type == "status" for step in emitted) >= 4
    assert [len(str(step.data["text"])) for step in emitted if step.type == "report"] == [65536]


def test_the_default_demo_takes_less_than_a_second():
    """Its waits alone; the cuts take the rest of the demo's time."""
    script = demo_script()
    waits = sum(step.ms for step in plan(script) if isinstance(step, Rest))
    assert 300 <= waits <= 1000
    assert script.limits.heartbeat_ms == 150


def test_the_same_seed_makes_the_same_demo():
    """And another one another."""
    assert demo_script(132, 3) == demo_script(132, 3) != demo_script(132, 4)


def test_a_demo_that_is_too_short_is_refused():
    """Its parts would not fit."""
    with pytest.raises(ValueError, match="at least 40"):
        demo_script(39)


@pytest.mark.parametrize("name", READY)
def test_a_ready_scenario_has_the_name_of_its_file(name: str):
    """So a run that names it plays it."""
    assert load_ready(name).name == name


def test_a_name_that_is_not_ready_is_a_key_error():
    """No file outside of the folder is ever read."""
    with pytest.raises(KeyError):
        load_ready("../ready/hello")


def test_hello_is_short_and_completes():
    """A few words, one tool, an end."""
    steps = list(plan(load_ready("hello")))
    assert events(plan(load_ready("hello"))) < 30
    assert sum(isinstance(step, CallTool) for step in steps) == 1
    assert steps[-1] == Finish(path="4", status="completed", result={"greeted": True})


def test_failure_fails_with_its_problem():
    """Code and sentence are the file's."""
    last = list(plan(load_ready("failure")))[-1]
    assert isinstance(last, Finish)
    assert last.problem == Problem(code="upstream_down", message="the archive did not answer; nothing was changed")


def test_quiet_is_minutes_of_virtual_time():
    """Played on a virtual clock it takes no time at all."""
    script = load_ready("quiet")
    assert script.clock == "virtual"
    assert sum(step.ms for step in plan(script) if isinstance(step, Rest)) > 20 * 60_000


def test_huge_event_is_one_below_the_default_limit():
    """An event of a mebibyte would be refused, this one is not."""
    sizes = [len(str(step.data.get("text", ""))) for step in plan(load_ready("huge-event")) if isinstance(step, Emit)]
    assert max(sizes) == 1_000_000


@pytest.mark.parametrize(
    "needle",
    ["é", "中", "🙂", "\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\0", "\r\n", "\r", "\n\n", "e\u0301", "ש", "\u202e",
     "\u200d", "\ufeff", "\x1b", "\U0010fffd", "data: ", "🇩🇪🇫🇷"],
)  # fmt: skip
def test_unicode_has_each_of_the_hard_characters(needle: str):
    """In the text of its messages, whose deltas put together are that text."""
    script = load_ready("unicode")
    completed = [
        str(step.data["text"]) for step in plan(script) if isinstance(step, Emit) and step.type == "message.completed"
    ]
    assert needle in "".join(completed)
    assert "".join(texts(plan(script))) == "".join(completed)
