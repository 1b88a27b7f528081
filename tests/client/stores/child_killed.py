"""A process that opens a journal, works on it, and kills itself at the n-th thing that SQLite does. Arguments: path, n, step.

A "thing" is a statement about to run, or some tens of instructions of SQLite's machine; both are counted on every connection by
its own hooks, so that nothing of the store knows. Prints what was told durable, a line each; "done" if it was not killed.
"""

from __future__ import annotations

import os
import signal
import sqlite3
import sys

from reattach.stores.base import Intent
from reattach.stores.sqlite import SqliteStore
from reattach.stores.sqlite.transaction import TurnConnection
from reattach.testing.stores import PROFILE, SERVER, begun, events, gap

_path, _at, _step = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
_count = 0


def _tick(*_: object) -> int:
    global _count
    _count += 1
    if _count == _at:
        os.kill(os.getpid(), signal.SIGKILL)
    return 0


class Counting(TurnConnection):
    def __init__(self, *args: object, **settings: object) -> None:
        super().__init__(*args, **settings)
        self.set_trace_callback(_tick)
        self.set_progress_handler(_tick, _step)


_connect = sqlite3.connect
sqlite3.connect = lambda *args, **settings: _connect(*args, **{**settings, "factory": Counting})


def told(line: str) -> None:
    print(line, flush=True)


store = SqliteStore(_path)
store.open()
told("opened")
intent, _ = store.intend(Intent(SERVER, PROFILE, "k", "{}", "sha"))
told("intended")
store.created(intent.run, run_id="run_1", session_id=None, status="running")
told("created")
row, lease, (main,) = begun(store, "run_1", "main")
position = 0
for size in (1, 40, 3):
    assert store.commit([events(lease, position + 1, position + size)]) == [None]
    position += size
    told(f"committed {position}")
    store.note(main, position - 1)
    told(f"applied {position - 1}")
transaction = store.begin(main, expected=position - 1)
transaction.execute("CREATE TABLE IF NOT EXISTS bill (event TEXT)", ())
transaction.execute("INSERT INTO bill VALUES (?)", (f"e{position}",))
transaction.commit(position)
told(f"billed {position}")
assert store.commit([gap(lease, position + 1)]) == [None]
told(f"committed {position + 1}")
store.mark(main, position + 1)
told(f"applied {position + 1}")
store.close()
told("done")
