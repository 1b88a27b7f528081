"""Each example is run as its reader would run it, twice: the second time everything is on disk already."""

from __future__ import annotations

import contextlib
import http.server
import os
import pathlib
import re
import runpy
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator

import pytest

import reattach
from engines_stage import address_of
from postgres_stage import Database, database
from reattach_mockserver.live import LiveServer
from reattach_mockserver.scenarios.parse import loads_script
from redis_stage import required as redis_program
from replicas_stage import nginx_program
from temporal_stage import free_ports
from temporal_stage import server as temporal_server

__all__ = ["database"]

EXAMPLES = pathlib.Path(__file__).parent.parent / "examples"


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    with LiveServer() as live:
        yield live


def run(example: str, server: LiveServer | str, journal: pathlib.Path) -> str:
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / example), server if isinstance(server, str) else server.url, str(journal)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_example_has_a_test() -> None:
    tested = pathlib.Path(__file__).read_text()
    for example in EXAMPLES.glob("*.py"):
        assert f'"{example.name}"' in tested, example.name
        assert len(example.read_text().splitlines()) < 80, example.name


def test_the_first_program_prints_the_text_then_the_result_and_again_only_the_result(
    server: LiveServer, tmp_path: pathlib.Path
) -> None:
    """Run again when the work is done, it prints the result."""
    first = run("01_first_program.py", server, tmp_path / "runs.db")
    assert first.startswith("Hello")
    assert first.splitlines()[-1] == "{'greeted': True}"
    assert run("01_first_program.py", server, tmp_path / "runs.db").strip() == "{'greeted': True}"


def test_all_unfinished_runs_are_followed_side_by_side(server: LiveServer, tmp_path: pathlib.Path) -> None:
    shown = run("02_all_unfinished.py", server, tmp_path / "runs.db")
    assert all(f"order-{number}: {{'greeted': True}}" in shown for number in (1, 2, 3))


def test_exactly_once_bills_each_call_once_over_two_runs(server: LiveServer, tmp_path: pathlib.Path) -> None:
    once = run("03_exactly_once.py", server, tmp_path / "runs.db")
    assert len(once.splitlines()) > 1
    assert run("03_exactly_once.py", server, tmp_path / "runs.db") == once


def test_the_screen_ends_with_the_whole_text(server: LiveServer, tmp_path: pathlib.Path) -> None:
    shown = run("04_screen.py", server, tmp_path / "runs.db")
    assert "completed" in shown
    assert shown.rstrip().splitlines()[-1].startswith("Hello")


def test_a_websocket_brings_the_same_text_and_is_asked_nothing_when_all_is_done(
    server: LiveServer, tmp_path: pathlib.Path
) -> None:
    first = run("06_websocket.py", server, tmp_path / "runs.db")
    assert first.startswith("Hello")
    assert first.splitlines()[-1] == "{'greeted': True}"
    assert run("06_websocket.py", server, tmp_path / "runs.db").strip() == "{'greeted': True}"


def test_telemetry_shows_a_span_a_run_and_counts_each_event_at_each_stage(
    server: LiveServer, tmp_path: pathlib.Path
) -> None:
    """OpenTelemetry by an observer of thirty lines; run again, nothing is asked of the network and nothing told."""
    shown = run("08_opentelemetry.py", server, tmp_path / "runs.db").splitlines()
    (span,) = [line for line in shown if line.startswith("span")]
    assert span.startswith("span 'follow a run': attach, attached")
    assert span.endswith("finished")
    counted = {line.split("'")[3]: line.split()[-1] for line in shown if line.startswith("metric reattach.events")}
    assert set(counted) == {"received", "committed", "applied"}
    assert len(set(counted.values())) == 1
    assert any(line.startswith("metric reattach.commit_delay") for line in shown)
    assert not run("08_opentelemetry.py", server, tmp_path / "runs.db").strip()


def test_a_fleet_bills_each_call_once_though_its_worker_is_killed(database: Database) -> None:
    """Two processes on one PostgreSQL: the second is told who works, and goes on when that one is killed."""
    program = [sys.executable, str(EXAMPLES / "05_fleet.py")]
    scenario = loads_script((EXAMPLES / "fleet.yaml").read_text())
    with LiveServer(scripts={"fleet": scenario}) as live, contextlib.ExitStack() as stack:

        def worker() -> subprocess.Popen[str]:
            process = stack.enter_context(
                subprocess.Popen([*program, live.url, database.url], stdout=subprocess.PIPE, text=True)
            )
            stack.callback(process.kill)
            return process

        first = worker()
        assert first.stdout is not None
        while "tool" not in first.stdout.readline():
            assert first.poll() is None
        first.send_signal(signal.SIGSTOP)  # alive, and not ahead of the second, however slow that one starts
        second = worker()
        assert second.stdout is not None
        busy = second.stdout.readline()
        assert f"by pid {first.pid} on" in busy
        first.kill()
        told, _ = second.communicate(timeout=60)
        assert second.returncode == 0
        bill = [line.split()[1:] for line in told.splitlines() if line.startswith("bill ")]
    assert len(bill) == 8
    assert len({event for event, _, _ in bill}) == 8
    assert {worker for _, _, worker in bill} == {str(first.pid), str(second.pid)}


def test_a_vendor_without_a_log_is_polled_and_what_is_missing_is_said(tmp_path: pathlib.Path) -> None:
    """Promise 8: each state that differs is a gap with that state; run again, the journal answers."""
    jobs = runpy.run_path(str(EXAMPLES / "jobs_vendor.py"))["Jobs"]
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), jobs) as vendor:
        thread = threading.Thread(target=vendor.serve_forever)
        thread.start()
        try:
            url = f"http://127.0.0.1:{vendor.server_port}"
            first = run("10_poll_only_vendor.py", url, tmp_path / "jobs.db")
            looks = jobs.looks
            again = run("10_poll_only_vendor.py", url, tmp_path / "jobs.db")
        finally:
            vendor.shutdown()
            thread.join()
    *labels, result = first.splitlines()
    assert all("this server keeps no log of events" in line for line in labels)
    assert labels[-1].endswith("step 3")
    assert result == again.strip() == "{'steps': 3}"
    assert jobs.looks == looks, "a journal that holds the end needs no network"


def test_a_run_that_asks_is_answered_and_goes_on(server: LiveServer, tmp_path: pathlib.Path) -> None:
    """Run again, it asks nobody: the key means the newest run of the job."""
    first = run("09_approvals.py", server, tmp_path / "runs.db")
    assert "approval of " in first
    assert first.splitlines()[-1].startswith(("completed", "  "))
    again = run("09_approvals.py", server, tmp_path / "runs.db")
    assert "approval of " not in again
    assert "completed" in again


def test_an_agent_outlives_its_server(tmp_path: pathlib.Path) -> None:
    """Killed in the middle of its first words and in the middle of what was approved, it refunds once; the client sees one run."""
    port = free_ports(1)[0]
    command = [sys.executable, str(EXAMPLES / "11_agent_server.py"), str(port), str(tmp_path)]
    with contextlib.ExitStack() as stack:

        def serve() -> subprocess.Popen[bytes]:
            process = stack.enter_context(subprocess.Popen(command, env={**os.environ, "PYTHONWARNINGS": "error"}))
            stack.callback(process.kill)
            return process

        server = serve()
        client = stack.enter_context(reattach.Client(f"http://127.0.0.1:{port}", tmp_path / "runs.db"))
        run = client.start("Please refund order 7.", key="order-7")
        for kills, kind in ((0, "message.delta"), (1, "tool.call")):
            killed = False
            for event in run:
                if event.type == kind and not killed:
                    killed = True
                    server.kill()
                    assert server.wait() == -signal.SIGKILL
                    server = serve()
            assert killed
            if kills == 0:
                (action,) = run.wait().required_actions
                assert (action.tool, action.arguments) == ("refund", {"order": 7, "cents": 12_000})
                run = run.respond(action.approve())
        assert run.result() == {"text": "Done, 120.00 are on their way. "}
        with contextlib.closing(sqlite3.connect(tmp_path / "agent.db")) as log:
            assert log.execute("SELECT tool, result FROM effects WHERE tool != 'look_up'").fetchall() == [
                ("refund", '{"refunded":12000}')
            ]


@pytest.mark.slow
@pytest.mark.parametrize("example", ["12_dbos_engine.py", "13_temporal_engine.py"])
def test_an_agent_on_an_engine_of_workflows_outlives_its_server(example: str, tmp_path: pathlib.Path) -> None:
    """Killed in a sentence and in a payment, with Temporal's own server; the reader of `01` sees one text and one result."""
    kind = example.split("_")[1]
    address = address_of(kind)
    port = free_ports(1)[0]
    log = tmp_path / "server.db"

    def serve(stack: contextlib.ExitStack) -> subprocess.Popen[bytes]:
        command = [sys.executable, str(EXAMPLES / example), str(port), str(tmp_path), address]
        process = stack.enter_context(subprocess.Popen(command, env={**os.environ, "PYTHONWARNINGS": "error"}))
        stack.callback(process.kill)
        return process

    def until(condition: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + 60
        while not condition():
            assert time.monotonic() < deadline, what
            time.sleep(0.02)

    def logged(kind: str) -> int:
        if not log.exists():
            return 0
        with contextlib.closing(sqlite3.connect(log)) as connection, contextlib.suppress(sqlite3.OperationalError):
            return connection.execute("SELECT count(*) FROM events WHERE type = ?", (kind,)).fetchone()[0]
        return 0

    with contextlib.ExitStack() as stack:
        server = serve(stack)
        reader = stack.enter_context(
            subprocess.Popen(
                [
                    sys.executable,
                    str(EXAMPLES / "01_first_program.py"),
                    f"http://127.0.0.1:{port}",
                    str(tmp_path / "runs.db"),
                ],
                stdout=subprocess.PIPE,
                text=True,
            )
        )
        stack.callback(reader.kill)
        for kind, count in (("message.delta", 5), ("tool.call", 2)):
            until(lambda kind=kind, count=count: logged(kind) >= count, f"no {count} of {kind}")  # type: ignore[misc]
            server.kill()
            assert server.wait() == -signal.SIGKILL
            if address:
                temporal_server().crash()
            server = serve(stack)
        shown, _ = reader.communicate(timeout=60)
        assert reader.returncode == 0
    agent = runpy.run_path(str(EXAMPLES / "paying_agent.py"))
    text, result = shown.splitlines()
    # A sentence that broke off stays as it was shown, and is said again from its beginning.
    assert text.startswith("Summarise these 400 files" + agent["FIRST"][:20])
    assert text.endswith(f"{agent['FIRST']} {agent['LAST']} ")
    assert result == str({"text": agent["LAST"] + " "})
    assert (logged("tool.call"), logged("tool.result"), logged("run.completed")) == (2, 2, 1)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_replicas_are_killed_and_the_run_goes_on() -> None:
    """RS-60, RS-62: two of three, at a result each; every event is printed once."""
    redis_program()
    nginx = nginx_program()
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / "14_replicas.py")],
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
        env={**os.environ, "PATH": f"{os.environ['PATH']}:{pathlib.Path(nginx).parent}"},
    )
    assert done.returncode == 0, done.stderr
    told = done.stdout.splitlines()
    assert sum(line.startswith("kill -9") for line in told) == 2
    assert sum(line.startswith("tool.call") for line in told) == 8
    assert (told[0].strip(), told[-2].strip(), told[-1]) == ("run.created", "run.completed", "completed")


def test_a_recorded_run_is_played_to_an_application(server: LiveServer, tmp_path: pathlib.Path) -> None:
    """The text that the real server gave, from the mock; one run by one create."""
    shown = run("15_record_and_replay.py", server, tmp_path / "unused.db")
    assert shown.splitlines()[-1] == "the same text from the mock; 1 run, 1 create"


def cases(example: str, folder: pathlib.Path, wanted: str) -> subprocess.CompletedProcess[str]:
    """Play some of the cases of an example that is a test."""
    words = ["-q", "-n0", "-p", "no:cacheprovider", "--rootdir", str(folder), "--reattach-seed", "7"]
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-c", os.devnull, *words, str(EXAMPLES / example), "-k", wanted],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
        cwd=folder,
    )


def test_a_right_client_passes_its_test(tmp_path: pathlib.Path) -> None:
    """Before real sockets, and under respx."""
    done = cases("16_your_own_client.py", tmp_path, "rst-after-event-2]")
    assert "2 passed" in done.stdout, done.stdout


def test_a_wrong_client_fails_its_test_and_the_text_says_where(tmp_path: pathlib.Path) -> None:
    """What was shown twice, the cut, what the client asked for then, how to repeat it, where the history is."""
    done = cases("17_a_client_with_a_fault.py", tmp_path, "rst-after-event-7]")
    assert done.returncode == 1, done.stdout
    said = re.sub(r"[0-9a-f]{20}-1\.", "e1.", re.sub(" +", " ", done.stdout))
    assert (
        "duplicated: event 7 (e1.7) was shown twice\n"
        " conn 1 RST after event 7's blank line (fired), e1.7 shown\n"
        " conn 2 attach after e1.6 <- e1.7 was already shown\n"
        'again: pytest "'
    ) in said
    assert '[rst-after-event-7]" --reattach-seed 7\nhistory: .reattach/pytest/rst-after-event-7.jsonl' in said
