"""What a person, or a program, sees of a demo while it runs and at its end.

On a terminal the lanes are drawn again and again in place, with shorter bars where it is narrow; elsewhere a line comes when a
lane is done, and every few seconds for those that are not. With --json a program gets JSON lines on stdout, and the person's text
goes to stderr. The words and columns are the surface page's, section 2. Never here: a count of its own.
"""

import json
import os
import sys
import textwrap
import time
from collections.abc import Iterator
from typing import Any, TextIO

from reattach_chaos.demo.cuts import FAULTS
from reattach_chaos.demo.stage import Played
from reattach_chaos.demo.verdict import LABELS

BAR = 30
PLAIN_EVERY_S = 5.0
_BESIDE_BAR = 29  # columns of a lane without its bar and its note
_LEAST_BAR = 9
_NO_LIMIT = 10_000
_UP = "\x1b[{}A"
_ERASE = "\x1b[K"


class Screen:
    """One demo's output.

    Args:
        events: How many events are expected; 0 where that is not known.
        kills: How many kills are planned.
        quiet: No progress.
        as_json: JSON lines on stdout.
        color: Whether a terminal may be given colours.
    """

    def __init__(self, events: int, kills: int, *, quiet: bool, as_json: bool, color: bool) -> None:
        self._events = events
        self._kills = kills
        self._quiet = quiet
        self._as_json = as_json
        self._out: TextIO = sys.stderr if as_json else sys.stdout
        self._live = self._out.isatty() and not quiet
        self._color = color and self._out.isatty()
        self._drawn = 0
        self._done: set[str] = set()
        self._told_at = time.monotonic()
        self._told_json = ""

    def header(self, title: str, **facts: Any) -> None:
        """Say what begins."""
        self.fact("demo", **facts)
        if not self._quiet:
            self.line(title)

    def line(self, text: str, color: str = "") -> None:
        """Write one line; it stays."""
        self._drawn = 0
        if self._live:
            text = "\n".join(_folded(text, self._columns()))
        code = {"red": "31", "green": "32"}.get(color) if self._color else None
        self._out.write(f"\x1b[{code}m{text}\x1b[0m\n" if code else f"{text}\n")
        self._out.flush()

    def fact(self, kind: str, **facts: Any) -> None:
        """Write one JSON line, if a program listens."""
        if self._as_json:
            sys.stdout.write(json.dumps({"kind": kind, **facts}, ensure_ascii=False) + "\n")
            sys.stdout.flush()

    def progress(self, played: Played) -> None:
        """Show how far it is."""
        self._tell_json(played)
        if self._quiet:
            return
        columns = self._columns()
        rows = list(self._rows(played, min(BAR, max(_LEAST_BAR, columns - _BESIDE_BAR))))
        if self._live:
            self._out.write(_UP.format(self._drawn) if self._drawn else "")
            self._out.write("".join(f"{text[: columns - 1].rstrip()}{_ERASE}\n" for _, _, text in rows))
            self._out.flush()
            self._drawn = len(rows)
            return
        now = time.monotonic()
        late = now - self._told_at >= PLAIN_EVERY_S
        for name, done, text in rows:
            if name not in self._done and (done or late):
                self.line(text)
                self._told_at = now
            if done:
                self._done.add(name)

    def _tell_json(self, played: Played) -> None:
        fired = {fault: played.cuts.count(fault) for fault in FAULTS}
        facts = {"fired": fired, "lost_answers": played.cuts.lost_answers, "kills": played.kills}
        if (told := json.dumps(facts)) != self._told_json:
            self._told_json = told
            self.fact("progress", **facts)

    def _columns(self) -> int:
        """Return the terminal's width now; elsewhere there is no limit."""
        try:
            return os.get_terminal_size(self._out.fileno()).columns or _NO_LIMIT if self._live else _NO_LIMIT
        except (OSError, ValueError):
            return _NO_LIMIT

    def _rows(self, played: Played, width: int) -> Iterator[tuple[str, bool, str]]:
        """Yield name, whether it is done, and text of each lane, with a bar of this width."""
        cuts = played.cuts
        note = f"runs {played.ledger.runs}" if played.ledger.runs else "run created" if played.run_id else ""
        what = "answer lost, same key again" if cuts.lost_answers else "waiting"
        yield (
            "create",
            bool(cuts.lost_answers and played.run_id),
            _row("create", what, width, cuts.lost_answers, 1, note),
        )
        for fault in FAULTS:
            count, total = cuts.count(fault), max(self._events, len(played.log), cuts.count(fault))
            done = count >= total > 0
            latest = "" if done or not count else f"cut after {_short(cuts.latest[fault])}"
            yield fault, done, _row(LABELS[fault], _bar(count, total, width), width, count, total, latest)
        kills = played.kills
        bar = _bar(kills, self._kills, width)
        yield "kill", kills >= self._kills, _row("kill -9", bar, width, kills, self._kills, "")


def _row(name: str, middle: str, width: int, count: int, total: int, note: str) -> str:
    return f"  {name:<9}{middle[:width]:<{width}}{count:>10} / {total:<3}   {note}".rstrip()


def _bar(count: int, total: int, width: int) -> str:
    if not count:
        return "waiting" if total else "none"
    return "#" * (width if count >= total else min(width - 1, round(width * count / total)))


def _folded(text: str, columns: int) -> Iterator[str]:
    """Yield the line in pieces that fit, broken where three spaces part it, and between words only where a part is too long."""
    line, *parts = text.split("   ")
    lines = []
    for part in parts:
        if len(line) + 3 + len(part) < columns:
            line += f"   {part}"
        else:
            lines.append(line)
            line = f"  {part}"
    wrapper = textwrap.TextWrapper(columns - 1, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
    for each in [*lines, line]:
        yield from wrapper.wrap(each) or [""]


def _short(event_id: str) -> str:
    """Return a cursor as a person reads it: the number of the log's incarnation, the sequence."""
    epoch, _, sequence = event_id.rpartition(".")
    return f"e{epoch.rpartition('-')[2]}.{sequence}"
