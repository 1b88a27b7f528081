"""A client's life on a failing disk: it follows a run, shows each event, and goes on after an error as a program would."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import reattach
from disk_faults import Fault

TRIES = 5


def life(url: str, kind: str, place: Path):
    """Return it: follows the run "words" to its end; an error of the journal is told, and then the same is done again."""

    def live(told: Callable[[str], None], again: Callable[[], bool]) -> None:
        for _ in range(TRIES):
            try:
                with reattach.Client(url, path(kind, place)) as client:
                    for _ in range(TRIES):
                        try:
                            follow(client, place, told)
                            return
                        except reattach.errors.StoreError as error:
                            told(f"error {type(error).__name__}: {error}")
                            if not again():
                                return
            except reattach.errors.StoreError as error:  # from opening the journal
                told(f"error {type(error).__name__}: {error}")
                if not again():
                    return
        raise AssertionError("it did not come to its end")

    return live


def follow(client: reattach.Client, place: Path, told: Callable[[str], None]) -> None:
    run = client.start({"scenario": "words"}, key=key(place))
    told(f"run {run.id}")
    for event in run:
        told(f"shown {event.sequence} {int(event.redelivered)}")
    told(f"result {run.result()}")


def path(kind: str, place: Path) -> Path:
    return place / ("runs.db" if kind == "sqlite" else "runs.jsonl")


def key(place: Path) -> str:
    return re.sub(r"[^!-~]", "-", "-".join(place.parts[-2:]))[:200]


def look(url: str, kind: str, place: Path):
    """Return the check: nothing skipped, nothing twice unmarked, the errors typed, one run, and a new start ends it all."""

    def check(told: list[str], fault: Fault) -> None:
        for line in told:
            if line.startswith("error"):
                assert line.startswith("error CommitFailed"), line
        later: list[str] = []
        with reattach.Client(url, path(kind, place)) as client:
            follow(client, place, later.append)
        assert len({line for line in told + later if line.startswith("run ")}) == 1, "a second run"
        shown = [tuple(map(int, line.split()[1:])) for line in told + later if line.startswith("shown")]
        at = 0
        for sequence, again in shown:
            assert sequence <= at + 1, f"{at + 1} was skipped: {shown}"
            assert sequence == at + 1 or again, f"{sequence} came again unmarked: {shown}"
            at = max(at, sequence)
        assert at == 13, shown
        repeats = sum(sequence != number for number, (sequence, _) in enumerate(shown, 1))
        assert repeats == 0 or fault.kills or told[-1].startswith("error"), shown
        assert "result {'ok': True}" in later

    return check
