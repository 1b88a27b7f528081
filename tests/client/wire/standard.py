"""An interpreter of the WHATWG algorithm for event streams, as naive as the standard writes it.

It shares nothing with the decoder but the shape of a frame. `limit` is our own addition (see reattach.wire.eventstream).
"""

from __future__ import annotations

import codecs
from typing import NamedTuple

from reattach.wire.frame import Frame


class Reading(NamedTuple):
    frames: list[Frame]
    last_id: str
    retry: float | None
    growing: bool
    oversize: bool


def decode(body: bytes) -> str:
    """UTF-8 decode: at most one byte order mark goes, what is invalid becomes U+FFFD."""
    if body[:3] == codecs.BOM_UTF8:
        body = body[3:]
    return body.decode("utf-8", errors="replace")


def lines_of(body: bytes) -> tuple[list[bytes], bytes]:
    """The ended lines and what is left; on bytes, since line ends are ASCII and the limit counts bytes."""
    lines, line, at = [], bytearray(), 0
    while at < len(body):
        if body[at : at + 2] == b"\r\n":
            lines.append(bytes(line))
            line.clear()
            at += 2
        elif body[at] in b"\r\n":
            lines.append(bytes(line))
            line.clear()
            at += 1
        else:
            line.append(body[at])
            at += 1
    return lines, bytes(line)


def interpret(body: bytes, limit: int = 1 << 30) -> Reading:
    if body[:3] == codecs.BOM_UTF8:
        body = body[3:]
    elif codecs.BOM_UTF8.startswith(body):
        body = b""  # it may still become a mark
    frames: list[Frame] = []
    data = event = id_buffer = last_id = ""
    retry: float | None = None
    size = 0
    ended, rest = lines_of(body)
    for raw, is_ended in [*((line, True) for line in ended), (rest, False)]:
        if raw:
            cost = len(raw) + 1 + (0 if raw[:1] == b":" else size)
            if cost > limit:
                return Reading(frames, last_id, retry, False, True)
        if not is_ended:
            break
        line = raw.decode("utf-8", errors="replace")
        if line == "":
            size = 0
            last_id = id_buffer
            if data == "":
                event = ""
                continue
            if data.endswith("\n"):
                data = data[:-1]
            frames.append(Frame(event if event != "" else "message", data, last_id))
            data = event = ""
            continue
        if line.startswith(":"):
            continue
        size += len(raw) + 1
        if ":" in line:
            name, value = line.split(":", 1)
            if value.startswith(" "):
                value = value[1:]
        else:
            name, value = line, ""
        if name == "event":
            event = value
        elif name == "data":
            data += value + "\n"
        elif name == "id":
            if "\0" not in value:
                id_buffer = value
        elif name == "retry" and value and all(digit in "0123456789" for digit in value):
            # The number without Python's limit of 4,300 digits, and with ours.
            number = 0
            for digit in value:
                number = min(number * 10 + int(digit), 10**12)
            retry = number / 1000
    growing = size > 0 or (rest != b"" and rest[:1] != b":")
    return Reading(frames, last_id, retry, growing, False)
