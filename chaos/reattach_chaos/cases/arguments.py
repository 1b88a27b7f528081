"""`reattach chaos …`: the arguments, nothing else. Light: what a command needs is imported when it runs.

Words and flags: the surface page, section 2.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from reattach_chaos.cases.command import Options

_MOST_SEED = 2**63 - 1
"""Half of what a saved schedule may hold: samples count on from it. Not imported from there, since this module is light."""
_SEED, _JOBS_A_CPU, _MOST_JOBS, _TIMEOUT_S = 7, 4, 32, 30.0


def chaos(subparsers: argparse._SubParsersAction[Any]) -> None:
    """Add `chaos` to the command `reattach`."""
    parser = subparsers.add_parser(
        "chaos",
        help="cut a client's connections wherever it can hurt, and judge what it shows",
        description="Play cases: each cuts the connections of a client under test at planned places. Then decide from what was "
        "recorded whether it lost, doubled or reordered anything.",
    )
    commands = parser.add_subparsers(dest="chaos", metavar="COMMAND", required=True)
    _add_run(commands)
    for name, words in (
        ("replay", "play a saved case, or a schedule's file, again"),
        ("shrink", "find a smaller schedule that fails in the same way"),
    ):
        each = commands.add_parser(name, help=words, description=words.capitalize() + ".")
        each.add_argument("case", metavar="ID|FILE")
        _add_stage(each)
        _add_flags(each)
        each.set_defaults(run=_replay if name == "replay" else _shrink)
    listed = commands.add_parser("list", help="list the cases that were saved here, newest first")
    _add_flags(listed)
    listed.set_defaults(run=_list)
    report = commands.add_parser("report", help="name the newest page, and open it")
    report.add_argument("--open", action="store_true", help="in a browser")
    _add_flags(report)
    report.set_defaults(run=_report)


def _add_run(commands: Any) -> None:
    parser = commands.add_parser(
        "run",
        help="play a sample of cases",
        description="Play a sample of cases. Without --client it is `reattach` itself that is tried, without --target our "
        "reference server is what it is tried against. What is not valid is saved under .reattach/chaos/SEED/.",
    )
    _add_stage(parser)
    parser.add_argument(
        "--sample",
        choices=("quick", "full", "soak", "sim"),
        help="default: quick, with --mutant of a client what shows that one; sim: in memory",
    )
    parser.add_argument(
        "--faults", type=_words, default=(), metavar="F,…", help="only cases of these, such as fin,rst,stall"
    )
    parser.add_argument(
        "--positions", type=_words, default=(), metavar="P,…", help="only cases with a fault there, such as after-event"
    )
    parser.add_argument(
        "--only", nargs="+", default=[], metavar="ID", help="only these cases; the start of an id is enough"
    )
    parser.add_argument("--kill", action="store_true", help="kill the client, too, after each event that it shows")
    parser.add_argument(
        "--seed", type=_seed, default=_SEED, metavar="N", help="of all that is drawn (default: %(default)s)"
    )
    jobs = min(_MOST_JOBS, _JOBS_A_CPU * (os.cpu_count() or 1))
    parser.add_argument("--jobs", type=_count, default=jobs, metavar="N", help="cases at a time (default: %(default)s)")
    parser.add_argument(
        "--fail-fast", action="store_true", help="begin no more cases after the first that is not valid"
    )
    parser.add_argument(
        "--require-coverage", action="store_true", help="what was planned and never fired makes the run unknown"
    )
    parser.add_argument("--out", type=Path, metavar="DIR", help="write there instead of .reattach/chaos/SEED")
    parser.add_argument("--junit", type=Path, metavar="FILE", help="write JUnit XML, too")
    _add_flags(parser)
    parser.set_defaults(run=_run)


def _add_stage(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--target", default="", metavar="URL", help="a server that runs; its token: $REATTACH_TOKEN")
    parser.add_argument("--profile", choices=("native",), default="native", help="the server's dialect")
    parser.add_argument("--client", default="", metavar="CMD", help="the client under test: any command")
    parser.add_argument(
        "--mutant", default="", metavar="ID", help="a small client, or a server, that is wrong in one thing, to try us"
    )
    parser.add_argument(
        "--client-mode",
        choices=("follow", "start"),
        help="whether it starts the run (default: follow, with --mutant of a client what shows that one)",
    )
    parser.add_argument("--client-timeout", type=_seconds, metavar="S", help="until a client is ended (default: 30)")
    parser.add_argument(
        "--backend",
        choices=("auto", "embedded", "toxiproxy"),
        default="auto",
        help="which Toxiproxy cuts; auto: the real one where there is one, but for what the embedded one found (default)",
    )
    parser.add_argument("--toxiproxy", default="", metavar="URL", help="a Toxiproxy that runs")
    parser.add_argument(
        "--scenario", default="", metavar="S", help="a ready scenario or a file, instead of a session of three runs"
    )


def _add_flags(parser: argparse.ArgumentParser) -> None:
    # Given before the subcommand too: what was said there must not be taken back here.
    for names, words in (
        (("--json",), "JSON lines on stdout, people's text on stderr"),
        (("-q", "--quiet"), "no progress"),
        (("-v", "--verbose"), "taken, as all commands take it; there is nothing more to say"),
        (("--no-color",), "taken, as all commands take it; nothing is coloured"),
    ):
        parser.add_argument(*names, action="store_true", default=argparse.SUPPRESS, help=words)


def _words(text: str) -> tuple[str, ...]:
    return tuple(word for word in text.split(",") if word)


def _count(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and int(text) > 0):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 on")
    return int(text)


def _seed(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= 20 and int(text) <= _MOST_SEED):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0 to {_MOST_SEED}")
    return int(text)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 1.0 <= seconds <= 3_600.0:
        raise argparse.ArgumentTypeError(f"{text!r} is not from 1 to 3600 seconds")
    return seconds


def _run(args: argparse.Namespace) -> int:
    from reattach_chaos.cases import command

    return _with_options(args, command.run)


def _replay(args: argparse.Namespace) -> int:
    from reattach_chaos.cases import command

    return _with_options(args, lambda options: command.replay(args.case, options))


def _shrink(args: argparse.Namespace) -> int:
    from reattach_chaos.cases import command

    return _with_options(args, lambda options: command.shrink(args.case, options))


def _list(args: argparse.Namespace) -> int:
    from reattach_chaos.cases import command

    return command.listed(as_json=getattr(args, "json", False))


def _report(args: argparse.Namespace) -> int:
    from reattach_chaos.cases import command

    return command.report(show=args.open, as_json=getattr(args, "json", False))


def _with_options(args: argparse.Namespace, work: Any) -> int:
    import sys

    try:
        options = _options(args)
    except ValueError as error:
        sys.stderr.write(f"reattach chaos: {error}\n")
        return 64
    code: int = work(options)
    return code


def _options(args: argparse.Namespace) -> Options:
    """Return what the arguments mean.

    Raises:
        ValueError: Something named is not there; says which there are.
    """
    from reattach_chaos.cases.address import objection_to_url
    from reattach_chaos.cases.command import Options
    from reattach_chaos.cases.exposures import chosen
    from reattach_chaos.cases.sample import Wanted
    from reattach_chaos.cases.theatre import Bill
    from reattach_chaos.mutants import KILLED_BY
    from reattach_chaos.schedules import Fault, Place
    from reattach_mockserver.mutants.registry import SERVER_MUTANTS, UnknownMutant
    from reattach_mockserver.scenarios.dump import dump_script
    from reattach_mockserver.scenarios.parse import load_script
    from reattach_mockserver.scenarios.ready import READY

    if args.mutant and args.mutant not in {**KILLED_BY, **SERVER_MUTANTS}:
        raise UnknownMutant(args.mutant, clients=KILLED_BY, servers=SERVER_MUTANTS)
    wrong = args.mutant if args.mutant in SERVER_MUTANTS else ""
    if wrong and args.target:
        raise ValueError(f"--mutant {wrong} is a server of ours: leave --target out")
    if args.client and args.mutant and not wrong:
        raise ValueError(f"--mutant {args.mutant} is a client: leave --client out")
    if args.target and (why := objection_to_url(args.target)):
        raise ValueError(f"--target {args.target}: {why}")
    script: dict[str, Any] | None = None
    if args.scenario and args.scenario not in READY and not args.target:
        script = json.loads(
            dump_script(load_script(args.scenario))
        )  # a ScenarioError is a ValueError that names the place
    simulated = getattr(args, "sample", "") == "sim"
    others = ("sample", "faults", "positions", "only", "kill", "client", "target", "scenario")
    mutant = args.mutant if args.chaos == "run" else ""
    shown = chosen(mutant, others=any(getattr(args, flag, None) for flag in others))
    for flag in ("client", "target", "mutant", "scenario", "toxiproxy", "kill") if simulated else ():
        if getattr(args, flag):
            raise ValueError(
                f"--sample sim plays our client against the simulation's server: --{flag} has no place there"
            )
    seed = getattr(args, "seed", _SEED)
    bill = Bill(
        target=args.target.rstrip("/"),
        client=args.client,
        wrong=wrong or shown.wrong,
        mutant="" if wrong else args.mutant,
        mode=args.client_mode or shown.mode,
        scenario="" if script is not None else args.scenario or shown.scenario,
        script=script,
        heartbeat_ms=shown.heartbeat_ms,
        timeout_s=args.client_timeout or shown.timeout_s or _TIMEOUT_S,
        backend=args.backend,
        toxiproxy=args.toxiproxy,
        seed=seed,
        simulated=simulated,
    )
    quiet, as_json = getattr(args, "quiet", False), getattr(args, "json", False)
    if args.chaos != "run":
        return Options(bill=bill, quiet=quiet, as_json=as_json)
    wanted = Wanted(
        sample=args.sample or "quick",
        mutant=mutant if shown.cases else "",
        seed=seed,
        faults=tuple(_known(Fault, "--faults", word) for word in args.faults),
        places=tuple(_known(Place, "--positions", word) for word in args.positions),
        only=tuple(args.only),
        kill=args.kill,
    )
    return Options(
        bill=bill,
        wanted=wanted,
        jobs=args.jobs,
        fail_fast=args.fail_fast,
        require_coverage=args.require_coverage,
        out=args.out,
        junit=args.junit,
        as_json=as_json,
        quiet=quiet,
    )


def _known(words: Any, flag: str, word: str) -> Any:
    try:
        return words(word)
    except ValueError:
        raise ValueError(f"{flag} {word}: there is {', '.join(words)}") from None
