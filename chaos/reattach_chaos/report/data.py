"""A run of cases as JSON: for programs, and what the page carries inside it."""

from collections.abc import Iterable
from typing import Any

from reattach_chaos import history as records
from reattach_chaos import schedules
from reattach_chaos.checkers import Invalid, Ruling, Unknown
from reattach_chaos.report.suite import Played, Suite

VERSION = "chaos-report/1"


def as_json(suite: Suite, histories: Iterable[str] = ()) -> dict[str, Any]:
    """Return the run as plain JSON values.

    Args:
        suite: The run.
        histories: The ids of the cases whose history is to be in it, beside that of the leading case.
    """
    leading = {suite.first.id} if suite.first is not None else set()
    with_history = leading | set(histories)
    planned, fired = suite.verdict.coverage, suite.fired()
    return {
        "reattach": VERSION,
        "verdict": suite.verdict.word,
        "sentence": suite.verdict.sentence(),
        "target": suite.target,
        "client": suite.client,
        "backend": suite.backend,
        "sample": suite.sample,
        "seed": suite.seed,
        "seconds": round(suite.seconds, 1),
        "began": suite.began,
        "versions": dict(suite.versions),
        "again": suite.again,
        "notes": list(suite.notes),
        "counts": {
            "planned": max(suite.planned, len(suite.played)),
            "played": len(suite.played),
            "faults_planned": fired[1],
            "faults_fired": fired[0],
            **{word: suite.verdict.count(word) for word in ("valid", "invalid", "unknown")},
        },
        "coverage": {
            "fired": {axis: dict(words) for axis, words in planned.fired.items()},
            "missing": {axis: list(words) for axis, words in planned.missing.items()},
        },
        "cases": [_case(each, each.id in with_history) for each in suite.played],
    }


def _case(played: Played, with_history: bool) -> dict[str, Any]:
    verdict = played.verdict
    told: dict[str, Any] = {
        "id": played.id,
        "verdict": verdict.word,
        "sentence": verdict.sentence(),
        "file": played.file,
        "schedule": schedules.to_json(played.schedule),
        "planned": verdict.planned,
        "fired": verdict.fired,
        "laws": {law: _ruling(ruling) for law, ruling in verdict.rulings.items()},
    }
    if verdict.trouble:
        told["trouble"] = verdict.trouble
    if with_history:
        told["history"] = [records.to_json(record) for record in played.history]
    return told


def _ruling(ruling: Ruling) -> dict[str, Any]:
    match ruling:
        case Invalid():
            return {
                "verdict": "invalid",
                "anomaly": ruling.anomaly,
                "sentence": ruling.sentence,
                "count": ruling.count,
                "witness": [record.n for record in ruling.witness],
            }
        case Unknown():
            return {"verdict": "unknown", "reason": ruling.reason}
        case _:
            return {"verdict": "valid", "compared": ruling.compared}
