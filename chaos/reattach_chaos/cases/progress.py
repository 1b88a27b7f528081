"""The line that is written while cases are played: `cases 96/150 fired 96 invalid 1 unknown 0 23 s`, on stderr.

On a terminal it is written over itself, at most ten times a second; else a new line now and then, so that a build's log shows life.
"""

import time
from typing import TextIO

from reattach_chaos.report import Played

TERMINAL_S, LOG_S = 0.1, 10.0


class Progress:
    """Counts cases, and tells.

    Args:
        planned: So many are to be played.
        out: Where to; None tells nobody.
    """

    def __init__(self, planned: int, out: TextIO | None) -> None:
        self._planned = planned
        self._out = out
        self._over = out is not None and out.isatty()
        self._begun = time.monotonic()
        self._told = self._begun
        self._done = self._fired = self._invalid = self._unknown = 0

    @property
    def seconds(self) -> float:
        """Since the beginning."""
        return time.monotonic() - self._begun

    def played(self, case: Played) -> None:
        """Count a case."""
        self._done += 1
        self._fired += case.verdict.fired == case.verdict.planned
        self._invalid += case.verdict.word == "invalid"
        self._unknown += case.verdict.word == "unknown"
        now = time.monotonic()
        if now - self._told >= (TERMINAL_S if self._over else LOG_S):
            self._told = now
            self._write()

    def passed_over(self) -> None:
        """Count a case of which nothing was expected."""
        self._done += 1

    def line(self) -> str:
        """Return the line."""
        return (
            f"cases {self._done}/{self._planned} fired {self._fired} invalid {self._invalid} unknown {self._unknown} "
            f"{self.seconds:.0f} s"
        )

    def end(self) -> None:
        """Say how it stands at the end."""
        self._write()
        if self._over and self._out is not None:
            self._out.write("\n")
            self._out.flush()

    def _write(self) -> None:
        if self._out is not None:
            self._out.write(f"\r{self.line()}" if self._over else f"{self.line()}\n")
            self._out.flush()
