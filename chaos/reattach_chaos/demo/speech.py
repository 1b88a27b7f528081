"""How a follower speaks with whoever started it: a JSON line out, and the end of stdin as the end.

Shared by all clients that the demo plays (`follower.py`, `naive.py`), and nothing of a client is here: no request, no event, no
decision. What is said, and when, is each client's; who listens is `performer.py`.
"""

import json
import os
import sys
import threading
from typing import Any, NoReturn


def say(kind: str, **facts: Any) -> None:
    """Write one line."""
    sys.stdout.write(json.dumps({"kind": kind, **facts}, ensure_ascii=False) + "\n")
    sys.stdout.flush()


def order() -> dict[str, Any]:
    """Read what to do, the one line that comes; from then on this process ends when its stdin does."""
    given: dict[str, Any] = json.loads(sys.stdin.readline())
    threading.Thread(target=_end_with_stdin, daemon=True).start()
    return given


def hold(sequence: int | None) -> NoReturn:
    """Stop for ever with this event in hand: whoever started us kills us here."""
    say("holding", sequence=sequence)
    while True:
        threading.Event().wait()


def use_utf8() -> None:
    """Write UTF-8, whatever the machine's locale; where a nursery bore us, stdout does already."""
    sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr]  # a text file, not any TextIO


def _end_with_stdin() -> None:
    try:
        sys.stdin.read()
    finally:
        os._exit(3)  # also after a reset, which is how a killed reader's socket ends
