"""The real machine, explored exhaustively: every interleaving of client, journal, network, server, handler and faults of a scene.

A scene names its faults; whatever their moment, a user sees the log whole, once, in order, or an honest gap, and an end on evidence
alone. `world.py` is the world, `explorer.py` the search. The last part drops the rules one by one and shows what each prevents.
"""

from __future__ import annotations

import pytest

from client.core.explorer import explore
from client.core.world import Scene
from reattach.core.subscription import step

SHORT = [
    Scene(("cut",)),
    Scene(("hole",)),
    Scene(("trim",)),
    Scene(("hole",), on_gap="raise"),
    Scene(("trim",), on_gap="raise"),
    Scene(("crash",), keep="cursor"),
]


def run(scene: Scene) -> None:
    found = explore(scene, step)
    print(f"{scene}: {found.states} states")
    assert not found.kinds, str(found)


@pytest.mark.parametrize("scene", SHORT, ids=str)
def test_no_violation_in_the_short_scenes(scene: Scene) -> None:
    """Nothing lost, doubled, reordered, undurable, stuck; no false end; whatever the moment of the fault."""
    run(scene)
