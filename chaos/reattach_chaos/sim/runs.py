"""The runs of the simulated session: what happens in each and when, and their logs.

Run 1 completes, run 2 pauses, run 3 goes on from it and fails: together every kind of event, `CANONICAL` of the schedules. When
things happen is drawn from the case's seed: mostly at once, sometimes so late that heartbeats come between.
"""

import json
import random
from typing import Any, NamedTuple

from reattach.testing.model_run import Logged, ModelRun
from reattach_chaos.schedules import Schedule

WORDS = "a Ü€🙂 "
"""In every payload, so that a cut in a character of 2, 3 or 4 bytes finds one in every event."""
ACTION = {"id": "act_1", "kind": "approval", "thread": None, "tool": "refund", "arguments": {"note": WORDS}}
DELAYS = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.1, 0.7, 5.0)


class Step(NamedTuple):
    """One event of a run's script, so many seconds after the one before."""

    after: float
    type: str
    data: dict[str, Any]


STORY: dict[int, tuple[tuple[str, dict[str, Any]], ...]] = {
    1: (
        ("message.delta", {"message_id": "m1", "index": 0, "text": WORDS}),
        ("message.delta", {"message_id": "m1", "index": 1, "text": WORDS}),
        ("message.completed", {"message_id": "m1", "role": "assistant", "text": WORDS * 2}),
        ("tool.call", {"call_id": "c1", "operation_id": "op_41", "tool": "charge", "arguments": {"note": WORDS}}),
        ("tool.result", {"call_id": "c1", "operation_id": "op_41", "result": {"note": WORDS}}),
        ("run.completed", {"result": {"note": WORDS}}),
    ),
    2: (
        ("action.required", {"action": ACTION}),
        ("run.paused", {"required_actions": [ACTION]}),
    ),
    3: (("run.failed", {"problem": {"code": "bank_closed", "message": WORDS}}),),
}
"""What each run's script appends behind `run.created`."""

_CASTS = ((1,), (2,), (1, 2), (2, 3), (1, 2, 3))
"""The runs that a case may have; the third is made by the answer to the second's pause."""


def cast(schedule: Schedule, chance: random.Random) -> tuple[int, ...]:
    """Return the numbers of the runs that are played: those that a fault concerns, and seldom more. Without a fault it is all.

    The only cancel that asks a server is that of a pause; there it was answered.
    """
    needed: set[int] = set()
    for planned in schedule.faults:
        needed |= {2, 3} if planned.route in ("answer", "cancel") else {planned.at.run}
        if planned.at.run == 3:
            needed.add(2)
    enough = [each for each in _CASTS if needed and needed <= set(each)] or [_CASTS[-1]]
    return chance.choices(enough, [6] + [1] * (len(enough) - 1))[0]


NUMBERS = {"k1": 1, "k2": 2}
"""The keys of the runs that are started; the third is an answer's."""


def script(number: int, chance: random.Random) -> list[Step]:
    """Return a run's script with its times."""
    return [Step(chance.choice(DELAYS), type, data) for type, data in STORY[number]]


class SimRun(ModelRun):
    """A run of the session.

    Args:
        number: 1 to 3.
        run_id: Its id.
        key: The key that made it.
        request: The body that made it.
    """

    def __init__(self, number: int, run_id: str, key: str, request: bytes) -> None:
        super().__init__(run_id, key, request)
        self.number = number
        self.next_step = 0
        """The script's step that comes next."""
        self.end_told = False
        """Whether a client can know the end: then the log is not replaced any more, since nobody would look at it again."""

    def again(self, event: Logged) -> Any:
        """Return what an event holds in a log that replaces its own: the same."""
        return json.loads(event.text)["data"]
