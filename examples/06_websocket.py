"""The same run over a WebSocket, and what an observer sees of the connection.

An open socket says only that a transport exists: what counts is the first message, and how the socket closed.

pip install 'reattach[ws]'
reattach serve --log server.db &
python examples/06_websocket.py
"""

import sys

import reattach

URL = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8700"
JOURNAL = sys.argv[2] if len(sys.argv) > 2 else "runs.db"


def watch(fact: reattach.Fact) -> None:
    if fact.name in ("first_message", "closed", "waiting"):
        print(f"[{fact.name}: {fact.detail}]", file=sys.stderr)


# The scheme says it; calls go by http to the same address, and so the journal knows one server.
with reattach.Client(URL.replace("http", "ws", 1), JOURNAL, observer=watch) as client:
    run = client.start("Summarise these 400 files", key="socket-41")
    for event in run:
        print(event.text, end="", flush=True)
    print()
    print(run.result())
