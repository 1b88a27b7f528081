"""A native server that is faster than any client: the stream's bytes are built beforehand and sent at once.

Prints its port, then serves until its standard input closes. GET /v1/runs/bench is the status, …/events the stream of EVENTS events
with a payload of 60 bytes, one HTTP chunk each, after the cursor in Last-Event-ID.
"""

from __future__ import annotations

import json
import socket
import sys
import threading

EVENTS = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000


def event(sequence: int) -> bytes:
    data: dict[str, object] = {"message_id": "m", "index": sequence, "text": "x" * 14}
    kind = "message.delta"
    if sequence == EVENTS:
        kind, data = "run.completed", {"result": None}
    told = {
        "id": f"evt_{sequence}",
        "prev_id": f"evt_{sequence - 1}" if sequence > 1 else None,
        "run_id": "bench",
        "sequence": sequence,
        "type": kind,
        "time": "2026-01-01T00:00:00.000Z",
        "data": data,
    }
    block = f"id: b.{sequence}\nevent: {kind}\ndata: {json.dumps(told, separators=(',', ':'))}\n\n".encode()
    return b"%x\r\n%b\r\n" % (len(block), block)


BLOCKS = [event(sequence) for sequence in range(1, EVENTS + 1)]
WHOLE = b"".join(BLOCKS) + b"0\r\n\r\n"


def attached(after: int) -> bytes:
    told = {
        "protocol": 1,
        "run_id": "bench",
        "epoch": "b",
        "cursor": f"b.{after}",
        "cursor_id": f"evt_{after}" if after else None,
        "last_sequence": EVENTS,
        "status": "completed",
        "heartbeat_ms": 15000,
    }
    block = f"retry: 1000\nevent: stream.attached\ndata: {json.dumps(told)}\n\n".encode()
    return b"%x\r\n%b\r\n" % (len(block), block)


def serve(peer: socket.socket) -> None:
    with peer:
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        buffer = b""
        while b"\r\n\r\n" not in buffer:
            more = peer.recv(65536)
            if not more:
                return
            buffer += more
        head = buffer.partition(b"\r\n\r\n")[0].decode("latin-1")
        try:
            if "/events" in head.split("\r\n")[0]:
                lines = dict(line.lower().split(": ", 1) for line in head.split("\r\n")[1:])
                after = int(lines.get("last-event-id", "b.0").split(".")[1])
                peer.sendall(
                    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
                    + attached(after)
                )
                peer.sendall(WHOLE if after == 0 else b"".join(BLOCKS[after:]) + b"0\r\n\r\n")
            else:
                run = {"id": "bench", "epoch": "b", "status": "running", "last_sequence": 0, "first_sequence": 1}
                body = json.dumps(run).encode()
                peer.sendall(
                    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%b"
                    % (len(body), body)
                )
        except OSError:
            return


def main() -> None:
    listener = socket.create_server(("127.0.0.1", 0), backlog=64)
    print(listener.getsockname()[1], flush=True)

    def accept() -> None:
        while True:
            threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    sys.stdin.read()


if __name__ == "__main__":
    main()
