"""The saved cases as `reattach chaos list` shows them: what was found, in whom, against what. Text and facts; nothing is played."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from reattach_chaos.cases.folder import Saved
from reattach_chaos.checkers import judge


def as_facts(case: Saved) -> dict[str, Any]:
    """Return a case as `--json` has it; verdict and anomaly are "" where what was seen is gone."""
    verdict, anomaly = _found(case)
    client, server = _who(case)
    return {
        "kind": "case",
        "id": case.schedule.id,
        "file": str(case.path),
        "verdict": verdict,
        "anomaly": anomaly,
        "client": client,
        "server": server,
    }


def as_listing(cases: Sequence[Saved]) -> str:
    """Return the cases for a person, a line each, in the order in which they come; a folder's name stands once over its cases."""
    return "\n".join(_lines(cases))


def _lines(cases: Sequence[Saved]) -> Iterator[str]:
    rows = [(case.path.parent, [*_found(case), case.schedule.id, *_who(case)]) for case in cases]
    widths = [max((len(cells[column]) for _, cells in rows), default=0) for column in range(4)]
    for folder, group in groupby(rows, key=lambda each: each[0]):
        yield str(folder)
        for _, (verdict, anomaly, name, client, server) in group:
            cells = zip((verdict or "?", anomaly, name, f"client {client}"), (*widths[:3], widths[3] + 7), strict=True)
            yield f"  {'  '.join(cell.ljust(width) for cell, width in cells)}  server {server}"


def _found(case: Saved) -> tuple[str, str]:
    """Return verdict and anomaly, from what was seen; "" where that is gone."""
    history = case.history()
    if history is None:
        return "", ""
    verdict = judge(history)
    if verdict.word == "valid":  # no valid case is saved: what was wrong with it was outside of what was seen
        return "unknown", ""
    return verdict.word, next((broken.anomaly for broken in verdict.broken.values()), "")


def _who(case: Saved) -> tuple[str, str]:
    """Return client and server, as they were named."""
    server = case.schedule.server
    wrong = server.get("mutant")
    return str(case.schedule.client.get("client", "reattach")), (
        f"mutant {wrong}" if wrong else str(server.get("target", "reference"))
    )
