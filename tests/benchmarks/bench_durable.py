"""Durable delivery (SQLite, synchronous=FULL, committed before shown) against a bare httpx-sse loop, on the same bytes.

    python tests/benchmarks/bench_durable.py [--events 100000] [--rounds 5] [--dir FOLDER ON A REAL DISK]

Both read 60-byte payloads, one HTTP chunk an event, from a producer in a process of its own. The peer does nothing with what it
reads; ours parses, admits, commits and hands out every event. Rounds are interleaved. Printed are the medians of the rates and of
the processor's time, and the ratio to the peer: of each round by itself, then the median of these, since a machine that others use
is another one from minute to minute.
"""

from __future__ import annotations

import argparse
import asyncio
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import NamedTuple

import httpx
import httpx_sse

import reattach


class Spent(NamedTuple):
    """Seconds that a contender took, and those that the processor worked for it."""

    wall: float
    processor: float


class Watch:
    """Runs from when it is made."""

    def __init__(self) -> None:
        self._wall, self._processor = time.perf_counter(), time.process_time()

    def spent(self) -> Spent:
        return Spent(time.perf_counter() - self._wall, time.process_time() - self._processor)


async def bare(url: str, events: int) -> Spent:
    seen = 0
    watch = Watch()
    async with (
        httpx.AsyncClient(timeout=None) as client,
        httpx_sse.aconnect_sse(client, "GET", f"{url}/v1/runs/bench/events") as source,
    ):
        async for event in source.aiter_sse():
            seen += event.event != "stream.attached"
            if seen == events:
                break
    return watch.spent()


async def durable(url: str, events: int, folder: str) -> Spent:
    seen = 0
    with tempfile.TemporaryDirectory(dir=folder) as inside:
        async with reattach.AsyncClient(url, pathlib.Path(inside) / "runs.db") as client:
            watch = Watch()
            async for _ in client.attach("bench"):
                seen += 1
            spent = watch.spent()
    assert seen == events, f"{seen} of {events}"
    return spent


def durable_blocking(url: str, events: int, folder: str) -> Spent:
    seen = 0
    with (
        tempfile.TemporaryDirectory(dir=folder) as inside,
        reattach.Client(url, pathlib.Path(inside) / "runs.db") as client,
    ):
        watch = Watch()
        for _ in client.attach("bench"):
            seen += 1
        spent = watch.spent()
    assert seen == events, f"{seen} of {events}"
    return spent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--dir", default=None, help="where the journals are written")
    args = parser.parse_args()
    folder = args.dir or tempfile.gettempdir()
    producer = subprocess.Popen(
        [sys.executable, str(pathlib.Path(__file__).with_name("producer.py")), str(args.events)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert producer.stdout is not None
    url = f"http://127.0.0.1:{int(producer.stdout.readline())}"
    contenders: dict[str, Callable[[], Spent]] = {
        "httpx-sse, bare": lambda: asyncio.run(bare(url, args.events)),
        "reattach, async": lambda: asyncio.run(durable(url, args.events, folder)),
        "reattach, blocking": lambda: durable_blocking(url, args.events, folder),
    }
    rounds: list[dict[str, Spent]] = []
    try:
        rounds.extend({name: run() for name, run in contenders.items()} for _ in range(args.rounds))
    finally:
        producer.communicate()
    for name in contenders:
        rate = statistics.median(args.events / each[name].wall for each in rounds)
        work = statistics.median(each[name].processor / args.events for each in rounds)
        pairs = [each["httpx-sse, bare"].wall / each[name].wall for each in rounds]
        print(
            f"{name:20} {rate:10,.0f} events/s  {work * 1e6:5.1f} us processor  "
            f"{statistics.median(pairs):5.2f}x  (rounds: {min(pairs):.2f}x to {max(pairs):.2f}x)"
        )


if __name__ == "__main__":
    main()
