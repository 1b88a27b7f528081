"""The last lines of a demo: the anomaly first, the counts last. Text only; the verdict is made elsewhere."""

from collections import Counter
from pathlib import Path
from typing import Any

from reattach_chaos.demo.judge import SETTLING
from reattach_chaos.demo.showing import Logged, Showing
from reattach_chaos.demo.stage import Played
from reattach_chaos.demo.verdict import LABELS, Verdict

MOST = 8  # anomalies that are told one by one


def good_lines(verdict: Verdict, recording: str | None) -> list[str]:
    """Return the lines of a good end, but for the last."""
    marked = ", all marked" if verdict.again else ""
    source = f" of {recording}" if recording else ""
    return [
        *_counts(verdict, marked),
        f"shown = log, byte for byte, {verdict.events} events{source}   {verdict.seconds:.1f} s",
    ]


def bad_lines(verdict: Verdict, played: Played, kept: Path, *, naive: bool) -> list[str]:
    """Return the lines of an end that is not good, but for the last: what is wrong first."""
    lines: list[str] = []
    if verdict.anomalies:
        first = verdict.anomalies[0]
        lines.append(f"FAILED: {first.kind}. {_who(first.who)}: {first.message}.")
        told = Counter((each.who, each.kind) for each in verdict.anomalies)
        lines += [f"  {who}: {count} {kind}" for (who, kind), count in list(told.items())[:MOST]]
        if naive:
            lines += ["what a user would have lost with this client:", *map(str.rstrip, _losses(played))]
    else:
        lines.append(f"NOT KNOWN: {verdict.unknown[0]}.")
        lines += [f"  {reason}" for reason in verdict.unknown[1 : MOST + 1]]
    return [*lines, *_counts(verdict, ""), f"{verdict.events} events   {verdict.seconds:.1f} s   kept: {kept}"]


def last_line(verdict: Verdict) -> str:
    """Return the last line."""
    counts = "  ".join(f"{kind} {verdict.count(kind)}" for kind in ("lost", "duplicated", "reordered"))
    return f"{counts}  runs {verdict.runs}"


def facts(verdict: Verdict, kept: Path | None) -> dict[str, Any]:
    """Return the verdict for a program."""
    return {
        "verdict": {0: "good", 1: "bad"}.get(verdict.exit_code, "unknown"),
        "exit": verdict.exit_code,
        **{kind: verdict.count(kind) for kind in ("lost", "duplicated", "reordered", "changed", "foreign")},
        "runs": verdict.runs,
        "events": verdict.events,
        "planned": verdict.planned,
        "fired": verdict.fired,
        "during_replay": verdict.during_replay,
        "connections": verdict.connections,
        "kills": verdict.kills,
        "shown_again": verdict.again,
        "creates": verdict.creates,
        "tool_calls": verdict.tool_calls,
        "side_effects": verdict.effects,
        "seconds": round(verdict.seconds, 3),
        "unknown": list(verdict.unknown),
        "kept": str(kept) if kept else None,
    }


def _counts(verdict: Verdict, marked: str) -> list[str]:
    return [
        f"cuts planned {verdict.planned}, fired {verdict.fired} ({verdict.during_replay} during a replay)"
        f"   connections {verdict.connections}",
        f"client killed {verdict.kills} times, {_events(verdict.again)} shown again{marked}   creates {verdict.creates}, "
        f"runs {verdict.runs}   tool calls {verdict.tool_calls}, side effects {verdict.effects}",
    ]


def _losses(played: Played) -> list[str]:
    lines = []
    for showing in played.showings:
        lost, twice = _lost(played.log, showing), _repeats(showing)
        if not lost and not twice:
            continue
        parts = [f"showed {len({shown.id for shown in showing.shown})} of {_events(len(played.log))}"]
        if lost:
            parts.append(f"{len(lost)} lost, the first is event {lost[0].sequence} ({lost[0].type})")
            calls = sum(event.type == "tool.result" for event in lost)
            parts += [f"{calls} tool results never shown"] * bool(calls)
            parts += ["nor how it ended"] * any(event.type in SETTLING for event in lost)
        if twice:
            parts.append(f"{_events(twice)} shown twice after a restart")
        lines.append(f"  {showing.who:<9}{'; '.join(parts)}")
    if played.ledger.runs > 1:
        doubled = len(played.ledger.effects)
        lines.append(
            f"  {'create':<9}started {played.ledger.runs} runs of the same work; {doubled} side effects in all"
        )
    return lines


def _lost(log: list[Logged], showing: Showing) -> list[Logged]:
    seen = {shown.id for shown in showing.shown}
    return [event for event in log if event.id not in seen]


def _repeats(showing: Showing) -> int:
    return sum(count > 1 for count in Counter(shown.id for shown in showing.shown).values())


def _who(who: str) -> str:
    return f"{who} follower" if who.split()[0] in {*LABELS.values(), "kill"} else who


def _events(count: int) -> str:
    return "1 event" if count == 1 else f"{count} events"
