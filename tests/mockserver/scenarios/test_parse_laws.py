"""Laws of reading and writing scenarios, for all inputs."""

import contextlib
import json
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reattach_mockserver.scenarios.dump import dump_script
from reattach_mockserver.scenarios.errors import ScenarioError
from reattach_mockserver.scenarios.fields import MAX_INTEGER
from reattach_mockserver.scenarios.parse import load_script, loads_script
from reattach_mockserver.scenarios.ready import READY, load_ready
from reattach_mockserver.scenarios.script import (
    Action,
    Ask,
    Blob,
    CloseStreams,
    End,
    ExpireTo,
    ExpireTokens,
    Kill,
    Limits,
    NewEpoch,
    Overload,
    Parallel,
    Problem,
    RawEvent,
    Release,
    Repeat,
    Restart,
    Say,
    Script,
    Status,
    Step,
    Tool,
    Wait,
)

TEXT = st.text(st.characters(codec="utf-8"), max_size=12)
LINE = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1, max_size=8)
MS = st.integers(0, 86_400_000)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-MAX_INTEGER, MAX_INTEGER)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
OBJECT = st.dictionaries(TEXT, JSON, max_size=3)
PROBLEM = st.builds(Problem, code=LINE, message=TEXT)


def foreign(event_type: str) -> bool:
    """Tell whether a scenario may use the type."""
    return not event_type.startswith(("run.", "stream.", "action.")) and event_type != "release.changed"


def tools() -> st.SearchStrategy[Step]:
    """Tools without ids of their own: ids are numbered by `script` below."""
    common = {"tool": LINE, "arguments": OBJECT, "takes_ms": MS, "reversible": st.booleans(), "external": st.booleans()}
    return st.one_of(st.builds(Tool, result=JSON, **common), st.builds(Tool, error=PROBLEM, **common))


PLAIN: st.SearchStrategy[Step] = st.one_of(
    st.builds(
        Say, text=TEXT, split=st.sampled_from(["words", "lines", "whole"]) | st.integers(1, 1_000_000), every_ms=MS
    ),
    tools(),
    st.builds(Status, text=TEXT),
    st.builds(RawEvent, type=LINE.filter(foreign), data=OBJECT, text=st.none() | TEXT),
    st.builds(Blob, bytes=st.integers(0, 70_000), type=LINE.filter(foreign)),
    st.builds(Wait, ms=MS),
    st.sampled_from([Restart(), Kill(), NewEpoch(), CloseStreams(), ExpireTokens(), Release(release="r2")]),
    st.builds(ExpireTo, sequence=st.integers(1, MAX_INTEGER)),
    st.builds(Overload, ms=st.integers(1, 86_400_000), status=st.sampled_from([429, 503])),
)


def several(step: st.SearchStrategy[Step], least: int = 0) -> st.SearchStrategy[tuple[Step, ...]]:
    """A few steps."""
    return st.lists(step, min_size=least, max_size=3).map(tuple)


INNER: st.SearchStrategy[Step] = st.recursive(
    PLAIN,
    lambda inner: st.one_of(
        st.builds(Repeat, times=st.integers(1, 5), steps=several(inner)),
        st.builds(Parallel, branches=st.lists(several(inner), min_size=1, max_size=3).map(tuple)),
    ),
    max_leaves=5,
)
END: st.SearchStrategy[Step] = st.one_of(
    st.builds(End, result=JSON),
    st.builds(End, status=st.just("failed"), problem=PROBLEM),
    st.just(End(status="cancelled")),
)
OPTIONAL_MS = st.none() | MS


@st.composite
def scripts(draw: st.DrawFn) -> Script:
    """Scripts that the parser could have made."""
    steps: list[Step] = list(draw(several(INNER)))
    if draw(st.booleans()):
        action = draw(
            st.builds(
                Action,
                id=st.just("act_1"),
                tool=LINE,
                kind=st.sampled_from(["approval", "client_tool", "authorization"]),
                arguments=OBJECT,
                operation_id=st.none() | st.just("op_1"),
                thread=st.none() | LINE,
                expires_in_ms=OPTIONAL_MS,
                release_in_ms=OPTIONAL_MS,
            )
        )
        steps.append(Ask(actions=(action,), approved=draw(several(INNER)), rejected=(*draw(several(INNER)), draw(END))))
        steps.append(Tool(tool="named", id="call_1", operation_id="op_2"))
    if draw(st.booleans()):
        steps.append(draw(END))
    limit = st.none() | st.integers(10, 86_400_000)
    return Script(
        name=draw(st.from_regex(r"\A[A-Za-z0-9][A-Za-z0-9._-]{0,20}\Z")),
        seed=draw(st.integers(0, MAX_INTEGER)),
        clock=draw(st.sampled_from(["real", "virtual"])),
        limits=draw(
            st.builds(
                Limits,
                heartbeat_ms=limit,
                stream_age_ms=limit,
                retention_events=limit,
                retention_ms=limit,
                line_end=st.sampled_from([None, "lf", "crlf", "cr"]),
            )
        ),
        steps=tuple(steps),
    )


@given(script=scripts())
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_what_was_written_is_read_back(script: Script):
    """`loads_script(dump_script(script)) == script`, and the text is ASCII."""
    text = dump_script(script)
    assert text.isascii()
    assert loads_script(text) == script


def test_ready_scenarios_are_written_and_read_back():
    """So a ready scenario can be given to `serve --scenario` as a file."""
    for name in READY:
        script = load_ready(name)
        assert loads_script(dump_script(script)) == script, name


FRAGMENTS = st.sampled_from(
    [
        "reattach: scenario/1\n", "steps:\n", "  - ", "{", "}", "[", "]", ": ", ", ", "say", "tool", "repeat", "parallel",
        "ask", "end", "server", "wait_ms", "event", "blob", "\n", "\t", '"', "'", "\\u", "\\U", "\\x", "&a ", "*a",
        "!!int ", "!", "%YAML 1.1\n", "---\n", "...\n", "|\n", ">\n", "? ", "- ", "#", "<<", "1e999", "-1",
        "999999999999999999999", "null", "\ufeff", "\u2028", "\ud800", "\0",
    ]
)  # fmt: skip
NOISE = st.lists(FRAGMENTS | st.text(max_size=4), max_size=25).map("".join)


@st.composite
def damaged(draw: st.DrawFn) -> str:
    """A good scenario, in which something was replaced."""
    text = draw(st.sampled_from([_HELLO, _UNICODE, dump_script(load_ready("approval"))]))
    start = draw(st.integers(0, len(text)))
    end = draw(st.integers(start, min(len(text), start + 20)))
    return text[:start] + draw(NOISE) + text[end:]


_READY = Path(__file__).parents[3] / "mockserver/reattach_mockserver/scenarios/ready"
_HELLO = (_READY / "hello.yaml").read_text(encoding="utf-8")
_UNICODE = (_READY / "unicode.yaml").read_text(encoding="utf-8")


@given(text=NOISE | damaged() | NOISE.map(lambda noise: "reattach: scenario/1\nsteps:\n  - " + noise))
@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_no_text_brings_anything_but_a_scenario_error(text: str):
    """Every text is a script or an error that has its place inside the text."""
    error = None
    try:
        loads_script(text, "s.yaml")
    except ScenarioError as caught:
        error = caught
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    assert error is None or 1 <= error.line <= len(lines)
    assert error is None or 1 <= error.column <= len(lines[error.line - 1]) + 2  # an end of line counts


@given(
    content=st.binary(max_size=60)
    | st.binary(max_size=20).map(lambda noise: b'{"reattach": "scenario/1", "steps": [' + noise)
)
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_file_brings_anything_but_a_scenario_error(content: bytes, tmp_path: Path):
    """Bytes that are no text included."""
    path = tmp_path / "s.json"
    path.write_bytes(content)
    with contextlib.suppress(ScenarioError):
        load_script(path)


@given(steps=JSON, other=JSON)
@settings(max_examples=150, deadline=None)
def test_no_json_brings_anything_but_a_scenario_error(steps: object, other: object):
    """Every JSON value, at the place of the steps and of a step's parts."""
    for value in (
        steps,
        [steps],
        [{"say": steps}],
        [{"ask": [steps], "approved": other}],
        [{"server": steps}],
        [{"repeat": 2, "steps": steps}],
    ):
        with contextlib.suppress(ScenarioError):
            loads_script(json.dumps({"reattach": "scenario/1", "steps": value, "limits": other}))
