"""The command in processes of its own: clients and servers that die by SIGKILL in mid-run, signals, readers that leave.

Nobody sleeps and nothing is fast enough or too slow: a run goes on for as long as the test needs it, a test goes on when a line
has come, and at its end it cancels the run.
"""

import json
import os
import select
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from reattach_mockserver.logs.tables import counts_of

PATIENCE = 60.0  # seconds; only a broken program takes longer
SCRIPT = """
reattach: scenario/1
name: slow
limits: {heartbeat_ms: 1000}
steps:
  - {tool: charge_card, id: c1, operation_id: op_1, arguments: {cents: 999}, takes_ms: 20, result: {ok: true}}
  - {repeat: 5000, steps: [{say: "tick {i} – ", split: whole}, {wait_ms: 20}]}
  - {end: completed, result: {done: true}}
"""


class Command:
    """One `reattach …` process; its lines are read with a limit of time."""

    def __init__(self, home: Path, *words: object, **more) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", "import sys; from reattach.cli import main; sys.exit(main())", *map(str, words)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "REATTACH_HOME": str(home)},
            **more,
        )
        self._rest = b""

    def line(self) -> str | None:
        """Return the next line of stdout, None at its end."""
        limit = time.monotonic() + PATIENCE
        while b"\n" not in self._rest:
            ready, _, _ = select.select([self.process.stdout], [], [], max(0.0, limit - time.monotonic()))
            assert ready, "no line came"
            more = os.read(self.process.stdout.fileno(), 65_536)
            if not more:
                return None
            self._rest += more
        line, _, self._rest = self._rest.partition(b"\n")
        return line.decode()

    def rendered(self, count: int | None = None) -> list[dict]:
        """Return the next so many rendered events, all that come if None."""
        found: list[dict] = []
        while count is None or len(found) < count:
            line = self.line()
            if line is None:
                assert count is None, self.process.stderr.read().decode()
                return found
            told = json.loads(line)
            if told["kind"] == "rendered":
                found.append(told)
            if told["kind"] == "finished":
                self.finished = told
        return found

    def kill(self) -> list[dict]:
        """Kill it where it stands; return what it had written and nobody had read."""
        self.process.kill()
        left = self._rest + self.process.stdout.read()
        self._rest = b""
        self.end()
        whole = [json.loads(line) for line in left.split(b"\n")[:-1]]
        return [told for told in whole if told["kind"] == "rendered"]

    def end(self) -> tuple[int, str]:
        """Wait for its end; return its exit code and stderr."""
        _, err = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, err.decode()


class Server(Command):
    """A `reattach serve` on a log; it may be killed and started again on the same port."""

    def __init__(self, folder: Path, port: int = 0) -> None:
        script = folder / "slow.yaml"
        script.write_text(SCRIPT)
        self.log = folder / "log.db"
        super().__init__(folder / "unused", "serve", "--port", port, "--json", "--log", self.log, "--scenario", script)
        self.url = json.loads(self.line() or "{}")["url"]
        self.port = int(self.url.rsplit(":", 1)[1])

    def kill(self) -> list[dict]:
        self.process.kill()
        self.end()
        return []

    def counts(self):
        connection = sqlite3.connect(self.log)
        try:
            return counts_of(connection)
        finally:
            connection.close()


@pytest.fixture
def commands(tmp_path):
    """Return a function that starts a command; what still runs at the end is killed by its pid."""
    started: list[Command] = []

    def start(*words, **more):
        command = Command(tmp_path / "home", *words, **more)
        started.append(command)
        return command

    start.started = started
    yield start
    for command in started:
        if command.process.poll() is None:
            command.process.kill()
        command.process.wait(PATIENCE)
        for stream in (command.process.stdout, command.process.stderr):
            stream.close()


@pytest.fixture
def server(tmp_path, commands):
    live = Server(tmp_path)
    commands.started.append(live)
    return live


def whole(shown: list[list[dict]]) -> None:
    """Check that what several processes showed is the log, once, in order; only an event in hand may have come again, marked."""
    once: list[dict] = []
    for events in shown:
        again = [event for event in events if event["id"] in {each["id"] for each in once}]
        assert len(again) <= 1, [event["cursor"] for event in again]
        for event in again:
            assert event["redelivered"], f"{event['cursor']} came again and was not marked"
            assert event["id"] == once[-1]["id"]
        once += [event for event in events if event not in again]
    assert [event["cursor"].rpartition(".")[2] for event in once] == [str(i) for i in range(1, len(once) + 1)]
    assert once[-1]["type"] == "run.cancelled"
    texts = [event["text"] for event in once if event["text"]]
    assert texts == [f"tick {number} – " for number in range(len(texts))]


def cancelled(commands, key: str, client: Command) -> list[dict]:
    """Cancel the run while the client follows it; return what the client still showed."""
    asked = commands("cancel", key, "--json")
    shown = client.rendered()
    assert client.end()[0] == 1
    assert client.finished["status"] == "cancelled"
    assert asked.process.wait(PATIENCE) == 0
    return shown


def test_killed_again_and_again_the_run_goes_on(server, commands):
    """Kill -9 in mid-run, several times, then `follow K`: at most the event in hand again, marked; the server counts one run."""
    shown = []
    words = ["run", server.url, "work", "--key", "K", "--json"]
    for _ in range(4):
        client = commands(*words)
        events = client.rendered(15)
        shown.append(events + client.kill())
        words = ["follow", "K", "--json"]
    last = commands("follow", "K", "--json")
    shown.append(last.rendered(15) + cancelled(commands, "K", last))
    whole(shown)
    counts = server.counts()
    assert (counts.runs, counts.effects) == (1, 1)


def test_a_server_that_is_killed_and_started_again_is_followed_on(server, commands, tmp_path):
    """The client does not give up, shows nothing twice and no hole; the run goes on from the server's log."""
    client = commands("run", server.url, "work", "--key", "K", "--json")
    shown = client.rendered(10)
    for _ in range(2):
        server.kill()
        shown += waiting(client)
        server = Server(tmp_path, server.port)
        commands.started.append(server)
        shown += client.rendered(10)
    shown += cancelled(commands, "K", client)
    whole([shown])
    assert not any(event["redelivered"] for event in shown)
    counts = server.counts()
    assert (counts.runs, counts.effects) == (1, 1)


def waiting(client: Command) -> list[dict]:
    """Read until the client says that it waits; return the events that came before."""
    found = []
    while True:
        told = json.loads(client.line() or "null")
        if told["kind"] == "rendered":
            found.append(told)
        if told["kind"] == "connection" and told["phase"] == "waiting":
            assert told["reason"]
            return found


def test_killed_between_intent_and_answer_the_key_goes_on(server, commands):
    """The server is not there yet: the intent is on disk, `follow K` sends the same key, one run."""
    server.kill()
    client = commands("run", server.url, "work", "--key", "early", "--json")
    until_listed(commands, "early")
    client.kill()
    again = commands("follow", "early", "--json")
    revived = Server(server.log.parent, server.port)
    commands.started.append(revived)
    whole([again.rendered(10) + cancelled(commands, "early", again)])
    assert revived.counts().runs == 1


def until_listed(commands, key: str) -> None:
    """Ask for the runs until the journal knows the key; each question is a process, so there is no need to wait."""
    limit = time.monotonic() + PATIENCE
    while time.monotonic() < limit:
        asked = commands("runs", "--json")
        out, _ = asked.process.communicate(timeout=PATIENCE)
        if any(json.loads(line)["key"] == key for line in out.splitlines()):
            return
    raise AssertionError(f"{key} was never listed")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_the_looking_and_not_the_run(server, commands, number, code):
    """Said, with the command to type; the run goes on."""
    client = commands("run", server.url, "work", "--key", "signal", "--json")
    first = client.rendered(5)
    client.process.send_signal(number)
    left = client.rendered()
    told, err = client.end()
    assert told == code
    assert "the run goes on. Again: reattach follow signal" in err
    assert "Traceback" not in err
    last = commands("follow", "signal", "--json")
    whole([first + left, last.rendered(1) + cancelled(commands, "signal", last)])


def test_a_reader_that_leaves_costs_no_event(server, commands):
    """`reattach run … | head`: no traceback; what could not be written comes again."""
    client = commands("run", server.url, "work", "--key", "pipe", "--json")
    first = client.rendered(5)
    client.process.stdout.close()
    client.process.wait(PATIENCE)
    assert client.process.returncode == 3
    err = client.process.stderr.read().decode()
    assert "Traceback" not in err
    assert "BrokenPipe" not in err
    client.process.stderr.close()
    again = commands("follow", "pipe", "--json").rendered(1)
    seen = [event["id"] for event in first]
    assert again[0]["redelivered"]
    assert again[0]["id"] not in seen[:-1]
