"""What a scenario file may say, and how errors are told."""

import json
from pathlib import Path

import pytest

from reattach_mockserver.scenarios.errors import ScenarioError
from reattach_mockserver.scenarios.parse import load_script, loads_script
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

WHOLE = """\
reattach: scenario/1
name: refund
seed: 7
clock: virtual
limits: {heartbeat_ms: 15000, stream_age_ms: 60000, retention_events: 500, retention_ms: 300000, line_end: crlf}
steps:
  - {say: "Order 41 – 🙂", split: 3, every_ms: 20}
  - {tool: charge, id: call_1, operation_id: op_91, arguments: {cents: 999}, takes_ms: 300, result: {ok: true}}
  - {tool: mail, error: {code: bounced, message: "no such box"}, reversible: false, external: true}
  - parallel: [[{say: "A"}, {wait_ms: 5}], [{say: "C"}]]
  - {status: "checking stock"}
  - {event: {type: vendor.note, data: {any: json}, text: seen}}
  - {blob: {type: report, bytes: 65536}}
  - {repeat: 100, steps: [{say: "tick {i}", split: whole}]}
  - {server: restart}
  - {server: kill}
  - {server: new_epoch}
  - {server: {release: r2}}
  - {server: close_streams}
  - {server: expire_tokens}
  - {server: {expire_to: 40}}
  - {server: {overload_ms: 500, status: 429}}
  - ask: [{id: act_1, kind: approval, tool: restart, arguments: {service: shop}, expires_in_ms: 600000, release_in_ms: 3}]
    approved: [{say: "Restarting."}]
    rejected: [{end: cancelled}]
  - {end: failed, problem: {code: gone, message: why}}
"""


def steps(*lines: str) -> str:
    """Make a scenario from lines under `steps:`, which is line 2 of the text."""
    return "\n".join(["reattach: scenario/1", "steps:", *lines])


def error(text: str, name: str = "s.yaml") -> ScenarioError:
    """Read a text that is wrong."""
    with pytest.raises(ScenarioError) as caught:
        loads_script(text, name)
    return caught.value


def test_every_key_of_the_format_is_read():
    """The example has each kind of step and each setting."""
    assert loads_script(WHOLE) == Script(
        name="refund",
        seed=7,
        clock="virtual",
        limits=Limits(
            heartbeat_ms=15000, stream_age_ms=60000, retention_events=500, retention_ms=300000, line_end="crlf"
        ),
        steps=(
            Say(text="Order 41 – 🙂", split=3, every_ms=20),
            Tool(
                tool="charge",
                id="call_1",
                operation_id="op_91",
                arguments={"cents": 999},
                takes_ms=300,
                result={"ok": True},
            ),
            Tool(tool="mail", error=Problem(code="bounced", message="no such box"), reversible=False, external=True),
            Parallel(branches=((Say(text="A"), Wait(ms=5)), (Say(text="C"),))),
            Status(text="checking stock"),
            RawEvent(type="vendor.note", data={"any": "json"}, text="seen"),
            Blob(bytes=65536, type="report"),
            Repeat(times=100, steps=(Say(text="tick {i}", split="whole"),)),
            Restart(),
            Kill(),
            NewEpoch(),
            Release(release="r2"),
            CloseStreams(),
            ExpireTokens(),
            ExpireTo(sequence=40),
            Overload(ms=500, status=429),
            Ask(
                actions=(
                    Action(
                        id="act_1",
                        tool="restart",
                        arguments={"service": "shop"},
                        expires_in_ms=600000,
                        release_in_ms=3,
                    ),
                ),
                approved=(Say(text="Restarting."),),
                rejected=(End(status="cancelled"),),
            ),
            End(status="failed", problem=Problem(code="gone", message="why")),
        ),
    )


def test_a_file_without_a_name_has_its_files(tmp_path: Path):
    """A run's input names a script, so each has one."""
    path = tmp_path / "my refund.v2.yaml"
    path.write_bytes(b"\xef\xbb\xbf" + steps("  - {status: hi}").encode())
    assert load_script(path).name == "my-refund.v2"


@pytest.mark.parametrize(
    ("yaml", "value"),
    [
        ("null", None),
        ("~", None),
        ("true", True),
        ("False", False),
        ("no", "no"),
        ("on", "on"),
        ("12:30:00", "12:30:00"),
        ("2027-01-01", "2027-01-01"),
        ("0x1f", "0x1f"),
        ("1_000", "1_000"),
        ("-5", -5),
        ("+5", 5),
        ("1e3", 1000.0),
        (".5", 0.5),
        ('"5"', "5"),
        ("'true'", "true"),
        ("[1, {a: b}]", [1, {"a": "b"}]),
        ('"\\uD83D\\uDE42"', "🙂"),
        ('"\\L\\0"', "\u2028\0"),
    ],
)
def test_plain_values_are_what_json_would_have_them(yaml: str, value: object):
    """YAML 1.1's surprises (no, 12:30:00, dates) are text."""
    step = loads_script(steps(f"  - {{event: {{type: t, data: {{x: {yaml}}}}}}}")).steps[0]
    assert isinstance(step, RawEvent)
    assert step.data["x"] == value
    assert type(step.data["x"]) is type(value)


def test_json_is_read_as_json():
    """Tabs, surrogate pairs and numbers like 1E2 are fine, which YAML would not take."""
    head = '{\n\t"reattach": "scenario/1",\n\t'
    text = head + '"steps": [{"event": {"type": "t", "data": {"x": ["\\ud83d\\ude42", 1E2, "\\/"]}}}]\n}\n'
    assert loads_script(text).steps == (RawEvent(type="t", data={"x": ["🙂", 100.0, "/"]}),)


def test_json_may_begin_with_a_byte_order_mark(tmp_path: Path):
    """Some editors write one."""
    path = tmp_path / "s.json"
    path.write_bytes(b'\xef\xbb\xbf{"reattach": "scenario/1",\t"steps": []}')
    assert load_script(path).steps == ()


def test_yaml_may_begin_with_a_brace():
    """A brace alone does not make JSON."""
    assert loads_script("{reattach: scenario/1, steps: [{status: hi}]}").steps == (Status(text="hi"),)


WRONG: list[tuple[str, int, int, str, str]] = [
    ("", 1, 1, "an empty file", "reattach: scenario/1"),
    ("steps: []", 1, 1, "without 'reattach'", "expected the key 'reattach'"),
    ("reattach: scenario/2\nsteps: []", 1, 11, "'scenario/2'", "one of scenario/1"),
    ("reattach: scenario/1", 1, 1, "without 'steps'", "expected the key 'steps'"),
    ("- a", 1, 1, "a list as a scenario", "expected a mapping"),
    ("reattach: scenario/1\nsteps: 5", 2, 8, "5 as 'steps'", "expected a list"),
    ("reattach: scenario/1\nstep: []\nsteps: []", 2, 1, "unknown key 'step'", "did you mean 'steps'?"),
    ("reattach: scenario/1\nseed: -1\nsteps: []", 2, 7, "-1 as 'seed'", "a whole number from 0"),
    ("reattach: scenario/1\nseed: 1.5\nsteps: []", 2, 7, "1.5 as 'seed'", "a whole number from 0"),
    ("reattach: scenario/1\nname: a b\nsteps: []", 2, 7, "'a b' as 'name'", "a name of letters"),
    ("reattach: scenario/1\nclock: fake\nsteps: []", 2, 8, "'fake' as 'clock'", "one of real, virtual"),
    ("reattach: scenario/1\nlimits: {heartbeat_ms: 0}\nsteps: []", 2, 24, "0 as 'heartbeat_ms'", "from 10"),
    ("reattach: scenario/1\nlimits: {line_end: x}\nsteps: []", 2, 20, "'x' as 'line_end'", "lf, crlf, cr"),
    (steps("  - hi"), 3, 5, "'hi' as a step", "expected a mapping with one of say, tool"),
    (steps("  - {sya: hi}"), 3, 5, "a step with 'sya'", "expected one of say, tool"),
    (steps("  - {}"), 3, 5, "a step with no key", "expected one of say, tool"),
    (steps("  - {say: hi, evry_ms: 3}"), 3, 15, "unknown key 'evry_ms' in a 'say' step", "did you mean 'every_ms'?"),
    (steps("  - {say: hi, tool: x}"), 3, 15, "unknown key 'tool'", "expected one of say, split"),
    (steps("  - {say: 12}"), 3, 11, "12 as 'say'", "put it in quotes"),
    (steps("  - {say: }"), 3, 10, "nothing as 'say'", "expected text"),
    (steps("  - {say: x, split: 0}"), 3, 21, "0 as 'split'", "a number of characters from 1"),
    (steps("  - {say: x, split: true}"), 3, 21, "true as 'split'", "words, lines, whole"),
    (steps("  - {wait_ms: -1}"), 3, 15, "-1 as 'wait_ms'", "from 0 to 86400000"),
    (steps("  - {wait_ms: true}"), 3, 15, "true as 'wait_ms'", "a whole number"),
    (steps("  - {wait_ms: 86400001}"), 3, 15, "86400001", "to 86400000"),
    (steps("  - {blob: {bytes: 16777217}}"), 3, 20, "16777217", "to 16777216"),
    (steps("  - {repeat: 0, steps: []}"), 3, 14, "0 as 'repeat'", "from 1"),
    (steps("  - {repeat: 2}"), 3, 5, "without 'steps'", "expected the key"),
    (steps("  - {parallel: []}"), 3, 16, "0 entries", "expected 1 to 64"),
    (steps("  - {parallel: [{say: x}]}"), 3, 17, "a mapping as a branch", "expected a list"),
    (steps("  - {event: {type: run.completed}}"), 3, 20, "'run.completed' as 'type'", "not the server's own"),
    (steps("  - {event: {type: stream.x}}"), 3, 20, "'stream.x'", "not the server's own"),
    (steps('  - {event: {type: "a\\nb"}}'), 3, 20, "'a\\nb'", "one line of text"),
    (steps("  - {event: {type: t, data: [1]}}"), 3, 29, "a list as 'data'", "expected a mapping"),
    (steps("  - {event: {type: t, data: {1: a}}}"), 3, 30, "a key that is not text", "put it in quotes"),
    (steps("  - {event: {type: t, data: {a: 1e999}}}"), 3, 33, "a number too large", "fits a double"),
    (steps("  - {event: {type: t, data: {a: 9223372036854775808}}}"), 3, 33, "a number too large", "in quotes"),
    (steps("  - {tool: t, result: 1, error: {code: a, message: b}}"), 3, 33, "result and error", "expected one of them"),
    (steps("  - {tool: t, error: {code: a}}"), 3, 22, "'error' without 'message'", "expected the key"),
    (steps('  - {tool: t, id: "a b"}'), 3, 19, "'a b' as 'id'", "letters, digits"),
    (steps("  - {server: reboot}"), 3, 14, "'reboot' as 'server'", "restart, kill"),
    (steps("  - {server: {overload_ms: 5, status: 500}}"), 3, 39, "500 as 'status'", "429 or 503"),
    (steps("  - {server: {expire_to: 0}}"), 3, 26, "0 as 'expire_to'", "from 1"),
    (steps("  - {server: {}}"), 3, 14, "without 'release'", "expected the key"),
    (steps("  - {ask: []}"), 3, 11, "0 entries", "expected 1 to 100"),
    (steps("  - {ask: [{id: a}]}"), 3, 12, "an action without 'tool'", "expected the key"),
    (steps("  - {ask: [{id: a, tool: t, kind: x}]}"), 3, 35, "'x' as 'kind'", "approval, client_tool"),
    (steps("  - {end: done}"), 3, 11, "'done' as 'end'", "completed, failed, cancelled"),
    (steps("  - {end: failed}"), 3, 5, "without 'problem'", "expected the key"),
    (steps("  - {end: cancelled, result: 1}"), 3, 30, "a result of a cancelled run", "expected none"),
    (steps("  - {end: completed, problem: {code: a, message: b}}"), 3, 31, "a problem of a completed", "expected none"),
    (steps("  - {end: completed}", "  - {say: x}"), 4, 5, "a step after the end", "the last of its list"),
    (steps("  - {repeat: 2, steps: [{end: completed}]}"), 3, 25, "'end' inside a repeat", "outside"),
    (steps("  - {parallel: [[{ask: [{id: a, tool: t}]}]]}"), 3, 18, "'ask' inside a parallel", "outside"),
    (steps("  - {say: a, say: b}"), 3, 14, "the key 'say' a second time", "each key once"),
    (steps("  - &a {say: a}"), 3, 5, "an anchor", "no anchors and aliases"),
    (steps("  - {say: *a}"), 3, 11, "an alias", "no anchors and aliases"),
    (steps("  - {say: !!binary aGk=}"), 3, 11, "the tag", "without a tag"),
    (steps("  - !x {say: a}"), 3, 5, "the tag '!x'", "without a tag"),
    (steps("  - {say: a") + "\n", 4, 1, "not YAML", "well-formed YAML"),
    (steps("\t- {say: a}"), 3, 1, "not YAML", "well-formed YAML"),
    (steps("  - {say: \x07}"), 3, 11, "the character '\\x07'", "printable"),
    (steps('  - {say: "\\uD83D"}'), 3, 11, "half a surrogate pair", "whole characters"),
    (steps('  - {say: "\\UFFFFFFFF"}'), 3, 14, "not YAML", "well-formed YAML"),
    (steps("  - {say: a}", "---", "a: b"), 4, 1, "a second document", "one scenario a file"),
    (steps("  - " + "[" * 70 + "]" * 70), 3, 67, "too deep", "at most 64"),
    (steps("  - {tool: t, id: a}", "  - {tool: t, id: a}"), 4, 19, "the tool id 'a' a second time", "a new id"),
    (steps("  - {parallel: [[{tool: t, id: a}], [{tool: t, id: a}]]}"), 3, 52, "the tool id 'a'", "a new id"),
    (steps("  - {repeat: 2, steps: [{tool: t, id: a}]}"), 3, 39, "the id 'a' in each round", "expected {i} in it"),
    (
        steps("  - {tool: t, id: a1}", '  - {repeat: 2, steps: [{tool: t, id: "a{i}"}]}'),
        4, 39, "the tool id 'a1' a second time", "a new id",
    ),
    (
        steps('  - {repeat: 2, steps: [{repeat: 2, steps: [{tool: t, id: "a{i}"}]}]}'),
        3, 59, "a repeat inside a repeat", "expected none",
    ),
    (
        steps("  - {ask: [{id: a, tool: t}], approved: [{tool: t, id: x}]}", "  - {tool: t, id: x}"),
        4, 19, "the tool id 'x' a second time", "a new id",
    ),
    (
        steps("  - {ask: [{id: a, tool: t}]}", "  - {ask: [{id: a, tool: t}]}"),
        4, 17, "the action 'a' a second time", "a new id",
    ),
    (
        steps("  - {say: a}", "  - {repeat: 1000000, steps: [{repeat: 1000000, steps: []}]}"),
        4, 5, "a script of 1000000000003 planned steps", "at most 2000000",
    ),
    (
        steps("  - {repeat: 65, steps: [{blob: {bytes: 16777216}}]}"),
        3, 5, "a script of 1090519040 bytes", "at most 1073741824",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("text", "line", "column", "what", "expected"), WRONG)
def test_an_error_names_its_place_what_was_found_and_what_was_expected(
    text: str, line: int, column: int, what: str, expected: str
):
    """All four are in the message, and attributes."""
    wrong = error(text)
    assert (wrong.path, wrong.line, wrong.column) == ("s.yaml", line, column)
    assert what in wrong.what
    assert expected in wrong.expected
    assert str(wrong) == f"s.yaml:{line}:{column}: {wrong.what}, {wrong.expected}"


@pytest.mark.parametrize(
    ("text", "line", "column", "what"),
    [
        ('{"reattach": "scenario/1",\r\n "steps": [}', 2, 12, "not JSON"),
        ('{"reattach": "scenario/1", "steps": []} x', 1, 41, "more text after the value"),
        ('{"reattach": "scenario/1",\n\n "steps": [{"say": NaN}]}', 3, 20, "NaN"),
        ('{"reattach": "scenario/1",\r"steps": [{"say": "a", "say": "b"}]}', 2, 24, "a second time"),
        ('{"reattach": "scenario/1", "steps": [{"say": "\\ud83d"}]}', 1, 46, "half a surrogate"),
        ('{"steps": ' + "[" * 70, 1, 74, "too deep"),
        ('{"steps": 1e999}', 1, 11, "a number too large"),
        ('{"steps" 1}', 1, 10, "expected ':'"),
        ("{1: 2}", 1, 2, "a key in double quotes"),
        ('{"a": ' + "9" * 5000 + "}", 1, 7, "not JSON"),
    ],
)
def test_an_error_in_json_names_its_place(text: str, line: int, column: int, what: str):
    """LF, CR LF and CR end a line there too."""
    wrong = error(text, "s.json")
    assert (wrong.line, wrong.column) == (line, column)
    assert what in wrong.what


def test_only_line_ends_count_as_lines():
    """An editor does not begin a new line at U+2028, whatever the notation says."""
    assert error('{"reattach": "scenario/1", "name": "\u2028", "steps": []}').line == 1


def test_a_file_that_is_not_there_is_an_error_without_a_place(tmp_path: Path):
    """The system's reason is told."""
    with pytest.raises(ScenarioError, match=r"none\.yaml: cannot be read \(No such file"):
        load_script(tmp_path / "none.yaml")


def test_a_byte_that_is_not_utf8_has_a_place(tmp_path: Path):
    """It is found before anything is parsed."""
    path = tmp_path / "s.yaml"
    path.write_bytes("é: 1\nab\xff".encode("latin-1").replace(b"\xe9", "é".encode()))
    with pytest.raises(ScenarioError) as caught:
        load_script(path)
    assert (caught.value.line, caught.value.column) == (2, 3)


def test_large_yaml_is_sent_to_json():
    """It would be read for minutes."""
    text = steps("  - {say: " + "x" * (1024 * 1024) + "}")
    assert "as JSON" in error(text).expected
    assert loads_script(json.dumps({"reattach": "scenario/1", "steps": [{"say": "x" * (1024 * 1024)}]})).steps


def test_both_answers_may_use_the_same_ids():
    """Only one of them is ever played."""
    asked = loads_script(
        steps("  - {ask: [{id: a, tool: t}], approved: [{tool: t, id: x}], rejected: [{tool: t, id: x}]}")
    )
    assert len(asked.steps) == 1


def test_no_steps_are_a_run_that_completes_at_once():
    """An empty list is a list."""
    empty: tuple[Step, ...] = loads_script("reattach: scenario/1\nsteps: []").steps
    assert empty == ()
