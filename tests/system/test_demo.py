"""`reattach demo`, as a stranger runs it: a process, its lines, its exit code, and what it leaves behind."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

RECORDINGS = Path(__file__).parents[3] / "shared" / "recordings"
DEMO = [sys.executable, "-m", "reattach_chaos.cli", "demo"]
LIMIT_S = 110


def demo(*args: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a demo whose files go to `folder`."""
    environment = {**os.environ, "TMPDIR": str(folder), "NO_COLOR": "1"}
    return subprocess.run(
        [*DEMO, *args], env=environment, capture_output=True, encoding="utf-8", timeout=LIMIT_S, check=False
    )


def leftovers(folder: Path) -> list[str]:
    """Return the command lines of processes that still work in the folder; none where the system does not tell."""
    found = []
    for line in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = line.read_bytes()
        except OSError:
            continue
        if os.fsencode(folder) in command:
            found.append(command.decode(errors="replace"))
    return found


def test_a_demo_passes_and_leaves_nothing(tmp_path):
    """Every boundary cut with each fault, a create's answer lost, five kills; the last line is the verdict."""
    done = demo("--events", "40", folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith("reattach demo   seed 7   40 events   server 127.0.0.1:")
    assert lines[-1] == "lost 0  duplicated 0  reordered 0  runs 1"
    assert "  FIN      ##############################        40 / 40" in lines
    (cuts,) = [line for line in lines if line.startswith("cuts planned")]
    assert cuts.startswith("cuts planned 126, fired 126 (")
    (kills,) = [line for line in lines if line.startswith("client killed")]
    assert kills == (
        "client killed 5 times, 4 events shown again, all marked   creates 2, runs 1   tool calls 9, side effects 9"
    )
    assert list(tmp_path.iterdir()) == []
    assert leftovers(tmp_path) == []


@pytest.mark.slow
def test_a_naive_client_fails_and_is_told_what_it_lost(tmp_path):
    """A plain httpx-sse loop ends at the first cut; the files are kept and named."""
    done = demo("--client", "naive", "--events", "40", "--json", folder=tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr
    said = [json.loads(line) for line in done.stdout.splitlines()]
    verdict = said[-1]
    assert (verdict["kind"], verdict["verdict"], verdict["exit"], verdict["runs"]) == ("verdict", "bad", 1, 2)
    assert verdict["lost"] == 3 * 39
    assert verdict["duplicated"] > 0
    assert (
        "  FIN      showed 1 of 40 events; 39 lost, the first is event 2 (run.started); 9 tool results never shown"
        in (done.stderr)
    )
    assert [str(path) for path in tmp_path.iterdir()] == [verdict["kept"]]
    assert (Path(verdict["kept"]) / "history.jsonl").exists()


def test_a_recorded_stream_passes(tmp_path):
    """Another service's events, three of them: each is shown as it was recorded."""
    recording = tmp_path / "notes.jsonl"
    recording.write_text('{"type": "note", "text": "🙂 \\u2028"}\n' * 3, encoding="utf-8")
    folder = tmp_path / "work"
    folder.mkdir()
    done = demo("--recording", str(recording), folder=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "shown = log, byte for byte, 6 events of notes.jsonl" in done.stdout
    assert list(folder.iterdir()) == []


@pytest.mark.slow
@pytest.mark.timeout(LIMIT_S + 10)
@pytest.mark.parametrize("recording", sorted(RECORDINGS.glob("*.jsonl")), ids=lambda path: path.stem)
def test_every_real_recording_passes(recording, tmp_path):
    """Of 3 to 393 events, ending completed, failed and paused."""
    done = demo("--recording", str(recording), "-q", folder=tmp_path)
    assert (done.returncode, done.stdout) == (0, "lost 0  duplicated 0  reordered 0  runs 1\n"), done.stderr


@pytest.mark.parametrize(
    ("sent", "code"), [(signal.SIGINT, 130), pytest.param(signal.SIGTERM, 143, marks=pytest.mark.slow)]
)
def test_ending_a_demo_ends_everything(sent, code, tmp_path):
    """Ctrl-C at any time: no process and no file is left."""
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(DEMO, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline().startswith(b"reattach demo")
            assert process.stdout.readline().startswith(b"  create")
            process.send_signal(sent)
            assert process.wait(30) == code
        finally:
            process.kill()
    assert list(tmp_path.iterdir()) == []
    assert leftovers(tmp_path) == []


def test_a_demo_that_is_killed_leaves_no_process(tmp_path):
    """After kill -9 nobody ends the children: they end with their stdin."""
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(DEMO, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith(b"reattach demo")
        assert process.stdout.readline().startswith(b"  create")
        process.kill()
    deadline = time.monotonic() + 20
    while leftovers(tmp_path) and time.monotonic() < deadline:
        time.sleep(0.05)  # they are nobody's children now: nothing tells their end
    assert leftovers(tmp_path) == []


@pytest.mark.parametrize(
    "args", [["--events", "12"], ["--recording", "no-such-file"], ["--client", "other"], ["--seed", "x"]]
)
def test_wrong_arguments_are_refused(args, tmp_path):
    """64, one line that says what is wrong, nothing started."""
    done = demo(*args, folder=tmp_path)
    assert (done.returncode, done.stdout) == (64, "")
    assert done.stderr
    assert list(tmp_path.iterdir()) == []
