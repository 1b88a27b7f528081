"""The real machine, explored exhaustively: every interleaving of client, journal, network, server, handler and faults of a scene.

A scene names its faults; whatever their moment, a user sees the log whole, once, in order, or an honest gap, and an end on evidence
alone. `world.py` is the world, `explorer.py` the search; `test_mutants.py` drops the rules one by one.
"""

from __future__ import annotations

import pytest

from client.core.explorer import explore
from client.core.world import Scene
from reattach.core.subscription import step

SHORT = [
    Scene(("cut", "enospc"), size=2),
    Scene(("stall", "503"), size=1),
    Scene(("buffer",), size=1),
    Scene(("rotate",), size=2),
    Scene(("losetail",), size=2),
    Scene(("crash",), size=2),
    Scene(("hole",), on_gap="raise"),
    Scene(("trim",), size=2),
    Scene(("trim",), size=2, on_gap="continue"),
    Scene(("rotate",), on_gap="raise", size=1),
    Scene(("crash",), keep="cursor", size=1),
    Scene(("endearly",), opaque=True, size=2),
    Scene(("cut",), older=True, size=2),
    Scene(("gone", "cut"), before=True, size=1),
    Scene(("404", "cut"), before=True, size=1),
    Scene(("reopen",), size=1),
    Scene((), buffers=True, size=1),
    Scene(("cut",), by="longpoll", size=2),
    Scene(("cut",), by="poll", size=2),
    Scene(("trim",), by="poll", size=2),
    Scene(("cut",), by="poll", opaque=True, size=1),
    Scene(("nostatus",), by="poll", nolog=True, size=2),
    Scene(("crash",), by="poll", nolog=True, size=1),
]

LOST_PLACE = [
    ("rotate",),
    ("rotate", "cut"),
    ("losetail", "cut"),
    ("trim", "cut"),
    ("hole", "cut"),
    ("badcursor", "trim"),
]
SLOW = [
    Scene(("cut", "stall")),
    Scene(("cut", "enospc")),
    Scene(("503", "stall")),
    Scene(("buffer", "cut")),
    Scene(("nostatus", "rotate"), size=2),
    Scene(("endearly", "repeat")),
    Scene(("401", "401"), size=2),
    Scene(("401", "cut")),
    Scene(("404", "cut"), before=True),
    Scene(("foreign", "foreign")),
    Scene(("draining", "cut")),
    Scene(("draining", "trim")),
    Scene(("takeover", "cut"), size=2),
    Scene(("cut", "crash"), size=2),
    Scene(("enospc", "crash")),
    Scene(("crash", "crash"), size=2),
    Scene(("rotate", "crash"), size=2),
    Scene(("losetail", "crash"), size=2),
    Scene(("trim", "crash"), size=2),
    Scene(("gone", "crash"), before=True),
    Scene(("gone", "cut")),
    Scene(("reopen", "cut"), size=2),
    Scene(("reopen", "enospc"), size=2),
    Scene(("crash", "crash"), keep="cursor", size=2),
    Scene(("cut", "stall"), keep="cursor"),
    Scene(("rotate", "crash"), keep="cursor", size=2),
    Scene(("endearly", "cut"), opaque=True),
    Scene(("stall", "crash"), opaque=True, size=2),
    Scene(("cut", "stall"), older=True, size=2),
    Scene(("cut", "stall"), budget=True, size=2),
    Scene(("rotate", "cut"), budget=True, size=2),
    Scene(("cut",), buffers=True, size=2),
    Scene(("crash",), buffers=True, size=1),
    Scene(("rotate", "cut"), by="poll", size=2),
    Scene(("crash", "cut"), by="poll", size=2),
    Scene(("endearly", "cut"), by="longpoll", size=2),
    Scene(("crash", "nostatus"), by="poll", nolog=True, size=2),
    Scene(("cut", "crash"), by="poll", opaque=True, size=2),
    Scene(("trim", "crash"), on_gap="continue", size=2),
    Scene(("rotate", "crash"), on_gap="continue", size=2),
    *(Scene(faults, on_gap="snapshot") for faults in LOST_PLACE),
    *(Scene(faults, on_gap="continue") for faults in LOST_PLACE),
    *(Scene(faults, on_gap="raise") for faults in LOST_PLACE),
]


def run(scene: Scene) -> None:
    found = explore(scene, step)
    print(f"{scene}: {found.states} states")
    assert not found.kinds, str(found)


@pytest.mark.parametrize("scene", SHORT, ids=str)
def test_no_violation_in_the_short_scenes(scene: Scene) -> None:
    """Nothing lost, doubled, reordered, undurable, stuck; no false end; whatever the moment of the fault."""
    run(scene)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("scene", SLOW, ids=str)
def test_no_violation_in_any_scene(scene: Scene) -> None:
    """The same with longer runs and two faults."""
    run(scene)
