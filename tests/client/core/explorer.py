"""Breadth-first search through a small world: every state that can be reached, the shortest way to each violation."""

from __future__ import annotations

import gc
from collections import deque
from typing import NamedTuple

from client.core.world import Label, Scene, Stage, Step, Violation, World, sentence

NOT_AN_END = {"reconnect_exhausted", "lease_lost"}  # an end by running out of time proves no way out


class Found(NamedTuple):
    """Kinds of violation, each with the shortest way to it; and how many states there are."""

    kinds: dict[str, list[str]]
    states: int

    def __str__(self) -> str:
        lines = [f"{', '.join(self.kinds) or 'clean'}  [{self.states} states]"]
        for kind, trace in self.kinds.items():
            lines += [f"  {kind}:", *(f"    {number:2} {label}" for number, label in enumerate(trace, 1))]
        return "\n".join(lines)


def explore(scene: Scene, step: Step, *, limit: int = 3_000_000, all_kinds: bool = False) -> Found:
    """Search a scene. Stops at the first violation unless all kinds are wanted; "stuck" is looked for when none was found."""
    gc.disable()  # a million live tuples and no cycles: the collector would walk them over and over
    try:
        return _explore(scene, step, limit, all_kinds)
    finally:
        gc.enable()


def _explore(scene: Scene, step: Step, limit: int, all_kinds: bool) -> Found:
    stage = Stage(scene, step)
    opening = stage.opening()
    number: dict[World, int] = {opening: 0}
    worlds: list[World] = [opening]
    came: list[tuple[int, Label]] = [(0, ())]
    back: list[list[int]] = [[]]
    ends: list[int] = []
    kinds: dict[str, list[str]] = {}

    def way(at: int, *more: Label) -> list[str]:
        labels: list[Label] = []
        while at:
            at, label = came[at]
            labels.append(label)
        return [sentence(label) for label in (*reversed(labels), *more)]

    for at, world in enumerate(worlds):  # the list grows while it is walked
        if world.over and world.finished not in NOT_AN_END:
            ends.append(at)
        for move in stage.moves(world):
            try:
                after = move.act()
            except Violation as violation:
                kinds.setdefault(str(violation), way(at, move.label))
                ends.append(at)
                if not all_kinds:
                    return Found(kinds, len(worlds))
                continue
            known = number.get(after)
            if known is None:
                known = number[after] = len(worlds)
                if known > limit:
                    return Found({**kinds, "more states than the limit": way(at, move.label)}, known)
                worlds.append(after)
                came.append((at, move.label))
                back.append([])
            if not move.fault:
                back[known].append(at)
    stuck = _stuck(back, ends, {at for at, world in enumerate(worlds) if world.over})
    if stuck is not None:
        core = stage.states[worlds[stuck].core]
        line = worlds[stuck].line
        where = f"   ({core.mode}, timers {sorted(core.timers)}, line {line and (line.dead or 'up')})"
        kinds["stuck"] = way(stuck, (where,))
    return Found(kinds, len(worlds))


def _stuck(back: list[list[int]], ends: list[int], over: set[int]) -> int | None:
    alive = set(ends)
    todo = deque(ends)
    while todo:
        for before in back[todo.popleft()]:
            if before not in alive:
                alive.add(before)
                todo.append(before)
    return next((at for at in range(len(back)) if at not in alive and at not in over), None)
