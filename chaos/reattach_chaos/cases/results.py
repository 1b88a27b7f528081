"""`Results`: what a run leaves on the disk, which may be full or not ours: a verdict is told all the same.

What can be known before the first case (`objection`) is said before it. What fails later is kept as `lost`, for who tells the
verdict first. What is written by half is taken away: a torn page or history would be read as a whole one.

Never here: what is in the files (`folder.py`, `reattach_chaos.report`).
"""

import os
from pathlib import Path

from reattach_chaos.cases.folder import Folder, whole
from reattach_chaos.report import Played, Suite, as_junit

MOST_TOLD = 3


class NowhereToSave(Exception):
    """It is known before the first case that nothing could be saved; says why."""


class Results:
    """The files of one run.

    Args:
        folder: Of its cases and its page.
        junit: A file for build servers; None: none is wanted.
    """

    def __init__(self, folder: Folder, junit: Path | None = None) -> None:
        self._folder = folder
        self._junit = junit
        self._lost: list[str] = []

    def objection(self) -> str:
        """Return why nothing could be saved there, "" where nothing is known against it. Writes nothing."""
        near = next(each for each in (self._folder.path, *self._folder.path.absolute().parents) if each.exists())
        if not near.is_dir():
            return f"{near} is a file: the cases cannot be saved in {self._folder.path}"
        if not os.access(near, os.W_OK | os.X_OK):
            return f"{near} is not ours to write to: the cases cannot be saved in {self._folder.path}"
        if self._junit is None:
            return ""
        if self._junit.is_dir():
            return f"--junit {self._junit} is a folder"
        if not self._junit.absolute().parent.is_dir():
            return f"--junit {self._junit}: there is no folder {self._junit.parent}"
        known = self._junit if self._junit.exists() else self._junit.absolute().parent
        return "" if os.access(known, os.W_OK) else f"--junit {self._junit}: {known} is not ours to write to"

    def save(self, played: Played) -> Played:
        """Write a case; return it, with the name of its file where that was written."""
        try:
            return self._folder.save(played)
        except OSError as error:
            self._lose(f"case {played.id}", error)
            return played

    def report(self, suite: Suite) -> str:
        """Write the page, the JSON and the JUnit file; return the page's path, "" where there is none."""
        page = ""
        try:
            page = str(self._folder.report(suite))
        except OSError as error:
            self._lose("the page", error)
        if self._junit is not None:
            try:
                with whole(self._junit):
                    self._junit.write_text(as_junit(suite), encoding="utf-8")
            except OSError as error:
                self._lose("the JUnit file", error)
        return page

    def lost(self) -> list[str]:
        """Return what could not be written, and why; of much the first."""
        more = len(self._lost) - MOST_TOLD
        return self._lost[:MOST_TOLD] + ([f"and {more} more could not be written"] if more > 0 else [])

    def _lose(self, what: str, error: OSError) -> None:
        self._lost.append(f"{what} could not be written: {error}")
