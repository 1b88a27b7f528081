"""Durable delivery (SQLite, synchronous=FULL, committed before shown) against a bare httpx-sse loop, on the same bytes.

    python tests/benchmarks/bench_durable.py [--events 100000] [--rounds 5] [--dir FOLDER ON A REAL DISK]

Both read 60-byte payloads, one HTTP chunk an event, from a producer in a process of its own. The peer does nothing with what it
reads; ours parses, admits, commits and hands out every event. Rounds are interleaved; the medians and their ratio are printed.
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

import httpx
import httpx_sse

import reattach


async def bare(url: str, events: int) -> float:
    seen = 0
    began = time.perf_counter()
    async with (
        httpx.AsyncClient(timeout=None) as client,
        httpx_sse.aconnect_sse(client, "GET", f"{url}/v1/runs/bench/events") as source,
    ):
        async for event in source.aiter_sse():
            seen += event.event != "stream.attached"
            if seen == events:
                break
    return events / (time.perf_counter() - began)


async def durable(url: str, events: int, folder: str) -> float:
    seen = 0
    with tempfile.TemporaryDirectory(dir=folder) as inside:
        async with reattach.AsyncClient(url, pathlib.Path(inside) / "runs.db") as client:
            began = time.perf_counter()
            async for _ in client.attach("bench"):
                seen += 1
            spent = time.perf_counter() - began
    assert seen == events, f"{seen} of {events}"
    return events / spent


def durable_blocking(url: str, events: int, folder: str) -> float:
    seen = 0
    with (
        tempfile.TemporaryDirectory(dir=folder) as inside,
        reattach.Client(url, pathlib.Path(inside) / "runs.db") as client,
    ):
        began = time.perf_counter()
        for _ in client.attach("bench"):
            seen += 1
        spent = time.perf_counter() - began
    assert seen == events, f"{seen} of {events}"
    return events / spent


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
    rates: dict[str, list[float]] = {"httpx-sse, bare": [], "reattach, async": [], "reattach, blocking": []}
    try:
        for _ in range(args.rounds):
            rates["httpx-sse, bare"].append(asyncio.run(bare(url, args.events)))
            rates["reattach, async"].append(asyncio.run(durable(url, args.events, folder)))
            rates["reattach, blocking"].append(durable_blocking(url, args.events, folder))
    finally:
        producer.communicate()
    base = statistics.median(rates["httpx-sse, bare"])
    for name, found in rates.items():
        middle = statistics.median(found)
        print(f"{name:20} {middle:10,.0f} events/s  ({min(found):,.0f} to {max(found):,.0f})   {middle / base:5.2f}x")


if __name__ == "__main__":
    main()
