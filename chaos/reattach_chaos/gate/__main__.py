"""The gate's process: `python -m reattach_chaos.gate --upstream HOST:PORT --plan FILE --history FILE`.

First line on stdout: `{"kind": "listening", "lanes": {NAME: PORT, …}}`. It ends on SIGTERM, SIGINT, and when its stdin is closed,
so that it never outlives the process that started it.
"""

import argparse
import asyncio
import json
import os
import signal
import sys
from pathlib import Path

from reattach_chaos.gate.history import History
from reattach_chaos.gate.plan import Lane, read_plan
from reattach_chaos.gate.server import Gate


def main() -> int:
    """Run a gate until it is told to end; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m reattach_chaos.gate", description=__doc__)
    parser.add_argument("--upstream", required=True, metavar="HOST:PORT")
    parser.add_argument("--plan", required=True, type=Path)
    parser.add_argument("--history", required=True, type=Path)
    args = parser.parse_args()
    host, _, port = args.upstream.rpartition(":")
    lanes = read_plan(json.loads(args.plan.read_text(encoding="utf-8")))
    history = History(args.history)
    try:
        asyncio.run(_run((host, int(port)), lanes, history))
    finally:
        history.close()
    return 0


async def _run(upstream: tuple[str, int], lanes: tuple[Lane, ...], history: History) -> None:
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    async with Gate(upstream, lanes, history) as gate:
        sys.stdout.write(json.dumps({"kind": "listening", "lanes": gate.ports}) + "\n")
        sys.stdout.flush()
        stdin = sys.stdin.fileno()
        loop.add_reader(stdin, lambda: None if os.read(stdin, 1024) else ended.set())
        await ended.wait()
        loop.remove_reader(stdin)


if __name__ == "__main__":
    sys.exit(main())
