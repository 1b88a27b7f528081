"""Wrong clients are found by the simulation, within a bounded number of schedules, by the law that they break."""

import dataclasses

import pytest

import reattach
from client.core.mutants import MUTANTS, row_left_out
from reattach_chaos.checkers import judge
from reattach_chaos.history import History
from reattach_chaos.schedules import Fault, Planned, Schedule, at
from reattach_chaos.sim import play_simulated, volume

MOST = 500
CORES = {
    "no dedupe": (MUTANTS["no dedupe"], {"I2", "I3"}),
    "inclusive cursor": (MUTANTS["inclusive cursor"], {"I2"}),
    "end of stream taken for the end": (MUTANTS["end of stream taken for the end"], {"I1", "I11", "I12"}),
    "deliver before commit": (MUTANTS["deliver before commit"], {"I27", "I4"}),
    "silence is not noticed": (row_left_out("idle_elapsed"), {"I17", "I27", "I13"}),
}


@pytest.mark.parametrize("name", CORES)
def test_a_wrong_core_is_found(name):
    """By its law, among the first schedules."""
    step, laws = CORES[name]
    found = volume(range(MOST), step=step)
    assert found.invalid, f"not found within {MOST} schedules"
    schedule, verdict = found.invalid[0]
    print(f"{name}: found by schedule {found.played} (seed {schedule.seed}): {verdict.sentence()}")
    assert laws & set(verdict.broken), verdict.broken


def storms(step):
    """Cut streams that have brought all there is, many times in a row; return the laws that are broken on tight terms.

    The terms: nine attempts take longer than 1.3 s, since the waits grow to 4 s.
    """
    cut = Planned(fault=Fault.FIN, at=at("before-live"), times=16)
    broken = set()
    for seed in range(25):
        case, *rest = play_simulated(Schedule(id=f"storm-{seed}", seed=seed, faults=(cut,)), step=step)
        tight = dataclasses.replace(case, storm_connects=8, storm_window_ms=1300.0)
        broken |= set(judge(History([tight, *rest])).broken)
    return broken


def test_waits_that_a_connection_makes_short_again_are_found():
    """I14; and the right client keeps those terms."""
    assert storms(MUTANTS["backoff reset on connect"]) == {"I14"}
    assert storms(None) == set()


def wrong_door(monkeypatch, wrong):
    """Let the client's loop hand out what `wrong(run, next event)` makes of it."""
    right = reattach.AsyncRun.__anext__

    async def handed(run):
        return await wrong(run, lambda: right(run))

    monkeypatch.setattr(reattach.AsyncRun, "__anext__", handed)


def test_a_swallowed_gap_is_found(monkeypatch):
    """I18: what is missing is not told."""

    async def swallowing(run, take):
        event = await take()
        while event.gap is not None:
            event = await take()
        return event

    wrong_door(monkeypatch, swallowing)
    found = volume(range(MOST))
    assert found.invalid
    assert "I18" in found.invalid[0][1].broken


def test_equal_text_taken_for_the_same_event_is_found(monkeypatch):
    """I1: the second of two equal words is lost."""
    last = {}

    async def by_text(run, take):
        event = await take()
        while event.text and event.kind == "text" and last.get(run.id) == event.text:
            event = await take()
        last[run.id] = event.text
        return event

    wrong_door(monkeypatch, by_text)
    found = volume(range(MOST))
    assert found.invalid
    assert "I1" in found.invalid[0][1].broken
