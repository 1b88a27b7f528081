"""A process that opens a journal and kills itself at the n-th statement that SQLite begins. Arguments: path, n. Prints "done"."""

from __future__ import annotations

import os
import signal
import sqlite3
import sys

from reattach.stores.sqlite import SqliteStore
from reattach.stores.sqlite.transaction import TurnConnection

_path, _at = sys.argv[1], int(sys.argv[2])
_count = 0


def _tick(_: str) -> None:
    global _count
    _count += 1
    if _count == _at:
        os.kill(os.getpid(), signal.SIGKILL)


class Counting(TurnConnection):
    def __init__(self, *args: object, **settings: object) -> None:
        super().__init__(*args, **settings)
        self.set_trace_callback(_tick)


_connect = sqlite3.connect
sqlite3.connect = lambda *args, **settings: _connect(*args, **{**settings, "factory": Counting})

store = SqliteStore(_path)
store.open()
print("done", flush=True)
store.close()
