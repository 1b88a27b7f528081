"""Wrong machines are told from the real one: the named mutations, and the rules of the exploration dropped one by one."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from client.core import mutants
from client.core.explorer import explore
from client.core.mutants import MUTANTS, Machine
from client.core.scripts import OPENED, RECONNECT
from client.core.world import Scene
from reattach.core import messages as m
from reattach.core.messages import Mark
from reattach.core.state import Rules, State
from reattach.core.subscription import step

SHOWN_BY: dict[str, tuple[Scene, set[str]]] = {
    "no dedupe": (Scene(("cut",), size=2), {"doubled", "reordered"}),
    "inclusive cursor": (Scene(("cut",), size=2), {"doubled"}),
    "cursor before commit": (Scene(("crash",)), {"undurable", "lost", "finished early"}),
    "deliver before commit": (Scene(()), {"undurable"}),
    "end of stream taken for the end": (Scene(("endearly",)), {"finished early"}),
}


@pytest.mark.parametrize("name", SHOWN_BY)
def test_the_exploration_kills_the_mutant(name: str) -> None:
    """One scene is enough to show what a user would see."""
    scene, expected = SHOWN_BY[name]
    found = explore(scene, MUTANTS[name])
    print(f"{name}: {found}")
    assert set(found.kinds) & expected, str(found)


def windows(machine: Machine) -> list[float]:
    """The widest wait after each of eight connections that were opened and brought nothing."""
    state, widths = State(rules=Rules()), []
    state, _ = machine(state, m.Attached(Mark()))
    for _ in range(8):
        state, _ = machine(state, OPENED)
        state, effects = machine(state, m.Lost())
        widths += [each.high for each in effects if isinstance(each, m.StartTimer) and each.timer == "reconnect"]
        state, _ = machine(state, RECONNECT)
    return widths


def test_waits_grow_although_every_connection_opens() -> None:
    """A 200 is no progress; the mutant that takes it for one hammers the server."""
    assert windows(step) == [1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 30.0]
    assert windows(MUTANTS["backoff reset on connect"]) == [1.0] * 8


def test_every_named_mutant_is_killed_here() -> None:
    """None is forgotten."""
    assert set(MUTANTS) == {*SHOWN_BY, "backoff reset on connect"}


def world_without(name: str, *faults: str, keep: str = "events", before: bool = False) -> tuple[Scene, Machine]:
    return Scene(faults, keep=keep, before=before, without=frozenset({name})), step


RULES: dict[str, Callable[[], tuple[Scene, Machine]]] = {
    "prev": lambda: world_without("prev", "enospc", "crash"),
    "attaching": lambda: (Scene(("trim",), size=2), mutants.without_attaching_rows()),
    "timers": lambda: (Scene(("stall",), size=1), mutants.without_timer_rows()),
    "behind": lambda: (Scene(("buffer",), size=1), mutants.row_left_out("behind_elapsed")),
    "resync": lambda: (Scene(("trim",), size=2), mutants.without_resync_rows()),
    "drain": lambda: (Scene(("rotate",)), mutants.without_draining),
    "epoch": lambda: (Scene(("rotate",), size=2), mutants.without_epochs()),
    "committed": lambda: (Scene(("cut",), size=2), mutants.without_committed()),
    "fresh": lambda: (Scene(("rotate",), size=2), mutants.without_eras),
    "prev_id": lambda: (Scene(("losetail",)), mutants.without_predecessors),
    "hole": lambda: (Scene(("hole",)), mutants.without_holes),
    "ended": lambda: (Scene(("gone", "crash"), before=True, size=1), mutants.row_left_out("attached_at_the_end")),
    "barrier": lambda: world_without("barrier", "crash"),
    "handover": lambda: world_without("handover", "reopen"),
    "applied": lambda: world_without("applied", "crash", keep="cursor"),
}
PREVENTS = {
    "prev": {"undurable", "lost", "finished with a wrong history", "delivered after Finish"},
    "attaching": {"stuck"},
    "timers": {"stuck"},
    "behind": {"stuck"},
    "resync": {"stuck"},
    "drain": {"StoreError though no commit failed"},
    "epoch": {"finished early"},
    "committed": {"finished early"},
    "fresh": {"doubled", "a gap (epoch) without a cause"},
    "prev_id": {"finished with a wrong history"},
    "hole": {"stuck"},
    "ended": {"NotFound though the journal holds the end", "acts after Finish"},
    "barrier": {"lost", "reordered"},
    "handover": {"StoreError though no commit failed"},
    "applied": {"lost", "finished early"},
}


@pytest.mark.parametrize("name", RULES)
def test_a_rule_dropped_is_noticed(name: str) -> None:
    """Each rule prevents something that a user would see."""
    scene, machine = RULES[name]()
    found = explore(scene, machine)
    print(f"without {name}, {scene}: {found}")
    assert set(found.kinds) & PREVENTS[name], str(found)
