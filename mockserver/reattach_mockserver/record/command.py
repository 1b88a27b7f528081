"""`reattach record URL RUN -o FILE`: a real run as a file that `serve --recording FILE` plays. Arguments, words, exit codes.

It is a user of the public client like any other: it follows the run through a profile, with a journal of its own beside the file,
FILE.recording, which is there only as long as the recording is not whole. Killed and run again, it goes on.

Exit: 0 once the recording is whole, however the run ended; else the codes of every command. Where the words come from: the
surface page, sections 2 and 5. Checked by tests/mockserver/record and tests/system/test_record.py.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import traceback
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from reattach import errors
from reattach.cli import exits, following, journals, options, visible
from reattach.cli.display import Display, choose
from reattach.cli.lines import Lines
from reattach.cli.parser import seconds
from reattach_mockserver.event import SETTLING
from reattach_mockserver.record.recorder import Recorder
from reattach_mockserver.record.redaction import Redactor
from reattach_mockserver.record.tape import Header, Tape, TapeError


def record(subparsers: Any) -> None:
    """Add the command `record` to a command line; its `run` takes the arguments and returns the exit code."""
    parser = subparsers.add_parser(
        "record",
        help="record a real run as a file that the server plays",
        description="Follow a run of a real server and save its events, with their times, as FILE: reattach serve --recording FILE "
        "plays it. Secrets are replaced by ***. Kill it and run it again: it goes on.",
    )
    parser.add_argument("url", metavar="URL", help="the server, such as http://127.0.0.1:8700")
    parser.add_argument("which", metavar="RUN", help="the run's id")
    parser.add_argument("-o", "--output", metavar="FILE", required=True, type=Path, help="the recording, JSON lines")
    parser.add_argument("--no-timing", action="store_true", help="leave out when each event came; it plays 10 ms apart")
    options.add_client(parser)
    parser.add_argument("--timeout", type=seconds, metavar="S", help="seconds until we stop looking; the run goes on")
    parser.in_any_order = True
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Do the command."""
    display = choose(args)
    try:
        return _recorded(args, display)
    except (KeyboardInterrupt, exits.Terminated) as signal:
        display.note(
            f"interrupted; the run goes on, and so does the recording when the same command is run again: {_again(args)}"
        )
        return exits.of_signal(signal)
    except BrokenPipeError:
        raise
    except Exception as error:
        told = _told(error, args)
        if args.verbose:
            traceback.print_exception(error, file=sys.stderr)
        busy = isinstance(error, TapeError) and error.busy
        kept = exits.of_error(told) == exits.NOT_KNOWN and args.output.exists() and not busy
        display.failed(told, f"What came so far is kept. To go on: {_again(args)}" if kept else "")
        return exits.of_error(told)
    finally:
        display.close()


def _recorded(args: argparse.Namespace, display: Display) -> int:
    server, profile = journals.server(args.url), args.profile or "native"
    token = options.token(args)
    header = Header(profile=profile, recorded_at=_now(), run_id=args.which, server=server)
    redactor = Redactor([token] if token else [])
    folder = args.output.with_name(f"{args.output.name}.recording")
    own = args.journal is None
    with ExitStack() as stack:
        tape = stack.enter_context(Tape(args.output, header))
        recorder = Recorder(tape, redactor, native=profile == "native", timing=not args.no_timing)
        if profile == "native" and tape.ends in SETTLING and not folder.exists():
            recorder.events, recorder.at_ms = tape.length, tape.last_ms
            _summary(args, display, SETTLING[tape.ends], recorder, None)
            return exits.GOOD
        if own:
            folder.mkdir(mode=0o700, exist_ok=True)
            stack.callback(_leave, folder, recorder)
            args.journal = str(folder / "journal.db")
        with journals.opened(args, make=True) as store:
            assert store is not None
            with (
                options.client(args, args.url, store, profile, display) as client,
                following.limited(client, args.timeout),
                following.watched(display) as told,
            ):
                display.began(args.which, None, None)
                handle = client.attach(args.which, after="beginning")
                handle._watch(told)
                with handle:
                    for event in handle:
                        line = recorder.take(event)
                        if line is not None and isinstance(display, Lines):
                            display.emit("recorded", at_ms=recorder.at_ms, id=line["id"], type=line["type"])
                outcome = handle.wait()
        tape.finish()
        if own:
            shutil.rmtree(folder, ignore_errors=True)
    _summary(args, display, outcome.status.value, recorder, redactor)
    return exits.GOOD


def _leave(folder: Path, recorder: Recorder) -> None:
    """Remove a journal that has nothing to go on with."""
    if recorder.events == 0:
        shutil.rmtree(folder, ignore_errors=True)


def _summary(
    args: argparse.Namespace, display: Display, status: str, recorder: Recorder, redactor: Redactor | None
) -> None:
    """Say what is recorded; without a redactor nothing was done, since the file was whole."""
    status = "paused" if status == "requires_action" else status
    spread = 0 if redactor is None else len(redactor.spread)
    if isinstance(display, Lines):
        display.emit(
            "finished",
            status=status,
            file=str(args.output),
            events=recorder.events,
            redactions=None if redactor is None else redactor.count,
            spread=None if redactor is None else spread,
            duration_ms=recorder.at_ms,
        )
    elif not args.quiet:
        before = recorder.events - recorder.written
        told = [
            f"{args.output}: {_count(recorder.events, 'event')} of run {args.which} ({status})",
            f"{recorder.at_ms / 1000:.1f} s",
            "whole already" if redactor is None else _count(redactor.count, "redaction"),
        ]
        if redactor is not None and before:
            told.append(f"{before} of the events from before")
        print(visible.line(", ".join(told)), flush=True)
    if spread:
        warning = f"{_count(spread, 'text')} of {args.output} with a secret in several pieces, which cannot be replaced one by one"
        print(f"reattach record: {warning}. Look at it before you give it away.", file=sys.stderr)


def _told(error: Exception, args: argparse.Namespace) -> Exception:
    """Return the error as it is told: what is wrong with the file, and not with the run, in words of the command."""
    match error:
        case TapeError():
            return exits.Declined(str(error), exits.NOT_KNOWN if error.busy else exits.USAGE)
        case OSError() if not isinstance(error, errors.ReattachError):
            return exits.Declined(
                f"{args.output} cannot be written ({error.strerror}); the run goes on", exits.NOT_KNOWN
            )
        case _:
            return error


def _again(args: argparse.Namespace) -> str:
    return f"reattach record {args.url} {args.which} -o {args.output}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
