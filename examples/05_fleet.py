"""A fleet on PostgreSQL: start this on as many hosts as you like. One works, the others wait to take over.

Kill the one that works, at any line: another goes on, at once on the same host, after 15 s elsewhere, and the bill holds every tool
call once.

reattach serve --log server.db --scenario examples/fleet.yaml &
python examples/05_fleet.py http://127.0.0.1:8700 postgresql://me@localhost/work
"""

import os
import sys
import time

import psycopg

import reattach

if len(sys.argv) != 3:
    sys.exit("usage: 05_fleet.py URL postgresql://…")
URL, JOURNAL = sys.argv[1:]

with psycopg.connect(JOURNAL) as database:  # your own tables live beside the journal's
    database.execute("CREATE TABLE IF NOT EXISTS bill (event text, tool text, worker int)")

with reattach.Client(URL, JOURNAL) as client:
    run = client.start(
        {"scenario": "fleet"}, key="fleet-1"
    )  # whoever comes first creates it; for all others it is the same run
    while True:
        try:
            for event in run:
                with run.transaction() as transaction:
                    if event.kind == "tool_call":
                        row = (event.id, event.data["tool"], os.getpid())
                        transaction.execute("INSERT INTO bill VALUES (%s, %s, %s)", row)
                print("done with", event.type, flush=True)
            break
        except (reattach.RunBusy, reattach.LeaseLost) as busy:
            print("waiting:", busy, flush=True)
            time.sleep(0.5)

with psycopg.connect(JOURNAL) as database:
    for event_id, tool, worker in database.execute("SELECT event, tool, worker FROM bill ORDER BY event"):
        print("bill", event_id, tool, worker)
