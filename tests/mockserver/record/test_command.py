"""`reattach record`: a run of a real server becomes a file that the server plays as it was."""

import json
import re
import tomllib
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from reattach import errors
from reattach.cli import main
from reattach_mockserver.bearer import parse_tokens
from reattach_mockserver.library import Library
from reattach_mockserver.live import LiveServer
from reattach_mockserver.record.recorder import Recorder
from reattach_mockserver.scenarios.ready import READY, load_ready
from reattach_mockserver.scenarios.recording import load_recording
from reattach_mockserver.scenarios.script import End, RawEvent, Say, Script, Tool, Wait
from reattach_mockserver.scenarios.steps import reserved
from reattach_mockserver.settings import Settings

pytestmark = pytest.mark.anyio

QUICK = {name: replace(load_ready(name), clock="virtual") for name in READY if name != "cancel-me"}
WHOLE = (
    "hello",
    "tools",
    "parallel-tools",
    "approvals",
    "approval-stale",
    "failure",
    "cancelled",
    "huge-event",
    "unicode",
)
TOKEN = "tok-of-alice/1"
SECRETS = Script(
    name="secrets",
    clock="virtual",
    steps=(
        Say(text=f"your token is {TOKEN}!", split="whole"),
        Say(text=TOKEN, split=3),
        Tool(tool="call", arguments={"api_key": "k", "url": f"http://h/?t={TOKEN}"}, result={"x": "sk-" + "a" * 30}),
        RawEvent(type="vendor.note", data={TOKEN: 1}, text=f"see {TOKEN}"),
        End(result={"t": TOKEN}),
    ),
)
OPEN = Script(name="open", steps=(Say(text="a b", split="words"), Wait(ms=3_600_000)))


@pytest.fixture(scope="module")
def server():
    with LiveServer(scripts={**QUICK, "open": OPEN}) as running:
        yield running


@pytest.fixture(autouse=True)
def no_token(monkeypatch):
    monkeypatch.delenv("REATTACH_TOKEN", raising=False)


def started(server, scenario, key=None, **headers):
    made = httpx.post(
        f"{server.url}/v1/runs",
        json={"input": {"scenario": scenario}},
        headers={"Idempotency-Key": key or f"record-{scenario}", **headers},
        trust_env=False,
        timeout=20,
    )
    return made.json()["id"]


def lines(path):
    return [json.loads(text) for text in path.read_bytes().splitlines()]


def files(path):
    return sorted(each.name for each in path.parent.iterdir())


@pytest.mark.parametrize("name", WHOLE)
async def test_what_was_recorded_is_played_byte_for_byte(server, tmp_path, sites, name):
    """Each event that is not the server's own: type, text, and the very bytes of its data; the same end."""
    run, path = started(server, name), tmp_path / "run.jsonl"
    assert main(["record", server.url, run, "-o", str(path), "--quiet"]) == 0
    assert files(path) == ["run.jsonl"], "nothing else is left"
    before = server.log(run)
    assert [line["id"] for line in lines(path)[1:]] == [json.loads(body)["id"] for body in before]

    site = await sites(replace(QUICK["hello"], name="unused"))
    site.engine.settings.scripts._scripts["recorded"] = replace(
        load_recording(path), events=at_once(load_recording(path))
    )
    again = await site.settled({"input": {"scenario": "recorded"}})
    after = [event.body for event in await site.engine.log.read(again["id"], 0, 100_000, 1 << 28)]
    assert [told(body) for body in after if mine(body)] == [told(body) for body in before if mine(body)]
    last_before, last_after = json.loads(before[-1]), json.loads(after[-1])
    assert last_after["type"] == last_before["type"]
    for member in ("result", "error"):
        assert last_after["data"].get(member) == last_before["data"].get(member)
    waits_before, waits_after = [each["data"].get("required_actions", []) for each in (last_before, last_after)]
    names = ("id", "kind", "tool", "arguments", "operation_id", "thread")
    assert [[each[name] for name in names] for each in waits_after] == [
        [each[name] for name in names] for each in waits_before
    ]


def at_once(recording):
    """Return the events without the times that were recorded, which the real clock would wait for."""
    return tuple(replace(event, at_ms=0) for event in recording.events)


def mine(body):
    kind = json.loads(body)["type"]
    return kind == "release.changed" or not reserved(kind)


def told(body):
    """Return an event's type, and the bytes of its data and text."""
    return json.loads(body)["type"], re.fullmatch(rb'.*?"time":"[^"]*",("data":.*)\}', body, re.DOTALL)[1]


def test_the_file_is_the_pages_form(server, tmp_path):
    """A header, then `at_ms id type data` a line; the times are those of the events."""
    run, path = started(server, "quiet"), tmp_path / "run.jsonl"
    assert main(["record", server.url, run, "-o", str(path)]) == 0
    header, *events = lines(path)
    assert sorted(header) == ["profile", "reattach", "recorded_at", "run"]
    assert (header["reattach"], header["profile"]) == ("recording/1", "native")
    assert header["run"] == {"id": run, "server": server.url}
    assert {tuple(event) for event in events} == {("at_ms", "id", "type", "data")}
    assert events[-1]["at_ms"] == 1_740_000, "by its own clock the run took half an hour"
    assert [event["data"] for event in events] == [json.loads(body)["data"] for body in server.log(run)]


def test_without_timing_no_line_has_a_time(server, tmp_path):
    run, path = started(server, "hello"), tmp_path / "run.jsonl"
    assert main(["record", server.url, run, "-o", str(path), "--no-timing"]) == 0
    assert not any("at_ms" in line for line in lines(path))
    assert load_recording(path).ending.result == {"greeted": True}


@pytest.mark.parametrize(
    ("name", "status"),
    [("hello", "completed"), ("failure", "failed"), ("cancelled", "cancelled"), ("approval", "paused")],
)
def test_a_whole_recording_is_good_however_the_run_ended(server, tmp_path, capsys, name, status):
    """Said in a line for people, in one object a line for programs: each event, then the end."""
    run, path = started(server, name), tmp_path / "run.jsonl"
    assert main(["record", server.url, run, "-o", str(path), "--json", "--profile", "native"]) == 0
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    events = [line for line in told if line["kind"] == "recorded"]
    assert [line["id"] for line in events] == [line["id"] for line in lines(path)[1:]]
    last = told[-1]
    assert last == {
        "kind": "finished", "status": status, "file": str(path), "events": len(events), "redactions": 0, "spread": 0,
        "duration_ms": lines(path)[-1]["at_ms"],
    }  # fmt: skip
    assert len(events) == len(server.log(run))
    other = tmp_path / "other.jsonl"
    assert main(["record", server.url, run, "-o", str(other)]) == 0
    assert re.fullmatch(
        rf"{re.escape(str(other))}: {len(events)} events of run {run} \({status}\), [0-9.]+ s, 0 redactions\n",
        capsys.readouterr().out,
    )


def test_no_secret_is_in_the_file(tmp_path, monkeypatch, capsys):
    """The token of the client that recorded, in whatever it said; keys by their form and their names. All counted and said."""
    tokens = parse_tokens([f"alice {TOKEN}"])
    settings = Settings(scripts=Library({"secrets": SECRETS}), default="secrets", tokens=tokens)
    monkeypatch.setenv("REATTACH_TOKEN", TOKEN)
    path = tmp_path / "run.jsonl"
    with LiveServer(settings) as server:
        run = started(server, "secrets", Authorization=f"Bearer {TOKEN}")
        assert main(["record", server.url, run, "-o", str(path), "--json"]) == 0
    text = path.read_text(encoding="utf-8")
    assert TOKEN not in text
    assert "sk-aaa" not in text
    assert "uthorization" not in text
    by_type = {line["type"]: line for line in lines(path)[1:]}
    assert by_type["tool.call"]["data"]["arguments"] == {"api_key": "***", "url": "http://h/?t=***"}
    assert by_type["vendor.note"]["text"] == "see ***"
    assert by_type["run.completed"]["data"] == {"result": {"t": "***"}}
    told = capsys.readouterr()
    finished = json.loads(told.out.splitlines()[-1])
    assert (finished["redactions"], finished["spread"]) == (9, 1)
    assert "1 text of" in told.err
    assert "Look at it before you give it away" in told.err


def test_a_token_that_is_refused_is_told_and_nothing_is_left(tmp_path, monkeypatch, capsys):
    tokens = parse_tokens([f"alice {TOKEN}"])
    settings = Settings(scripts=Library({"secrets": SECRETS}), default="secrets", tokens=tokens)
    monkeypatch.setenv("OTHER", "wrong-token")
    path = tmp_path / "run.jsonl"
    with LiveServer(settings) as server:
        assert main(["record", server.url, "run_x", "-o", str(path), "--token-env", "OTHER"]) == 3
    told = capsys.readouterr().err
    assert "NotAuthorized: " in told
    assert "wrong-token" not in told
    assert files(path) == []


def test_a_run_that_nobody_knows_leaves_nothing(server, tmp_path, capsys):
    path = tmp_path / "run.jsonl"
    assert main(["record", server.url, "run_nothing", "-o", str(path)]) == 3
    assert "NotFound" in capsys.readouterr().err
    assert files(path) == []


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["URL", "run_1"], 64, "-o/--output"),
        (["URL", "-o", "FILE"], 64, "RUN"),
        (["nothing", "run_1", "-o", "FILE"], 64, "is no address"),
        (["http://user:pass@127.0.0.1:1", "run_1", "-o", "FILE"], 64, "give secrets by token="),
        (["URL", "run_1", "-o", "FILE", "--profile", "nobody"], 64, "'nobody'"),
        (["URL", "run_1", "-o", "FILE", "--token-env", "NOT_SET"], 64, "NOT_SET"),
        (["URL", "run_1", "-o", "FOLDER/none/x.jsonl"], 3, "cannot be written (No such file or directory)"),
        (["URL", "run_1", "-o", "FOLDER"], 3, "cannot be written (Is a directory)"),
        (["URL", "run_1", "-o", "FILE", "--no-timings"], 64, "--no-timing"),
    ],
)
def test_what_cannot_be_done_is_said_by_its_exit_code(server, tmp_path, capsys, words, code, told):
    """One line, no traceback, and no file."""
    path = tmp_path / "run.jsonl"
    stand = {"URL": server.url, "FILE": str(path)}
    words = [stand.get(word, word).replace("FOLDER", str(tmp_path)) for word in words]
    try:
        got = main(["record", *words])
    except SystemExit as ended:
        got = ended.code
    err = capsys.readouterr().err
    assert (got, told in err, "Traceback" in err) == (code, True, False), err
    assert not path.exists()


def test_a_file_that_is_something_else_is_not_touched(server, tmp_path, capsys):
    run, path = started(server, "hello"), tmp_path / "run.jsonl"
    path.write_text("my notes\n")
    assert main(["record", server.url, run, "-o", str(path)]) == 64
    assert "is no recording" in capsys.readouterr().err
    assert path.read_text() == "my notes\n"


def test_a_recording_that_is_whole_stays_as_it_is(server, tmp_path, capsys):
    """The same command again asks nobody: the server may be gone by then."""
    run, path = started(server, "hello"), tmp_path / "run.jsonl"
    assert main(["record", server.url, run, "-o", str(path), "-q"]) == 0
    before = path.read_bytes()
    attached = server.app.calls.total()
    assert main(["record", server.url, run, "-o", str(path)]) == 0
    assert capsys.readouterr().out.endswith(" s, whole already\n")
    assert path.read_bytes() == before
    assert server.app.calls.total() == attached


def test_what_ends_the_looking_does_not_end_the_recording(server, tmp_path, capsys, monkeypatch):
    """What came is in the file and can be played; nothing is lost or doubled by the second time."""
    run, path = started(server, "open", key="limit"), tmp_path / "run.jsonl"
    words = ["record", server.url, run, "-o", str(path)]
    take = Recorder.take

    def until_the_third(recorder, event):
        if recorder.events == 3:
            raise errors.WaitTimeout("the run has not ended within 5 s. It goes on.")
        return take(recorder, event)

    with monkeypatch.context() as patch:
        patch.setattr(Recorder, "take", until_the_third)
        assert main([*words, "--timeout", "60"]) == 3
    assert len(lines(path)) == 4
    assert "To go on: reattach record" in capsys.readouterr().err
    assert files(path) == ["run.jsonl", "run.jsonl.recording"]
    assert (path.parent / "run.jsonl.recording").stat().st_mode & 0o077 == 0, "it holds what was not redacted"
    assert load_recording(path).ending.problem.code == "recording_truncated"
    httpx.post(f"{server.url}/v1/runs/{run}/cancel", trust_env=False, timeout=20)
    assert main(words) == 0
    assert [line["id"] for line in lines(path)[1:]] == [json.loads(body)["id"] for body in server.log(run)]
    assert files(path) == ["run.jsonl"]


def test_a_gap_is_no_recording(server, tmp_path, capsys):
    """Events that can no longer be had: exit 3, since a file with a hole would be played as if it were whole."""
    run, path = started(server, "hello", key="trimmed"), tmp_path / "run.jsonl"
    server.expire(run, 3)
    assert main(["record", server.url, run, "-o", str(path)]) == 3
    assert "CursorExpired" in capsys.readouterr().err
    assert not path.exists()


def test_a_journal_of_your_own_stays(server, tmp_path):
    """With `--journal` no other one is made, and that one is not removed."""
    run, path, journal = started(server, "hello"), tmp_path / "run.jsonl", tmp_path / "own.db"
    assert main(["record", server.url, run, "-o", str(path), "--journal", str(journal), "-q"]) == 0
    assert journal.exists()
    assert not (tmp_path / "run.jsonl.recording").exists()


def test_it_is_a_command_of_reattach():
    """Declared in the group through which the client finds what other packages add."""
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())["project"]
    assert project["entry-points"]["reattach.commands"]["record"] == "reattach_mockserver.record.command:record"
