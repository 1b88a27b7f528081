"""A screen: the whole view, redrawn whenever it or the connection changed.

python examples/04_screen.py
"""

import sys

import reattach

URL = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8700"
JOURNAL = sys.argv[2] if len(sys.argv) > 2 else "runs.db"

with reattach.Client(URL, JOURNAL) as client:
    run = client.start("hello", key="screen-1")
    for view in run.views(interval=0.1):
        tools = ", ".join(f"{call.name} {'done' if call.complete else '…'}" for call in view.tools)
        print(f"[{view.connection}] {view.status}: {len(view.text)} characters  {tools}")
    print(view.text)
