"""The demo's server: the reference server with a SQLite log on a free loopback port, in a process of its own.

`python -m reattach_chaos.demo.server --log FILE --heartbeat-ms N (--scenario FILE | --recording FILE)`. First line on stdout:
`{"kind": "serving", "url": …}`. The ordinary server in every way but one: its heartbeat is short, because a stall costs three of
them, and `reattach serve` leaves it at what is good for the internet. It ends on SIGTERM and with its stdin.
"""

import argparse
import asyncio
import json
import signal
import socket
import sys
from dataclasses import replace
from pathlib import Path

from reattach_chaos.orphans import at_stdins_end
from reattach_mockserver.app import create_app
from reattach_mockserver.host import bind, host, url_of
from reattach_mockserver.logs.sqlite import SqliteLog
from reattach_mockserver.scenarios.parse import load_script
from reattach_mockserver.scenarios.recording import load_recording
from reattach_mockserver.settings import Limits, Playable, Settings


def main() -> int:
    """Serve until told to end; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m reattach_chaos.demo.server")
    parser.add_argument("--log", required=True, type=Path)
    parser.add_argument("--heartbeat-ms", required=True, type=int)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--scenario", type=Path)
    what.add_argument("--recording", type=Path)
    args = parser.parse_args()
    playable: Playable
    if args.scenario:
        script = load_script(args.scenario)
        # A script's own heartbeat would win over the server's.
        playable = replace(script, limits=replace(script.limits, heartbeat_ms=args.heartbeat_ms))
    else:
        playable = load_recording(args.recording)
    settings = Settings(
        scripts={playable.name: playable},
        default=playable.name,
        log=SqliteLog(args.log),
        limits=Limits(heartbeat_ms=args.heartbeat_ms),
    )
    with bind("127.0.0.1", 0) as listener:
        asyncio.run(_serve(settings, listener))
    return 0


async def _serve(settings: Settings, listener: socket.socket) -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)

    def ready() -> None:
        sys.stdout.write(json.dumps({"kind": "serving", "url": url_of(listener)}) + "\n")
        sys.stdout.flush()

    at_stdins_end(stop.set)
    await host(create_app(settings), listener, stop, ready)


if __name__ == "__main__":
    sys.exit(main())
