"""`Striker`: in a process of ours, does the faults that were ordered for its own instants: kills it, or lets its store fail.

Who sees an instant calls `meet`; who is about to write calls `write`. What is done is said on stdout before, so that a kill is
known, too. One lock is held by whoever makes something durable and says it: a kill never comes between the two, and what was
said is what is true. Never here: who sees the instants (`watched_client.py`, `watched_store.py`, `watched_world.py`).
"""

import json
import os
import signal
import sys
import threading
import time
from typing import Any

from reattach_chaos.cases.inside.instants import STRUCK, Instant
from reattach_chaos.schedules import Fault, Place
from reattach_chaos.schedules.fault import STORE_REASONS

LONGEST_LAG_S = 1.0


class StoreStruck(Exception):
    """The store fails, by plan; the text is what it says."""

    def __init__(self, reason: str) -> None:
        super().__init__(STORE_REASONS[reason])
        self.locked = reason == "locked"


class Striker:
    """The faults of one process.

    Args:
        faults: What is to come.
    """

    def __init__(self, faults: tuple[Instant, ...]) -> None:
        self.lock = threading.RLock()
        """Held while something becomes durable and is said."""
        self._left = list(faults)
        self._armed: list[Instant] = []

    def waits_at(self, place: Place) -> bool:
        """Whether a fault is ordered at this instant, and has not come."""
        return any(each.place is place for each in self._left)

    def meet(self, place: Place, event: int) -> None:
        """It is this instant of this event: be killed, or let the next write fail; nothing, where nothing was ordered."""
        with self.lock:
            for due in [each for each in self._left if each.place is place and event >= each.event]:
                self._left.remove(due)
                if due.fault is Fault.KILL:
                    self._say(due, "killed")
                    os.kill(os.getpid(), signal.SIGKILL)
                    signal.pause()  # the kill is under way
                self._armed.append(due)

    def write(self) -> None:
        """Something is about to become durable: take as long as was ordered, or fail.

        Raises:
            StoreStruck: It fails.
        """
        while self._armed:
            due = self._armed.pop(0)
            assert due.fault is Fault.STORE_FAILURE
            self._say(due, "lagged" if due.lag_ms else "failed")
            if not due.lag_ms:
                raise StoreStruck(due.reason)
            time.sleep(min(due.lag_ms / 1000, LONGEST_LAG_S))

    def say(self, kind: str, **facts: Any) -> None:
        """Say a line; whole, whatever another thread is writing."""
        line = json.dumps({"kind": kind, **facts})
        with self.lock:
            os.write(sys.stdout.fileno(), f"\n{line}\n".encode())

    def _say(self, due: Instant, did: str) -> None:
        self.say(STRUCK, cut=due.cut, did=did)
