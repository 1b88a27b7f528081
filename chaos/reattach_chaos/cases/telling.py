"""What `reattach chaos` says of what it played: text for people on stdout; with `--json` lines there, and the text on stderr."""

import json
import sys
from typing import Any

from reattach_chaos.checkers import EXIT_CODES
from reattach_chaos.report import Played, Suite, as_text
from reattach_chaos.schedules import to_json


def tell(suite: Suite, page: str, *, as_json: bool) -> None:
    """Say the verdict of a run, and what there is to note."""
    text = as_text(suite, page)
    if not as_json:
        out(text)
        for note in suite.notes:
            err(note)
        return
    err(text)
    verdict = suite.verdict
    facts = {
        "kind": "verdict",
        "verdict": verdict.word,
        "sentence": verdict.sentence(),
        "cases": len(suite.played),
        "fired": suite.all_fired(),
        **{word: verdict.count(word) for word in ("valid", "invalid", "unknown")},
        "seed": suite.seed,
        "backend": suite.backend,
        "seconds": round(suite.seconds, 1),
        "page": page,
        "again": suite.again,
        "notes": list(suite.notes),
        "exit": verdict.exit_code,
    }
    out(json.dumps(facts))


def tell_shrunk(case: Played, text: str, *, as_json: bool) -> int:
    """Say what was found, with `--json` as a line of stdout; return the exit code."""
    code = EXIT_CODES[case.verdict.word]
    if not as_json:
        out(text)
        return code
    err(text)
    facts = {"kind": "shrunk", "schedule": to_json(case.schedule), "file": case.file, "exit": code}
    out(json.dumps({**case_line(case), **facts}))
    return code


def case_line(case: Played) -> dict[str, Any]:
    """Return one case as `--json` tells it."""
    verdict = case.verdict
    return {
        "kind": "case",
        "id": case.id,
        "verdict": verdict.word,
        "sentence": verdict.sentence(),
        "planned": verdict.planned,
        "fired": verdict.fired,
    }


def out(text: str) -> None:
    """Say a line on stdout, now."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def err(text: str) -> None:
    """Say a line on stderr, now."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()
