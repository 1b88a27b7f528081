"""`failure`: what a person reads where a case failed: the anomaly, the records that cannot both be right, and how to repeat it."""

from __future__ import annotations

from pathlib import Path

from reattach_chaos.checkers import CaseVerdict
from reattach_chaos.history import History
from reattach_chaos.report.story import story


def failure(verdict: CaseVerdict, history: History, nodeid: str, seed: int, saved: Path) -> str:
    """Return the text; `saved` is the history's file."""
    lines: list[str] = []
    if verdict.broken:
        first = next(iter(verdict.broken.values()))
        lines.append(f"{first.anomaly}: {first.sentence}")
        for words, remark in story(first.witness, history):
            where = f"conn {words.conn}" if words.conn else words.who
            lines.append(f"  {where:<8} {words.what:<9} {words.of:<42} {remark}".rstrip())
    else:
        lines.append(f"inconclusive: {verdict.unknown[0].removeprefix('inconclusive: ')}")
    lines.append(f'again: pytest "{nodeid}" --reattach-seed {seed}')
    lines.append(f"history: {saved}")
    return "\n".join(lines)
