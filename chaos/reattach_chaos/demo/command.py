"""One `reattach demo` from its arguments to its exit code: what to play, where to keep it, what to say at the end.

The folder is removed after a good end, and kept and named else. Exit codes are the surface page's: 0 good, 1 proven bad, 3 not
known, 64 wrong arguments, 130 and 143 where somebody ended it.
"""

import asyncio
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from reattach_chaos.demo.cast import cast
from reattach_chaos.demo.child import ChildFailed
from reattach_chaos.demo.report import bad_lines, facts, good_lines, last_line
from reattach_chaos.demo.screen import Screen
from reattach_chaos.demo.server_log import LogUnreadable
from reattach_chaos.demo.stage import Piece, Played, Stage
from reattach_chaos.demo.verdict import GOOD, NOT_KNOWN, Verdict, decide
from reattach_mockserver.scenarios.demo import FRAME_EVENTS, LEAST_EVENTS, demo_script
from reattach_mockserver.scenarios.dump import dump_script
from reattach_mockserver.scenarios.errors import RecordingError
from reattach_mockserver.scenarios.recording import load_recording
from reattach_mockserver.scenarios.script import Say, Script, Step, Tool, Wait

USAGE, INTERRUPTED, TERMINATED = 64, 130, 143
MOST_EVENTS = 5000
FIRST_WAIT_MS, PLAY_MS, MOST_PACE_MS = 1_000, 6_600, 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The command's arguments."""

    recording: Path | None
    events: int
    seed: int
    client: str
    as_json: bool = False
    quiet: bool = False
    verbose: bool = False
    color: bool = True


def run(options: Options) -> int:
    """Play a demo; return the exit code."""
    if options.recording is None and not LEAST_EVENTS <= options.events <= MOST_EVENTS:
        sys.stderr.write(
            f"reattach demo: --events {options.events}: from {LEAST_EVENTS} to {MOST_EVENTS} are played.\n"
        )
        return USAGE
    folder = Path(tempfile.mkdtemp(prefix="reattach-demo-"))
    keep = True
    try:
        code = _run(options, folder)
        keep = code not in (GOOD, USAGE, INTERRUPTED, TERMINATED) or options.verbose
        return code
    finally:
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)


def _run(options: Options, folder: Path) -> int:
    try:
        piece = _piece(options, folder)
    except RecordingError as error:
        sys.stderr.write(f"reattach demo: {error}\n")
        return USAGE
    naive = options.client == "naive"
    kills = sum(len(part.holds) for part in cast(piece.events, options.seed, naive=naive))
    screen = Screen(piece.events, kills, quiet=options.quiet, as_json=options.as_json, color=options.color)
    stage = Stage(piece, client=options.client, seed=options.seed, folder=folder, watch=screen.progress)

    def ready(url: str) -> None:
        what = f"{piece.events} events" if options.recording is None else options.recording.name
        client = "   client naive" if naive else ""
        title = f"reattach demo   seed {options.seed}   {what}   server {url.removeprefix('http://')}{client}"
        screen.header(title, seed=options.seed, server=url, client=options.client, events=piece.events)

    try:
        played = asyncio.run(_play(stage, ready))
    except KeyboardInterrupt:
        sys.stderr.write("reattach demo: interrupted, everything that it had started is ended.\n")
        return INTERRUPTED
    except asyncio.CancelledError:
        return TERMINATED
    except (ChildFailed, LogUnreadable) as error:
        screen.line(f"NOT KNOWN: {error}.   kept: {folder}", "red")
        screen.fact("verdict", verdict="unknown", exit=NOT_KNOWN, unknown=[str(error)], kept=str(folder))
        return NOT_KNOWN
    screen.progress(played)
    return _tell(decide(played), played, screen, folder, options)


async def _play(stage: Stage, ready: Callable[[str], None]) -> Played:
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    return await stage.play(ready)


def _piece(options: Options, folder: Path) -> Piece:
    if options.recording is not None:
        events = len(load_recording(options.recording).events)
        return Piece(kind="recording", path=options.recording, events=events + FRAME_EVENTS)
    path = folder / "scenario.json"
    path.write_text(dump_script(_paced(demo_script(options.events, options.seed), options.events)), encoding="utf-8")
    return Piece(kind="scenario", path=path, events=options.events)


def _paced(script: Script, events: int) -> Script:
    """Slow the run down to the pace of reconnects, or all cuts would come during replays."""
    pace = Wait(ms=min(MOST_PACE_MS, PLAY_MS // events))
    steps: list[Step] = [Wait(ms=FIRST_WAIT_MS)]
    for step in script.steps:
        match step:
            case Say():
                steps.append(replace(step, every_ms=pace.ms))
            case Tool():
                steps += [pace, replace(step, takes_ms=pace.ms)]
            case _:
                steps += [pace, step]
    return replace(script, steps=tuple(steps))


def _tell(verdict: Verdict, played: Played, screen: Screen, folder: Path, options: Options) -> int:
    good = verdict.exit_code == GOOD
    for anomaly in verdict.anomalies[:1000]:
        screen.fact(
            "anomaly", anomaly=anomaly.kind, who=anomaly.who, sequence=anomaly.sequence, message=anomaly.message
        )
    if good and not options.quiet:
        for line in good_lines(verdict, options.recording.name if options.recording else None):
            screen.line(line)
    if not good:
        first, *more = bad_lines(verdict, played, folder, naive=options.client == "naive")
        screen.line(first, "red")
        for line in more:
            screen.line(line)
    elif options.verbose:
        screen.line(f"kept: {folder}")
    screen.line(last_line(verdict), "green" if good else "red")
    screen.fact("verdict", **facts(verdict, None if good and not options.verbose else folder))
    return verdict.exit_code
