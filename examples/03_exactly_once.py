"""Exactly once: your rows and "this event is done" in one transaction of the journal's database.

Killed at any line and run again, the bill holds every tool call once.

python examples/03_exactly_once.py
"""

import sqlite3
import sys

import reattach

URL = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8700"
JOURNAL = sys.argv[2] if len(sys.argv) > 2 else "runs.db"

with sqlite3.connect(JOURNAL) as database:  # your own tables live beside the journal's
    database.execute("CREATE TABLE IF NOT EXISTS bill (event TEXT, tool TEXT)")

with reattach.Client(URL, JOURNAL) as client:
    run = client.start({"scenario": "tools"}, key="billed-1")
    for event in run:
        with run.transaction() as transaction:
            if event.kind == "tool_call":
                transaction.execute("INSERT INTO bill VALUES (?, ?)", (event.id, event.data["tool"]))

with sqlite3.connect(JOURNAL) as database:
    for event_id, tool in database.execute("SELECT event, tool FROM bill"):
        print(event_id, tool)
