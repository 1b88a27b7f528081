"""`reattach proxy`: first line, configuration, signals, exit codes."""

import errno
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from reattach_chaos import cli
from toxiproxy_stage import PATIENCE, Api, Side


class Running:
    """The command in a process of its own."""

    def __init__(self, *words: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "reattach_chaos.cli", "proxy", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    def ends(self, how: int | None = None) -> tuple[int, str]:
        """Wait for its end, after a signal; return the exit code and what is left on stderr."""
        if how is not None:
            self.process.send_signal(how)
        _, said = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, said


@pytest.fixture
def start() -> Iterator[type[Running]]:
    started: list[Running] = []

    def make(*words: str) -> Running:
        started.append(Running(*words))
        return started[-1]

    yield make
    for each in started:
        if each.process.poll() is None:
            each.process.kill()
        each.process.communicate()


@pytest.mark.parametrize(("how", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_it_says_where_it_is_and_ends_cleanly(start, how, code):
    """One line; then the API; a signal closes live connections with FIN and leaves with its code, without a word."""
    running = start("--listen", "127.0.0.1:0")
    line = running.line()
    assert line.startswith("reattach proxy on http://127.0.0.1:")
    api = Api(line.split()[-1])
    with socket.create_server(("127.0.0.1", 0)) as upstream:
        upstream.settimeout(PATIENCE)
        body = {"name": "a", "upstream": f"127.0.0.1:{upstream.getsockname()[1]}", "listen": "127.0.0.1:0"}
        host, _, port = api("POST", "/proxies", body).json["listen"].rpartition(":")
        with socket.create_connection((host, int(port)), timeout=PATIENCE) as sock:
            server = Side(upstream.accept()[0])
            server.sends(b"hello")
            client = Side(sock)
            assert client.gets(5) == b"hello"
            assert running.ends(how) == (code, "")
            assert client.rest() == (b"", "fin")
            server.closes()


def test_a_file_names_the_proxies_to_begin_with(start, tmp_path):
    """As the original's: name, listen, upstream, enabled."""
    config = tmp_path / "toxiproxy.json"
    entries = [
        {"name": "web", "listen": "127.0.0.1:0", "upstream": "127.0.0.1:9", "enabled": True},
        {"name": "redis", "listen": "127.0.0.1:0", "upstream": "127.0.0.1:8", "enabled": False},
    ]
    config.write_text(json.dumps(entries))
    running = start("--listen", "127.0.0.1:0", "--config", str(config))
    proxies = Api(running.line().split()[-1])("GET", "/proxies").json
    assert {name: each["enabled"] for name, each in proxies.items()} == {"web": True, "redis": False}
    code, said = running.ends(signal.SIGTERM)
    assert code == 143
    assert f"web: {proxies['web']['listen']} -> 127.0.0.1:9" in said
    assert "redis: 127.0.0.1:0 -> 127.0.0.1:8 (disabled)" in said


def test_the_first_line_can_be_json(start):
    """As `serve` has it."""
    running = start("--listen", "127.0.0.1:0", "--json")
    told = json.loads(running.line())
    assert told == {"kind": "serving", "url": told["url"], "pid": running.process.pid}
    assert Api(told["url"])("GET", "/version").status == 200


def declined(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    """Run what ends at once, here."""
    code = cli.main(["proxy", *words])
    out, said = capsys.readouterr()
    assert out == ""
    return code, said


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("nonsense", "is no JSON"),
        ("{}", "an array of proxies"),
        ('[{"name": "a"}]', "missing required field: upstream at proxy 1"),
        ('[{"name": "a", "upstream": 7}]', "upstream must be a string"),
    ],
)
def test_a_file_that_is_wrong_is_64(capsys, tmp_path: Path, text, word):
    """With its name and what is wrong."""
    config = tmp_path / "toxiproxy.json"
    config.write_text(text)
    code, said = declined(capsys, "--listen", "127.0.0.1:0", "--config", str(config))
    assert code == 64
    assert said.startswith(f"reattach proxy: --config {config}: ")
    assert word in said


def test_a_file_that_is_not_there_is_64(capsys, tmp_path):
    """Said, too."""
    code, said = declined(capsys, "--config", str(tmp_path / "none.json"))
    assert (code, "No such file" in said) == (64, True)


@pytest.mark.parametrize("listen", ["nonsense", "127.0.0.1:x", "127.0.0.1:70000"])
def test_an_address_that_is_none_is_64(capsys, listen):
    """Before anything is opened."""
    code, said = declined(capsys, "--listen", listen)
    assert (code, listen in said) == (64, True)


def test_an_address_that_is_in_use_is_3(capsys):
    """Not known, not wrong."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        listen = f"127.0.0.1:{taken.getsockname()[1]}"
        code, said = declined(capsys, "--listen", listen)
        assert (code, os.strerror(errno.EADDRINUSE) in said) == (3, True)


def test_a_proxy_whose_port_is_taken_is_3(capsys, tmp_path):
    """The file is right, the machine is not free."""
    config = tmp_path / "toxiproxy.json"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        listen = f"127.0.0.1:{taken.getsockname()[1]}"
        config.write_text(json.dumps([{"name": "a", "upstream": "127.0.0.1:9", "listen": listen}]))
        code, said = declined(capsys, "--listen", "127.0.0.1:0", "--config", str(config))
        assert (code, "address already in use" in said) == (3, True)


def test_the_command_is_found_by_its_entry_point():
    """`reattach proxy`, though the client does not know of it."""
    found = {each.name: each for each in entry_points(group="reattach.commands")}
    assert found["proxy"].load() is cli.proxy
