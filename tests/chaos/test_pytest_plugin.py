"""The pytest plugin, as a newcomer meets it: in a folder of their own, with nothing but the packages installed."""

from __future__ import annotations

import importlib
import importlib.metadata
import os
import pathlib
import subprocess
import sys
import textwrap
import tomllib

import pytest

PLUGIN = "reattach_chaos.pytest_plugin"
HEAVY = (
    "requests",
    "toxiproxy",
    "reattach",
    "reattach_mockserver",
    "httpx",
    "anyio",
    "asyncio",
    "starlette",
    "uvicorn",
    "yaml",
)

NEWCOMER = """
import json
import urllib.request

import pytest


def frames(url, after=None):
    request = urllib.request.Request(url, headers={"Accept": "text/event-stream", **({"Last-Event-ID": after} if after else {})})
    with urllib.request.urlopen(request, timeout=10) as answer:
        for line in answer:
            if line.startswith(b"id:"):
                yield line[3:].strip().decode()


@pytest.mark.parametrize("number", range(4))
def test_my_client_sees_the_log(reattach_server, number):
    run = reattach_server.start("hello")
    shown = list(dict.fromkeys(frames(reattach_server.events_url(run))))
    assert len(shown) >= len(reattach_server.log(run))
    assert reattach_server.log(run)[-1]["type"] == "run.completed"
    assert reattach_server.counts.runs == 1, "each test has a server of its own"


def test_a_file_is_played_and_a_restart_loses_nothing(reattach_server, tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text("reattach: scenario/1\\nname: mine\\nclock: virtual\\nsteps:\\n- {say: one two, split: words}\\n")
    run = reattach_server.start(file)
    first = list(frames(reattach_server.events_url(run)))
    reattach_server.restart()
    assert list(frames(reattach_server.events_url(run)))[-1] == first[-1]
    before = reattach_server.log(run)
    reattach_server.expire(run)
    assert reattach_server.log(run) == before, "what is no longer handed out is still known"
    with pytest.raises(urllib.error.HTTPError) as caught:
        list(frames(reattach_server.events_url(run), after=first[1]))
    assert caught.value.code == 410
    caught.value.close()
    old = epoch(reattach_server, run)
    reattach_server.new_epoch(run)
    assert epoch(reattach_server, run) != old


def epoch(server, run):
    with urllib.request.urlopen(server.url + "/v1/runs/" + run, timeout=10) as answer:
        return json.load(answer)["epoch"]


def test_an_unknown_scenario_is_named(reattach_server):
    with pytest.raises(ValueError, match="'helo': a path, or one of .*hello"):
        reattach_server.start("helo")
"""


def newcomer(folder: pathlib.Path, text: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Run pytest in a folder that knows nothing of this repository."""
    (folder / "test_app.py").write_text(textwrap.dedent(text))
    (folder / "pytest.ini").write_text("[pytest]\nfilterwarnings = error\n")
    declared = any(point.value == PLUGIN for point in importlib.metadata.entry_points(group="pytest11"))
    alone = {} if declared and not options else {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    named = ("-p", PLUGIN) if alone else ()  # also in a working copy that was installed before the plugin was there
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *named, *options],
        cwd=folder,
        env={**os.environ, **alone},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


@pytest.mark.parametrize(
    "options", [pytest.param((), marks=pytest.mark.slow), ("-p", "xdist", "-n", "2")], ids=["alone", "xdist"]
)
def test_a_newcomers_tests_run_with_the_fixture(tmp_path: pathlib.Path, options: tuple[str, ...]) -> None:
    """Ready scenarios, a file, restart, expiry and a new epoch, with warnings as errors; also side by side in two processes."""
    done = newcomer(tmp_path, NEWCOMER, *options)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "6 passed" in done.stdout


def test_the_example_of_an_application_under_test(tmp_path: pathlib.Path) -> None:
    """Their program with our client against the fixture: cut by a restart in the middle, it shows each event once."""
    done = newcomer(
        tmp_path,
        """
        import reattach

        def test_the_text_survives_a_restart(reattach_server, tmp_path):
            with reattach.Client(reattach_server.url, tmp_path / "runs.db") as client:
                run = client.start({"scenario": "tools"}, key="order-41")
                shown = []
                for event in run:
                    shown.append(event.id)
                    if len(shown) == 3:
                        reattach_server.restart()
            assert shown == [event["id"] for event in reattach_server.log(run.id)]
            assert reattach_server.counts.runs == 1
        """,
    )
    assert done.returncode == 0, done.stdout + done.stderr


PROXIED = """
import socket
import urllib.request

import pytest


@pytest.fixture
def connected(reattach_proxy):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(30)
        url = "http://127.0.0.1:%d/path?x=1" % listener.getsockname()[1]

        def connect(**more):
            through = reattach_proxy.url_for(url, **more)
            assert through.endswith("/path?x=1")
            host, _, port = through.split("/")[2].rpartition(":")
            client = socket.create_connection((host, int(port)), timeout=30)
            server, _ = listener.accept()
            server.sendall(b"hello")
            assert client.recv(5) == b"hello"
            sides.extend((client, server))
            return client, server

        sides = []
        yield connect
        for side in sides:
            side.close()


def test_a_request_goes_through(reattach_server, reattach_proxy):
    run = reattach_server.start("hello")
    url = reattach_proxy.url_for(reattach_server.url + "/v1/runs/" + run)
    assert url != reattach_server.url
    with urllib.request.urlopen(url, timeout=30) as answer:
        assert answer.status == 200
    reattach_proxy.refuse()
    with pytest.raises(OSError):
        urllib.request.urlopen(url, timeout=30)
    reattach_proxy.heal()
    with urllib.request.urlopen(url, timeout=30) as answer:
        assert answer.status == 200


def test_a_stall_heals(connected, reattach_proxy):
    client, server = connected()
    reattach_proxy.cut("stall")
    server.sendall(b"later")
    client.settimeout(0.1)
    with pytest.raises(TimeoutError):
        client.recv(5)
    client.settimeout(30)
    reattach_proxy.heal()
    assert client.recv(5) == b"later"


def test_a_reset(connected, reattach_proxy):
    client, _ = connected(resets=True)
    reattach_proxy.cut("rst")
    with pytest.raises(ConnectionResetError):
        client.recv(5)
    with pytest.raises(ValueError, match="resets=True"):
        connected(resets=False)


def test_a_toxic(connected, reattach_proxy):
    connected()
    reattach_proxy.toxic("limit_data", bytes=7)
    client, server = connected()
    server.sendall(b"more")
    assert client.recv(10) + client.recv(10) == b"mo"


def test_nothing_is_there_yet(reattach_proxy, request):
    with pytest.raises(ValueError, match="url_for"):
        reattach_proxy.cut("fin")
    assert reattach_proxy.backend == request.config.getoption("--reattach-backend")
"""


def test_a_newcomers_tests_cut_with_the_fixture(tmp_path: pathlib.Path) -> None:
    """`reattach_proxy` before a server of ours and one of theirs: refused, stalled, healed, reset, limited."""
    done = newcomer(tmp_path, PROXIED, "--reattach-backend", "embedded")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "5 passed" in done.stdout


def test_the_plugin_is_declared_and_loads_nothing_heavy() -> None:
    """It is imported in every pytest run of everybody who installed the package."""
    project = tomllib.loads((pathlib.Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    assert project["entry-points"]["pytest11"] == {"reattach": PLUGIN}
    if os.environ.get("REATTACH_REQUIRE_ALL"):
        assert any(point.value == PLUGIN for point in importlib.metadata.entry_points(group="pytest11"))
    code = f"import sys, pytest; before = set(sys.modules); import {PLUGIN}; print(sorted(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert not [name for name in HEAVY if f"'{name}'" in done.stdout], done.stdout


def test_without_the_extra_the_fixture_says_what_to_install(tmp_path: pathlib.Path) -> None:
    """A sentence, not a traceback."""
    done = newcomer(
        tmp_path,
        """
        import sys
        sys.modules["uvicorn"] = None

        def test_it(reattach_server):
            pass
        """,
    )
    assert done.returncode == 1
    assert "reattach_server needs uvicorn: pip install 'reattach[mockserver]'" in done.stdout
