"""Clients that we did not write, tried by `reattach chaos run`: each example is judged as it deserves."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from chaos_cases import faults, played
from reattach_chaos import cli
from reattach_chaos.history import Finished
from reattach_chaos.schedules import Fault, Place, Planned, at

ROOT = Path(__file__).parents[2]
CLIENTS = ROOT / "examples" / "clients"


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def missing(text: str) -> None:
    """Skip aloud, or fail where everything is required."""
    if os.environ.get("REATTACH_REQUIRE_ALL"):
        pytest.fail(text)
    pytest.skip(text)


def run(command: str, *words: str) -> int:
    """Try a client; return the exit code."""
    return cli.main(["chaos", "run", "-q", "--backend", "embedded", "--client", command, *words])


def test_a_loop_without_a_memory_is_found_to_lose(capsys):
    """The plain httpx-sse loop: what came after the cut was never shown."""
    command = f"{sys.executable} {CLIENTS / 'plain_loop.py'}"
    assert run(command, "--only", "fin-after-event-3-of-run-2", "rst-before-blank-line-of-event-2") == 1
    assert capsys.readouterr().out.startswith("INVALID: lost. Case ")


def test_curl_with_a_memory_loses_nothing(capsys):
    """Seven lines of bash that ask after the last event they showed."""
    if shutil.which("curl") is None:
        missing("curl is not installed; nothing was tested with it")
    assert (
        run(
            str(CLIENTS / "curl.sh"),
            "--faults",
            "rst",
            "--only",
            "rst-after-event-2",
            "rst-before-blank-line-of-event-3",
        )
        == 0
    )
    assert capsys.readouterr().out.startswith("VALID. ")


def eventsource(folder: Path) -> str:
    """Return the command of the Node client, beside the package that it needs."""
    packages = ROOT / ".ci" / "node" / "node_modules"
    if shutil.which("node") is None or not (packages / "eventsource").is_dir():
        missing("there is no node with npm's eventsource here: .ci/run installs it; nothing was tested with it")
    shutil.copy(CLIENTS / "eventsource.mjs", folder)
    (folder / "node_modules").symlink_to(packages)
    return f"node {folder / 'eventsource.mjs'}"


LAUNCHDARKLY = f"{sys.executable} {CLIENTS / 'launchdarkly.py'}"


@pytest.mark.slow
@pytest.mark.parametrize("client", ["eventsource", "launchdarkly"])
def test_one_that_resumes_loses_nothing(client, here, capsys):
    """Every boundary with FIN and RST. npm's waits up to three seconds before each reconnect, so this one is long."""
    command = eventsource(here) if client == "eventsource" else LAUNCHDARKLY
    assert run(command, "--faults", "fin,rst", "--jobs", "8", "--client-timeout", "60") == 0
    assert capsys.readouterr().out.startswith("VALID. ")


@pytest.mark.slow
def test_npms_eventsource_hangs_in_a_silence(here, capsys):
    """It has no limit for it."""
    assert run(eventsource(here), "--only", "stall-after-event-2", "--client-timeout", "10") == 1
    assert capsys.readouterr().out.startswith("INVALID: hang. Case stall-after-event-2")


def test_launchdarklys_loses_nothing(capsys):
    """FIN, RST, and a silence longer than its limit, on the first stream and on a resume."""
    chosen = ("fin-after-event-3-of-run-2", "fin-after-event-1-and-rst-after-event-2", "stall-after-event-2-of-run-3")
    assert run(LAUNCHDARKLY, "--only", *chosen) == 0
    assert capsys.readouterr().out.startswith("VALID. ")


BUSY, FORBIDDEN, PAGE = (
    faults(
        Planned(fault=Fault.FIN, at=at(Place.AFTER_EVENT, 2)),
        Planned(fault=fault, at=at(Place.AFTER_REQUEST), nth=2, settings=settings),
    )
    for fault, settings in ((Fault.BUSY, {"status": 503}), (Fault.UNAUTHORIZED, {}), (Fault.WRONG_TYPE, {}))
)
"""503, 401 and a web page when it comes back."""


@pytest.mark.slow
def test_npms_eventsource_gives_up_for_good_where_it_is_refused(here):
    """At 503 and at a web page too early, and it is told so, not called a loss; at a 401 a client may."""
    cases = played(BUSY, FORBIDDEN, PAGE, client=eventsource(here))
    assert {name: case.verdict.sentence().partition(".")[0] for name, case in cases.items()} == {
        BUSY.id: "INVALID: gave up",
        FORBIDDEN.id: "VALID",
        PAGE.id: "INVALID: gave up",
    }


@pytest.mark.slow
def test_launchdarklys_tries_again_where_it_is_refused():
    """As it is told to: all of it is shown."""
    cases = played(BUSY, FORBIDDEN, PAGE, client=LAUNCHDARKLY)
    assert [each.verdict.word for each in cases.values()] == ["valid"] * 3
    assert all(each.history.of(Finished) for each in cases.values())


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["embedded", "toxiproxy"])
def test_the_quick_sample_on_our_own_client_is_valid(backend, capsys):
    """Every boundary with FIN, RST and silence, on the first stream and on a resume, and every request: all fired, all valid."""
    if (
        backend == "toxiproxy"
        and shutil.which("toxiproxy-server", path=f"{ROOT / '.ci' / 'go'}:{os.environ['PATH']}") is None
    ):
        missing("there is no toxiproxy-server here: .ci/run installs it with Go; nothing was tested with it")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", f"{ROOT / '.ci' / 'go'}:{os.environ['PATH']}")
        assert cli.main(["chaos", "run", "-q", "--kill", "--backend", backend, "--require-coverage"]) == 0
    assert capsys.readouterr().out.startswith("VALID. ")


def test_the_examples_are_all_here():
    """A new one needs a test."""
    assert {each.name for each in CLIENTS.iterdir() if each.is_file()} == {
        "curl.sh",
        "eventsource.mjs",
        "launchdarkly.py",
        "plain_loop.py",
    }
    assert subprocess.run(["bash", "-n", str(CLIENTS / "curl.sh")], check=False).returncode == 0
