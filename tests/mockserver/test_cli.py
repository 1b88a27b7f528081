"""`reattach serve`: what it prints, what it refuses, how it ends."""

import argparse
import importlib.util
import json
import os
import signal
import socket
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import entry_points

import httpx
import pytest

from reattach_mockserver import cli

PATIENCE = 20.0


@contextmanager
def serving(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "reattach_mockserver.cli", "--port", "0", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_the_first_line_is_the_address_and_a_signal_ends_it_in_order(tmp_path, number, code):
    """RS-64: it accepts when the line is out; streams get their last block before the process ends."""
    script = tmp_path / "open.yaml"
    script.write_text("reattach: scenario/1\nsteps: [{wait_ms: 600000}]\n")
    with serving("--scenario", str(script)) as process:
        line = process.stdout.readline()
        assert line.startswith("reattach serving on http://127.0.0.1:")
        url = line.split()[-1]
        with httpx.Client(base_url=url, trust_env=False) as client:
            made = client.post("/v1/runs", json={"input": "x"}, headers={"Idempotency-Key": "k"})
            path = f"/v1/runs/{made.json()['id']}/events?after=tail"
            with client.stream("GET", path, headers={"Accept": "text/event-stream"}) as stream:
                assert "server" not in stream.headers
                text = stream.iter_text()
                assert "stream.attached" in next(text)
                process.send_signal(number)
                assert "".join(text).endswith('event: stream.closing\ndata: {"reason":"draining"}\n\n')
        assert process.wait(PATIENCE) == code
        assert process.stderr.read() == ""


def test_the_first_line_as_json():
    with serving("--json") as process:
        first = json.loads(process.stdout.readline())
        assert first["url"].startswith("http://127.0.0.1:")
        assert first == {
            "kind": "serving", "url": first["url"], "pid": process.pid, "log": "memory", "admin_url": None, "protocol": 1,
        }  # fmt: skip


def test_the_last_file_named_is_what_runs_play(tmp_path):
    """Scenarios and recordings in the order of the line; the limits stated are the default's."""
    script = tmp_path / "one.yaml"
    script.write_text(
        "reattach: scenario/1\nname: one\nclock: virtual\nlimits: {heartbeat_ms: 7000}\nsteps: [{status: hi}]\n"
    )
    recording = tmp_path / "two.jsonl"
    recording.write_text('{"type":"a.b"}\n{"type":"c.d"}\n')
    for files, kinds in (
        (["--recording", str(recording), "--scenario", str(script)], ["status"]),
        (["--scenario", str(script), "--recording", str(recording)], ["a.b", "c.d"]),
    ):
        with serving(*files) as process:
            url = process.stdout.readline().split()[-1]
            with httpx.Client(base_url=url, trust_env=False) as client:
                made = client.post("/v1/runs", json={"input": "x"}, headers={"Idempotency-Key": "k"})
                run = made.json()["id"]
                after, seen = "", []
                while not seen or not seen[-1].startswith("run.completed"):
                    page = client.get(f"/v1/runs/{run}/events?wait_ms=9000{after}").json()
                    seen += [event["type"] for event in page["events"]]
                    after = f"&after={page['next']}"
                assert seen[2:-1] == kinds
                told = client.get("/.well-known/reattach").json()
                assert told["limits"]["heartbeat_ms"] == (7000 if kinds == ["status"] else 15000)


def test_it_does_not_listen_beyond_loopback_without_tokens(tmp_path, capsys):
    code, errors = cli.main(["--host", "0.0.0.0"]), capsys.readouterr().err
    assert (code, "--tokens" in errors, "--no-auth" in errors) == (64, True, True)
    tokens = tmp_path / "tokens"
    tokens.write_text("alice secret-of-alice\n")
    for arguments in (["--tokens", str(tokens)], ["--no-auth"]):
        with serving("--host", "0.0.0.0", *arguments) as process:
            assert process.stdout.readline().startswith("reattach serving on http://0.0.0.0:")


def test_tokens_are_asked_for(tmp_path):
    tokens = tmp_path / "tokens"
    tokens.write_text("alice secret-of-alice\n")
    with serving("--tokens", str(tokens)) as process:
        url = process.stdout.readline().split()[-1]
        assert httpx.get(f"{url}/v1/runs/x", trust_env=False).status_code == 401
        good = {"Authorization": "Bearer secret-of-alice"}
        assert httpx.get(f"{url}/v1/runs/x", headers=good, trust_env=False).status_code == 404


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--log", "redis://u:geheim@127.0.0.1:1/0"], 3, "--log redis://127.0.0.1:1/0: Redis cannot be asked"),
        (["--log", "redis://u:geheim@127.0.0.1:x/0"], 64, "no address of a Redis"),
        (["--log", "redis://127.0.0.1", "--deterministic"], 64, "needs a log of its own"),
        (["--log", "kafka://u:geheim@127.0.0.1"], 64, "there is no log at kafka://"),
        (["--scenario", "no-such-file.yaml"], 64, "no-such-file.yaml"),
        (["--recording", "no-such-file.jsonl"], 64, "no-such-file.jsonl"),
        (["--tokens", "no-such-file"], 64, "no-such-file"),
        (["--tokens", "x", "--no-auth"], 64, "contradict"),
        (["--host", "host.invalid", "--no-auth"], 3, "cannot listen"),
        (["--log", "/no/such/folder/log.db"], 3, "/no/such/folder"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(capsys, arguments, code, words):
    assert cli.main(["--port", "0", *arguments]) == code
    errors = capsys.readouterr().err
    assert words in errors
    assert "geheim" not in errors
    assert errors.count("\n") == 1


def test_a_port_in_use_is_said_with_the_way_out(capsys):
    with socket.create_server(("127.0.0.1", 0)) as other:
        assert cli.main(["--port", str(other.getsockname()[1])]) == 3
    assert "(Address already in use); --port names another, 0 takes a free one" in capsys.readouterr().err


def test_a_missing_extra_is_named_with_the_install_line_before_any_file_is_read(monkeypatch, capsys):
    """A scenario is YAML, and reading it must not be where the missing reader is found out: 64 and one line."""
    there = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *more: None if name == "yaml" else there(name, *more))
    assert cli.main(["--scenario", "no-such-file.yaml"]) == 64
    assert capsys.readouterr().err == "reattach serve: yaml not installed. Run: pip install 'reattach[mockserver]'\n"


def test_a_log_that_needs_an_extra_names_it(monkeypatch, capsys):
    there = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *more: None if name == "redis" else there(name, *more)
    )
    assert cli.main(["--log", "redis://u:geheim@127.0.0.1/0"]) == 64
    told = "reattach serve: --log: redis not installed. Run: pip install 'reattach[mockserver,redis]'\n"
    assert capsys.readouterr().err == told


@pytest.mark.parametrize("seconds", ["0", "-1", "nan", "1e9", "x"])
def test_a_lease_that_is_none_is_refused(capsys, seconds):
    with pytest.raises(SystemExit) as ended:
        cli.main(["--lease", seconds])
    assert ended.value.code == 64


@pytest.mark.parametrize("arguments", [["--port", "70000"], ["--port", "x"], ["--port", "-1"], ["--dialect", "x"]])
def test_wrong_arguments_end_with_64(capsys, arguments):
    with pytest.raises(SystemExit) as ended:
        cli.main(arguments)
    assert ended.value.code == 64


def test_a_port_or_a_log_that_is_taken_is_said_in_one_line(tmp_path, capsys):
    log = str(tmp_path / "log.db")
    with serving("--log", log) as process:
        port = process.stdout.readline().rsplit(":", 1)[1].strip()
        assert cli.main(["--port", port]) == 3
        assert f"127.0.0.1:{port}" in capsys.readouterr().err
        assert cli.main(["--port", "0", "--log", log]) == 3
        assert f"process {process.pid}" in capsys.readouterr().err


def test_it_is_found_as_a_command_of_reattach():
    """The entry point adds its own parser, whose `run` takes the arguments."""
    (found,) = entry_points(group="reattach.commands", name="serve")
    parser = argparse.ArgumentParser()
    parser.add_argument("--json", action="store_true")
    found.load()(parser.add_subparsers())
    args = parser.parse_args(["--json", "serve", "--port", "0"])
    assert (args.run, args.json, args.port) == (cli.run, True, 0)
    assert parser.parse_args(["serve", "--json"]).json is True
    assert os.path.basename(args.host) == "127.0.0.1"


def test_it_starts_with_nothing_that_it_does_not_need():
    """So that it starts in well under a second: no client, no HTTP client, no engine or log that was not asked for."""
    code = """
        import os, sys
        from reattach_mockserver import cli

        class Out:
            def write(self, text):
                os.write(1, " ".join(sorted({name.partition(".")[0] for name in sys.modules})).encode())
                os._exit(0)

        sys.stdout = Out()
        cli.main(["--port", "0"])
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=60, check=True
    )
    loaded = set(done.stdout.split())
    assert {"reattach_mockserver", "uvicorn"} <= loaded
    needless = {
        "reattach",
        "reattach_chaos",
        "httpx",
        "httpcore",
        "redis",
        "psycopg",
        "dbos",
        "temporalio",
        "hypothesis",
        "pytest",
    }
    assert loaded & needless == set()


def test_a_mistyped_ready_scenario_names_those_that_there_are(capsys):
    """A bare word is meant as a name; a path that is not there is said to be one."""
    from reattach.cli import main

    assert main(["serve", "--scenario", "helo"]) == 64
    told = capsys.readouterr().err
    assert "no ready scenario of that name; ready are " in told
    assert "hello" in told
    assert main(["serve", "--scenario", "./helo.yaml"]) == 64
    assert "cannot be read (No such file or directory), expected a scenario file" in capsys.readouterr().err


def test_a_server_that_is_wrong_on_purpose_says_so_and_is():
    """Loudly, on stderr, with what it does wrong and the requirement; and then it does that."""
    with serving("--mutant", "skips-one", "--json") as process:
        told = json.loads(process.stdout.readline())
        assert told["mutant"] == "skips-one"
        run = httpx.post(f"{told['url']}/v1/runs", json={"input": "x"}, headers={"Idempotency-Key": "k"}).json()
        events = f"{told['url']}/v1/runs/{run['id']}/events"
        headers = {"Accept": "text/event-stream"}
        whole = httpx.get(events, headers=headers, timeout=PATIENCE).text
        rest = httpx.get(events, headers=headers | {"Last-Event-ID": f"{run['epoch']}.2"}, timeout=PATIENCE).text
        process.terminate()
        _, said = process.communicate(timeout=PATIENCE)
    assert "WRONG ON PURPOSE (--mutant skips-one): it leaves out the event after the cursor (RS-12)" in said
    third, fourth = (f"id: {run['epoch']}.{number}\n" for number in (3, 4))
    assert third in whole
    assert third not in rest
    assert fourth in rest


def test_a_mutant_that_is_not_there_is_a_wrong_argument(capsys):
    """64, and the nearest name."""
    assert cli.main(["--mutant", "skip-one"]) == 64
    assert "Did you mean skips-one?" in capsys.readouterr().err
