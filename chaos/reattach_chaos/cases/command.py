"""`reattach chaos run | replay | shrink | list | report`: from the arguments to the exit code.

Exit codes are the surface page's: 0 valid, 1 invalid, 3 unknown or infrastructure, 64 wrong arguments, 130 and 143 where somebody
ended it.
"""

import asyncio
import json
import shlex
import signal
import sys
import time
import webbrowser
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from reattach_chaos.cases.batch import batch
from reattach_chaos.cases.bytewise import every_byte
from reattach_chaos.cases.errands import objection_to
from reattach_chaos.cases.exposures import EXPOSURES
from reattach_chaos.cases.folder import Folder, NoSuchCase, Saved, find, newest_page, of_seed, read_all
from reattach_chaos.cases.listing import as_facts, as_listing
from reattach_chaos.cases.not_found import not_found
from reattach_chaos.cases.player import Player
from reattach_chaos.cases.progress import Progress
from reattach_chaos.cases.recipe import SESSION, bill_of, played_with
from reattach_chaos.cases.results import NowhereToSave, Results
from reattach_chaos.cases.sample import Wanted, choose
from reattach_chaos.cases.second_opinion import second_opinion
from reattach_chaos.cases.servers.control import ServerTrouble
from reattach_chaos.cases.telling import case_line, err, out, tell, tell_shrunk
from reattach_chaos.cases.theatre import Bill, Theatre, theatre
from reattach_chaos.checkers import NOTHING_PLAYED, Coverage, RunVerdict, Tally, coverage
from reattach_chaos.demo.child import ChildFailed
from reattach_chaos.history import Delivered, Exited, History
from reattach_chaos.report import Played, Suite, last_line
from reattach_chaos.schedules import Schedule, ScheduleError, Shrinking, dumps
from reattach_chaos.toxiproxy.control import ToxiproxyError
from reattach_mockserver.scenarios.errors import ScenarioError

NOT_KNOWN, USAGE, INTERRUPTED, TERMINATED = 3, 64, 130, 143
SHRINK_TRIES = 100
HISTORIES = 100
"""So many of the cases that are not valid are kept with all that was seen; the report leads with one of the first."""
SHRUNK = ("soak", "sim")
"""The samples whose first failing case is shrunk unasked: nobody wrote it."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The arguments of `chaos run`.

    Attributes:
        bill: What is put on.
        wanted: Which cases.
        jobs: So many at a time.
        fail_fast: Stop after the first that is not valid.
        require_coverage: What never fired makes the run unknown.
        out: The folder, in place of the seed's.
        junit: A file for build servers.
        as_json: JSON lines on stdout.
        quiet: No progress.
    """

    bill: Bill
    wanted: Wanted = field(default_factory=Wanted)
    jobs: int = 8
    fail_fast: bool = False
    require_coverage: bool = False
    out: Path | None = None
    junit: Path | None = None
    as_json: bool = False
    quiet: bool = False


def run(options: Options) -> int:
    """Play a sample; return the exit code."""
    return _guarded(lambda: _run(options))


def replay(word: str, options: Options) -> int:
    """Play a saved case again; return the exit code."""

    def again() -> Coroutine[Any, Any, int]:
        found = find(word)
        return _replay(found, word, replace(options, bill=bill_of(found.schedule, options.bill)))

    return _guarded(again)


def shrink(word: str, options: Options) -> int:
    """Find a smaller schedule that still fails in the same way; return the exit code."""

    def again() -> Coroutine[Any, Any, int]:
        found = find(word)
        return _shrink(found, replace(options, bill=bill_of(found.schedule, options.bill)))

    return _guarded(again)


def listed(*, as_json: bool) -> int:
    """Show the saved cases, newest first."""
    found, damaged = read_all()
    for why in damaged:
        err(f"passed over: {why}")
    if as_json:
        for each in found:
            out(json.dumps(as_facts(each)))
    else:
        out(as_listing(found) or "no case is saved here; reattach chaos run saves those that are not valid")
    return 0


def report(*, show: bool, as_json: bool = False) -> int:
    """Name the newest page, and open it where that is wanted."""
    page = newest_page()
    if page is None:
        err("there is no page here; reattach chaos run writes one")
        return NOT_KNOWN
    out(json.dumps({"kind": "page", "page": str(page)}) if as_json else str(page))
    if show and not webbrowser.open(page.absolute().as_uri()):
        err("no browser could be opened")
        return NOT_KNOWN
    return 0


async def _run(options: Options) -> int:
    began = time.strftime("%Y-%m-%d %H:%M:%S")
    results = Results(Folder(options.out) if options.out else of_seed(options.bill.seed), options.junit)
    if why := results.objection():
        raise NowhereToSave(why)
    async with theatre(options.bill) as stage:
        bill, scenario = options.bill, options.bill.scenario or SESSION
        cuts = await every_byte(stage, bill, scenario) if options.wanted.sample == "full" else None
        chosen = choose(options.wanted, stage.session, stage.client, bill.mode, scenario, cuts, own=not bill.target)
        if bill.client and chosen.schedules:
            await _shows_something(stage, bill, scenario)
        told = [played_with(each, stage.client.name, options.bill, stage.backend) for each in chosen.schedules]
        progress = Progress(len(told), None if options.quiet else sys.stderr)
        tally, kept = Tally(), Counter[str]()

        def done(case: Played) -> Played | None:
            drawn = options.bill.simulated or options.wanted.sample == "soak"
            word, idle = case.verdict.word, drawn and _came_to_nothing(case)
            tally.add(case.history)
            if idle:
                kept["idle"] += 1
                progress.passed_over()
                return None
            progress.played(case)
            if options.as_json:
                out(json.dumps(case_line(case)))
            if word != "valid":
                case = results.save(case)
                kept[word] += 1
            return case if 0 < kept[word] <= HISTORIES else replace(case, history=History([]))

        played = await batch(told, stage.player.play, done, jobs=options.jobs, fail_fast=options.fail_fast)
        progress.end()
        notes = [*_own_sample(options), *chosen.notes()]
        if kept["idle"]:
            notes.append(f"{kept['idle']} cases that were drawn are not counted: not all of their faults came.")
        failing = next((case for case in played if case.verdict.word == "invalid"), None)
        if failing is not None and options.wanted.sample in SHRUNK:
            smallest = results.save(await _smallest(failing, stage, options))
            notes.append(f"{failing.id} fails with less, too: {_again(smallest.file or smallest.id)}")
        if options.wanted.sample == "full" and cuts is None:
            notes.append("The cuts at every byte are left out: a client that starts its run never gets the same bytes.")
        if played and not kept["invalid"]:
            notes += not_found(options.bill, options.wanted)
        suite = _suite(
            tuple(played), tally.coverage(), options, stage, progress.seconds, began, len(told) - kept["idle"], notes
        )
    tell(suite, results.report(suite), as_json=options.as_json)
    for each in results.lost():
        err(f"reattach chaos: {each}")
    return suite.verdict.exit_code


async def _shows_something(stage: Theatre, bill: Bill, scenario: str) -> None:
    """Try a command once without a fault: one that cannot be started, or knows nothing of the contract, would lose all everywhere.

    Raises:
        ServerTrouble: It shows nothing.
    """
    assert isinstance(stage.player, Player)
    case, _ = await stage.player.clean(Schedule(id="no-fault", seed=bill.seed, scenario=scenario))
    if case.history.of(Delivered):
        return
    code = next((str(each.code) for each in case.history.of(Exited)), "none: it was ended")
    words = last_line(case.stderr)
    raise ServerTrouble(
        f"the client `{bill.client}` shows nothing, even without a fault. Exit code: {code}. Stderr: {words or 'empty'}. "
        "It has to say a line of JSON for each event that it shows; examples/clients has four"
    )


async def _replay(found: Saved, word: str, options: Options) -> int:
    began = time.strftime("%Y-%m-%d %H:%M:%S")
    begun = time.monotonic()
    seen = await asyncio.to_thread(found.history)
    async with theatre(options.bill) as stage:
        _check(found.schedule, stage, options)
        case = await stage.player.play(played_with(found.schedule, stage.client.name, options.bill, stage.backend))
        notes = [told] if (told := second_opinion(found, seen, case, stage.backend)) else []
        suite = _suite((case,), coverage([case.history]), options, stage, time.monotonic() - begun, began, 1, notes)
        suite = replace(suite, again=_again(word) if case.verdict.word != "valid" else "")
    tell(suite, "", as_json=options.as_json)
    return suite.verdict.exit_code


async def _shrink(found: Saved, options: Options) -> int:
    """Play smaller and smaller schedules."""
    async with theatre(options.bill) as stage:
        _check(found.schedule, stage, options)
        case = await stage.player.play(played_with(found.schedule, stage.client.name, options.bill, stage.backend))
        if not case.verdict.broken:
            return tell_shrunk(case, f"it does not fail any more: {case.verdict.sentence()}", as_json=options.as_json)
        smallest = await _smallest(case, stage, options)
    results = Results(Folder(found.path.parent))
    kept = results.save(smallest)
    again = f"again: {_again(kept.file)}" if kept.file else "that is its schedule: it is nowhere else"
    code = tell_shrunk(kept, f"{kept.verdict.sentence()}\n{dumps(kept.schedule)}{again}", as_json=options.as_json)
    for each in results.lost():
        err(f"reattach chaos: {each}")
    return code


async def _smallest(case: Played, stage: Theatre, options: Options) -> Played:
    """Return the smallest case that was found to break the same law."""
    law = next(iter(case.verdict.broken))
    smallest = case
    search = Shrinking(case.schedule)
    playable = (schedule for schedule in search if not _objection(schedule, stage, options))
    for schedule in islice(playable, SHRINK_TRIES):
        tried = await stage.player.play(schedule)
        if not options.quiet:
            err(f"{tried.verdict.word:8} {schedule.id}")
        if law in tried.verdict.broken:
            smallest = tried
            search.failed(schedule)
    return smallest


def _own_sample(options: Options) -> list[str]:
    """Say that only what shows a mutant is played, and how."""
    if not options.wanted.mutant:
        return []
    words = EXPOSURES[options.wanted.mutant].words()
    special = f" ({words})" if words else ""
    return [f"Only what shows the mutant {options.wanted.mutant} is played{special}; for other cases name a --sample."]


def _came_to_nothing(case: Played) -> bool:
    """Whether all that is not known of a case is what a fault would have shown that did not come.

    Or there is no run to know of, since its create was refused for good, as a client may take it.
    """
    verdict = case.verdict
    if verdict.word != "unknown" or verdict.trouble:
        return False
    missed = verdict.fired < verdict.planned or NOTHING_PLAYED in verdict.unknown
    return missed and all(reason.startswith(("inconclusive", NOTHING_PLAYED)) for reason in verdict.unknown)


def _objection(schedule: Schedule, stage: Theatre, options: Options) -> str:
    if options.bill.simulated:
        return ""
    return objection_to(
        schedule, stage.session, stage.client, options.bill.mode, kill=True, own=not options.bill.target
    )


def _check(schedule: Schedule, stage: Theatre, options: Options) -> None:
    if why := _objection(schedule, stage, options):
        raise NoSuchCase(f"case {schedule.id} cannot be played: {why}")


def _suite(
    played: tuple[Played, ...],
    seen: Coverage,
    options: Options,
    stage: Theatre,
    seconds: float,
    began: str,
    planned: int,
    notes: Sequence[str],
) -> Suite:
    verdict = RunVerdict(
        cases=tuple(case.verdict for case in played),
        coverage=seen,
        require_coverage=options.require_coverage,
    )
    leading = verdict.first
    file = next((case.file for case in played if leading is not None and case.id == leading.case), "")
    word = "" if leading is None or not file else (file if options.out else leading.case)
    return Suite(
        verdict=verdict,
        played=played,
        planned=planned,
        target=_target(options.bill),
        client=stage.client.name,
        backend=stage.backend,
        sample="mutant" if options.wanted.mutant else options.wanted.sample,
        seed=options.bill.seed,
        seconds=seconds,
        began=began,
        versions={"reattach": version("reattach")},
        again=_again(word) if word else "",
        notes=tuple(notes),
    )


def _target(bill: Bill) -> str:
    """Name the server to a person."""
    if bill.wrong:
        return f"mutant {bill.wrong}"
    return bill.target or ("the simulation's" if bill.simulated else "reference server")


def _again(word: str) -> str:
    return f"reattach chaos replay {shlex.quote(word)}"


def _guarded(work: Callable[[], Coroutine[Any, Any, int]]) -> int:
    """Do it; say what stopped it."""
    try:
        return asyncio.run(_until_term(work()))
    except KeyboardInterrupt:
        err("reattach chaos: interrupted, everything that it had started is ended")
        return INTERRUPTED
    except asyncio.CancelledError:
        return TERMINATED
    except (NoSuchCase, NowhereToSave, ScheduleError, ScenarioError) as error:
        err(f"reattach chaos: {error}")
        return USAGE
    except (ChildFailed, ServerTrouble, ToxiproxyError, OSError) as error:
        err(f"UNKNOWN. Nothing could be played: {error}")
        return NOT_KNOWN


async def _until_term(work: Coroutine[Any, Any, T]) -> T:
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    return await work
