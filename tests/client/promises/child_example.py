"""A process that runs an example and is killed at the n-th thing that SQLite or the example does. Arguments: example, n, its own.

A thing is a statement that begins on any connection, or a line of the example: both are counted from outside, so that neither the
example nor the journal knows. n = 0 lives to its end.
"""

import os
import runpy
import signal
import sqlite3
import sys
import threading
from types import FrameType
from typing import Any

from reattach.stores.sqlite.transaction import TurnConnection

example, at = sys.argv[1], int(sys.argv[2])
sys.argv = [example, *sys.argv[3:]]
_lock = threading.Lock()
_count = 0


def tick(*_: Any) -> None:
    global _count
    with _lock:
        _count += 1
        if _count == at:
            os.kill(os.getpid(), signal.SIGKILL)


class Counting(TurnConnection):
    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.set_trace_callback(tick)


def trace(frame: FrameType, event: str, arg: Any) -> Any:
    if frame.f_code.co_filename != example:
        return None
    if event == "line":
        tick()
    return trace


_connect = sqlite3.connect
sqlite3.connect = lambda *args, **settings: _connect(*args, **{**settings, "factory": Counting})
sys.settrace(trace)
runpy.run_path(example, run_name="__main__")
