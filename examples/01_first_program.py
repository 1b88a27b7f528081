"""The first program: kill it and run it again, the text goes on.

reattach serve --log server.db &
python examples/01_first_program.py
"""

import sys

import reattach

URL = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8700"
JOURNAL = sys.argv[2] if len(sys.argv) > 2 else "runs.db"

with reattach.Client(URL, JOURNAL) as client:  # the server; the file that remembers
    run = client.start("Summarise these 400 files", key="summary-41")  # your own name for this work
    for event in run:
        print(event.text, end="", flush=True)
    print()
    print(run.result())  # raises if the run failed or waits for you
