"""Our decoder against httpx-sse's on the same bytes, and our wire against a bare httpx-sse loop on the same server.

    python tests/benchmarks/bench_decoder.py [--events 100000] [--size 60] [--rounds 5]

The server sends one HTTP chunk an event, as ASGI servers frame a yield, every byte built beforehand, from a process of its own.
Rounds are interleaved; medians of processor time and their ratios are printed. Figures of one machine alone mean nothing.
"""

from __future__ import annotations

import argparse
import asyncio
import socket
import statistics
import subprocess
import sys
import time

import httpx
import httpx_sse
from httpx_sse._decoders import SSEDecoder, SSELineDecoder  # its parser alone has no public door

from reattach.transports.base import Request
from reattach.transports.client import ClientWire
from reattach.transports.http import HttpWire
from reattach.wire.eventstream import Decoder

READ = 65536
LIMIT = 1 << 25


def blocks(events: int, size: int) -> list[bytes]:
    return [b"id: e1.%d\nevent: token\ndata: %b\n\n" % (number, b"x" * size) for number in range(events)]


# ---------------------------------------------------------------------------------------------------------- the server


def serve(events: int, size: int) -> None:
    """Print the port, then answer every request with the whole stream until standard input closes this process's life."""
    body = b"".join(b"%x\r\n%b\r\n" % (len(block), block) for block in blocks(events, size)) + b"0\r\n\r\n"
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    with socket.create_server(("127.0.0.1", 0)) as listener:
        print(listener.getsockname()[1], flush=True)
        while True:
            connection, _ = listener.accept()
            with connection:
                connection.recv(READ)
                connection.sendall(head + body)


# ------------------------------------------------------------------------------------------------------------ contenders


def decoder_ours(chunks: list[bytes]) -> int:
    decoder, seen = Decoder(LIMIT), 0
    for chunk in chunks:
        seen += len(decoder.feed(chunk))
    return seen


def decoder_theirs(chunks: list[bytes]) -> int:
    """Only lines and fields: its layers over httpx's text decoding are left out, in its favour."""
    lines, decoder, seen = SSELineDecoder(), SSEDecoder(), 0
    for chunk in chunks:
        for line in lines.decode(chunk.decode()):
            seen += decoder.decode(line.rstrip("\n")) is not None
    return seen


async def wire_ours(url: str, wire: ClientWire) -> int:
    seen = 0
    stream = await wire.stream(Request("GET", url, {}), max_event_bytes=LIMIT)
    while (batch := await stream.read()) is not None:
        for _ in batch.frames:
            seen += 1
    await stream.aclose()
    return seen


async def wire_theirs(url: str, client: httpx.AsyncClient) -> int:
    seen = 0
    async with httpx_sse.aconnect_sse(client, "GET", url) as source:
        async for _ in source.aiter_sse():
            seen += 1
    return seen


# ---------------------------------------------------------------------------------------------------------------- rounds


async def run(url: str, events: int, size: int, rounds: int) -> None:
    body = b"".join(blocks(events, size))
    chunks = [body[at : at + READ] for at in range(0, len(body), READ)]
    wire, client = HttpWire(), httpx.AsyncClient(timeout=None)
    theirs = ClientWire(client)
    costs: dict[str, list[float]] = {}
    for _ in range(rounds):
        for name, contender in {
            "decoder, ours": lambda: decoder_ours(chunks),
            "decoder, httpx-sse": lambda: decoder_theirs(chunks),
            "wire, ours": lambda: wire_ours(url, wire),
            "wire, ours on a stock client": lambda: wire_ours(url, theirs),
            "wire, httpx-sse": lambda: wire_theirs(url, client),
        }.items():
            began = time.process_time()
            seen = contender()
            if not isinstance(seen, int):
                seen = await seen
            costs.setdefault(name, []).append((time.process_time() - began) / events * 1e6)
            assert seen == events, f"{name}: {seen} of {events}"
    await client.aclose()
    await wire.aclose()
    print(f"{events} events of {size} bytes, {rounds} rounds; microseconds of processor time an event, median")
    middle = {name: statistics.median(cost) for name, cost in costs.items()}
    for name, cost in middle.items():
        peer = middle["decoder, httpx-sse" if name.startswith("decoder") else "wire, httpx-sse"]
        print(f"  {name:32} {cost:8.3f}   {peer / cost:6.2f} times httpx-sse")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--size", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--serve", action="store_true", help="be the server")
    asked = parser.parse_args()
    if asked.serve:
        serve(asked.events, asked.size)
        return
    command = [sys.executable, __file__, "--serve", "--events", str(asked.events), "--size", str(asked.size)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            url = f"http://127.0.0.1:{int(server.stdout.readline())}/"
            asyncio.run(run(url, asked.events, asked.size, asked.rounds))
        finally:
            server.kill()


if __name__ == "__main__":
    main()
