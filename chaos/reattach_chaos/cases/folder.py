"""`.reattach/chaos/SEED/`: what a run of cases leaves behind: the page, the JSON, and each case that was not valid.

`ID.json` is the schedule, `ID.history.jsonl` what was seen, `ID.stderr` the last that the client wrote there. The folder ignores
itself in git. Nothing here is ever removed but what has the same name.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from reattach_chaos.history import History, HistoryError, read_history, write_history
from reattach_chaos.report import Played, Suite, as_json, as_page
from reattach_chaos.schedules import Schedule, ScheduleError, dumps, loads

HOME = Path(".reattach")
PAGE, FACTS = "index.html", "report.json"
_HISTORY = ".history.jsonl"
ESCAPED = "backslashreplace"
"""What UTF-8 cannot hold (half a surrogate pair) is written as its escape, which is JSON."""
STDERR = ".stderr"


class NoSuchCase(Exception):
    """No saved case, or more than one, is meant; says which there are."""


@dataclass(frozen=True, slots=True)
class Saved:
    """A saved case."""

    path: Path
    schedule: Schedule

    def history(self) -> History | None:
        """Return what was seen when it was saved; None where that file is gone, or cannot be read."""
        try:
            return read_history(self.path.with_name(f"{self.path.stem}{_HISTORY}"))
        except (OSError, HistoryError):
            return None


class Folder:
    """The folder of one run.

    Args:
        path: It; made with the first file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def save(self, played: Played) -> Played:
        """Write a case; return it with the name of its file."""
        self._make()
        path = self.path / f"{played.id}.json"
        with whole(path):
            path.write_text(dumps(played.schedule), encoding="utf-8", errors=ESCAPED)
        with whole(self.path / f"{played.id}{_HISTORY}") as history:
            write_history(history, played.history)
        if played.stderr:
            path.with_name(f"{played.id}{STDERR}").write_text(played.stderr, encoding="utf-8")
        return replace(played, file=str(path))

    def report(self, suite: Suite) -> Path:
        """Write the page and the JSON; return the page's path."""
        self._make()
        page = self.path / PAGE
        with whole(page):
            page.write_text(as_page(suite), encoding="utf-8", errors=ESCAPED)
        facts = json.dumps(as_json(suite), ensure_ascii=False, indent=1)
        with whole(self.path / FACTS) as path:
            path.write_text(facts + "\n", encoding="utf-8", errors=ESCAPED)
        return page

    def _make(self) -> None:
        ignored(self.path)


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """Write a file, all of it or none: what a full disk has left of it would be read as the whole."""
    try:
        yield path
    except OSError:
        with suppress(OSError):
            path.unlink()
        raise


def ignored(path: Path) -> Path:
    """Make a folder and return it; where it is under `.reattach`, that ignores itself in git."""
    path.mkdir(parents=True, exist_ok=True)
    for parent in (path, *path.parents):
        if parent.name == HOME.name:
            ignore = parent / ".gitignore"
            if not ignore.exists():
                ignore.write_text("*\n", encoding="utf-8")
            break
    return path


def of_seed(seed: int, home: Path = HOME) -> Folder:
    """Return the folder of a run with this seed."""
    return Folder(home / "chaos" / str(seed))


def saved(home: Path = HOME) -> list[Saved]:
    """Return all saved cases, the newest first; what is no schedule is passed over."""
    return read_all(home)[0]


def read_all(home: Path = HOME) -> tuple[list[Saved], list[str]]:
    """Return all saved cases, the newest first, and of each file that was passed over why it is no schedule."""
    found: list[tuple[float, Saved]] = []
    damaged: list[str] = []
    for path in sorted((home / "chaos").glob("*/*.json")):
        if path.name == FACTS:
            continue
        try:
            found.append((path.stat().st_mtime, Saved(path, loads(path.read_bytes()))))
        except (OSError, ScheduleError) as error:
            damaged.append(f"{path}: {error}")
    return [each for _, each in sorted(found, key=lambda pair: (-pair[0], str(pair[1].path)))], damaged


def find(word: str, home: Path = HOME) -> Saved:
    """Return the case that is meant: a file, a saved case's id, or the only one that begins so. Of equal ids the newest.

    Raises:
        NoSuchCase: None is meant, or more than one.
    """
    path = Path(word)
    if _is_file(path):
        try:
            return Saved(path, loads(path.read_bytes()))
        except (OSError, ScheduleError) as error:
            raise NoSuchCase(f"{word}: {error}") from error
    known = saved(home)
    for exact in known:
        if exact.schedule.id == word:
            return exact
    starting = {each.schedule.id: each for each in reversed(known) if each.schedule.id.startswith(word)}
    if len(starting) == 1:
        return next(iter(starting.values()))
    if starting:
        raise NoSuchCase(f"{word!r} is the start of {len(starting)} cases: {', '.join(sorted(starting)[:5])}")
    raise NoSuchCase(f"there is no file and no saved case {word!r}; reattach chaos list names those there are")


def _is_file(path: Path) -> bool:
    """Whether it is one; what no file can be called is none."""
    try:
        return path.is_file()
    except (OSError, ValueError):  # a name that is too long, or with a NUL
        return False


def newest_page(home: Path = HOME) -> Path | None:
    """Return the page that was written last; None where there is none."""
    pages = list((home / "chaos").glob(f"*/{PAGE}"))
    return max(pages, key=lambda page: page.stat().st_mtime, default=None)
