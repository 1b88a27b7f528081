"""Plans a recording, so that an engine plays it as it plays a script.

A pure function, like `expand`: the same steps with the same paths for the same recording. The path of
the n-th event is `n`, from 0, that of the wait before it `n.rest`, that of the settling step `end`.
"""

from collections.abc import Iterator

from reattach_mockserver.scenarios.expand import Emit, Finish, Operate, Pause, Planned, Rest
from reattach_mockserver.scenarios.recording import Recording, release_of
from reattach_mockserver.scenarios.script import Release


def plan_recording(recording: Recording) -> Iterator[Planned]:
    """Return the planned steps; the last is a Pause or a Finish."""
    last = 0
    for index, event in enumerate(recording.events):
        if event.at_ms > last:
            yield Rest(path=f"{index}.rest", ms=event.at_ms - last)
        last = event.at_ms
        release = release_of(event)
        if release is None:
            yield Emit(path=str(index), type=event.type, data=event.data, text=event.text)
        else:
            yield Operate(path=str(index), step=Release(release=release))
    ending = recording.ending
    if ending.actions:
        yield Pause(path="end", actions=ending.actions)
    else:
        yield Finish(path="end", status=ending.status, result=ending.result, problem=ending.problem)
