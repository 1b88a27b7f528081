"""Each client mutant is killed by the laws that it is named for and by no other, and a right client by none.

Real small clients play against a server, a network and a store in memory; the histories are true.
"""

import pytest

from chaos_world import Leg, SmallWorld
from reattach_chaos.checkers import judge
from reattach_chaos.mutants import KILLED_BY

SCENES = {
    "plain": {},
    "cuts": {"legs": [Leg(cut=3, how="rst"), Leg(cut=3), Leg(cut=5, how="stall"), Leg(cut=0), Leg(cut=8, how="rst")]},
    "half events": {"legs": [Leg(half=4, how="rst"), Leg(half=6)]},
    "equal texts": {"texts": ("a", "a", "b", "a")},
    "lost creates": {"start": True, "lost_creates": 2},
    "empty answers": {"legs": [Leg(cut=0)] * 14},
    "expired": {"legs": [Leg(cut=3), Leg(trim=5)]},
    "quiet": {"legs": [Leg(pause=5)] * 3},
    "hole": {"legs": [Leg(skip=4)]},
    "lasting hole": {"legs": [Leg(skip=4)] * 5},
    "taken over": {"takeover_after": 3},
    "kills": {"kills": (2, 4, 6), "legs": [Leg(), Leg(cut=3)]},
    "busy": {"legs": [Leg(refuse=(503, "overloaded"), wish=3.0)] * 3},
    "down": {"legs": [Leg(down=True)] * 12},
    "store fails": {"store_fails_at": (5,)},
}
DEADLY = {
    "deliver-first": "plain",
    "half-event": "half events",
    "from-received": "cuts",
    "new-key": "lost creates",
    "end-of-stream": "cuts",
    "by-text": "equal texts",
    "reset-on-200": "empty answers",
    "retry-gone": "expired",
    "after-end": "plain",
    "hasty": "quiet",
    "silent-restart": "expired",
    "swallow-gap": "hole",
    "two-appliers": "taken over",
}


@pytest.mark.parametrize("scene", SCENES)
def test_no_law_finds_anything_in_a_right_client(scene):
    """Whatever happens to it; and every planned fault fires."""
    verdict = judge(SmallWorld(**SCENES[scene]).play("right"))
    assert verdict.word == "valid", verdict.sentence()


@pytest.mark.parametrize("mutant", DEADLY)
def test_a_mutant_is_killed_by_the_laws_that_it_is_named_for(mutant):
    """In the scene that is made for it; the witness is two or three records, or one that is wrong alone."""
    verdict = judge(SmallWorld(**SCENES[DEADLY[mutant]]).play(mutant))
    assert verdict.broken
    assert set(verdict.broken) <= KILLED_BY[mutant], verdict.sentence()
    assert all(1 <= len(ruling.witness) <= 3 for ruling in verdict.broken.values())


@pytest.mark.parametrize("mutant", DEADLY)
def test_no_other_law_blames_a_mutant_in_any_scene(mutant):
    """One bug, one sentence: what follows from it is told once, by the law that names the cause."""
    for scene, facts in SCENES.items():
        broken = set(judge(SmallWorld(**facts).play(mutant)).broken)
        assert broken <= KILLED_BY[mutant], (scene, broken)


def test_every_mutant_has_a_scene():
    """None is listed and never played."""
    assert set(DEADLY) == set(KILLED_BY) - {"right"}


@pytest.mark.parametrize("seed", range(12))
def test_a_right_client_is_right_at_every_cut(seed):
    """A dozen rows of random cuts, kills and pauses."""
    world = SmallWorld(seed=seed)
    chance = world.chance
    world.legs = [
        Leg(cut=chance.randrange(0, 7), how=chance.choice(("fin", "rst", "stall")), pause=chance.choice((0.0, 2.0)))
        for _ in range(chance.randrange(0, 6))
    ]
    world.kills = tuple(sorted(chance.sample(range(1, 9), chance.randrange(0, 4))))
    verdict = judge(world.play("right"))
    assert not verdict.broken, (seed, verdict.sentence())
