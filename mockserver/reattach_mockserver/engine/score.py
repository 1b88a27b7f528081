"""What a run plays, whatever it was made from: a script or a recording becomes one row of due steps.

Checked by tests/mockserver/test_engine.py.
"""

from collections.abc import Iterator

from reattach_mockserver.engine.continuation import decision_of
from reattach_mockserver.engine.timeline import Due, timeline
from reattach_mockserver.logs.base import RunRecord
from reattach_mockserver.logs.pause import pause_of
from reattach_mockserver.scenarios.expand import Finish, plan, plan_continuation
from reattach_mockserver.scenarios.recording import Recording
from reattach_mockserver.scenarios.replay import plan_recording
from reattach_mockserver.scenarios.script import Script
from reattach_mockserver.settings import Limits, Playable, Settings


def dues(playable: Playable, seed: int | None) -> Iterator[Due]:
    """Lay out what is played; `seed` takes the place of a script's own."""
    match playable:
        case Script():
            return timeline(plan(playable, seed), playable.seed if seed is None else seed)
        case Recording():
            return timeline(plan_recording(playable), 0)
        case _:
            raise TypeError(f"{playable!r} plays itself: it lays out nothing")


def dues_after(paused: RunRecord, playable: Playable, seed: int | None) -> Iterator[Due]:
    """Lay out what follows an answered pause of this playable; after a recording's nothing does.

    Raises:
        KeyError: It has no pause where the run paused.
    """
    pause = pause_of(paused)
    if isinstance(playable, Recording):
        return timeline([Finish(path="end", status="completed")], 0)
    if not isinstance(playable, Script):
        raise TypeError(f"{playable!r} plays itself: it lays out nothing")
    path = "" if pause is None else pause.path
    rest = plan_continuation(playable, path, decision_of(paused), seed)
    return timeline(rest, playable.seed if seed is None else seed)


def limits_of(playable: Playable, limits: Limits) -> Limits:
    """Return the server's limits with what the script asks for its own runs."""
    return limits.with_script(playable.limits) if isinstance(playable, Script) else limits


def is_virtual(playable: Playable) -> bool:
    """Tell whether waits take no time."""
    return isinstance(playable, Script) and playable.clock == "virtual"


def limits_for(settings: Settings, script: str) -> Limits:
    """Return the limits that hold for runs of this script; the server's own if it is not known."""
    playable = settings.scripts.get(script)
    return settings.limits if playable is None else limits_of(playable, settings.limits)
