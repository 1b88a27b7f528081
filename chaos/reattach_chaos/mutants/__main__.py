"""A small client as a client under test: `python -m reattach_chaos.mutants NAME`, with the environment of the contract.

REATTACH_URL, REATTACH_RUN or REATTACH_KEY with REATTACH_INPUT, REATTACH_STATE, REATTACH_TOKEN, and our own
REATTACH_HEARTBEAT_S (seconds in which a byte comes; default 1).
"""

import os
import sys
from pathlib import Path

from reattach_chaos.mutants import KILLED_BY, client_of
from reattach_chaos.mutants.http_world import HttpWorld

USAGE = 64


def main(argv: list[str]) -> int:
    """Follow one run; return the exit code."""
    if len(argv) != 1 or argv[0] not in KILLED_BY:
        sys.stderr.write(f"usage: python -m reattach_chaos.mutants {'|'.join(KILLED_BY)}\n")
        return USAGE
    told = os.environ
    start = told.get("REATTACH_MODE") == "start"
    state = Path(told["REATTACH_STATE"])
    world = HttpWorld(
        told["REATTACH_URL"], state, token=told.get("REATTACH_TOKEN", ""), input=told.get("REATTACH_INPUT", "")
    )
    heartbeat = float(told.get("REATTACH_HEARTBEAT_S", "1"))
    run = None if start else told["REATTACH_RUN"]
    return client_of(argv[0])(world, run, key=told.get("REATTACH_KEY", "key"), heartbeat=heartbeat).run()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
