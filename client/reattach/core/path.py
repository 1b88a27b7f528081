"""A path that buffers: connected, no bytes, and the head advances. When events are asked for by long polls, and when no longer.

A proxy that holds a stream's body back (or its head, too) passes a whole answer at once, so pages get through where a stream
does not. The stream is tried again later, each time later than before: a laptop leaves the network that did it.

Twice in a row, since once may be a wake-up that the server lost. A stream that was proven good takes all of it back. Nothing here
opens or closes; `rows_path.py` does.
"""

from __future__ import annotations

from reattach.core.messages import Notice
from reattach.core.moves import Effects, start
from reattach.core.state import State

STRIKES = 2
STREAM_AGAIN = 300.0
"""Seconds of long polls until the stream is tried again; doubled each time that the path still buffers."""
LATEST_AGAIN = 3_600.0


def struck(s: State, fx: Effects) -> State:
    """The stream held back what the status knows, once more: the second time in a row it is the path."""
    if s.by != "stream":
        return s
    held = min(s.held + 1, STRIKES)
    if held < STRIKES or s.held >= STRIKES:
        return s._replace(held=held)
    if not s.rules.falls_back:
        fx.append(Notice("buffered", "the path holds events back; they come late, as it lets them through"))
        return s._replace(held=held)
    fx.append(
        Notice("buffered", "the path holds events back; asking by long polls from now on, by a stream again later")
    )
    seconds = min(LATEST_AGAIN, STREAM_AGAIN * 2.0 ** min(s.falls, 16))
    s = s._replace(by="longpoll", held=STRIKES - 1, falls=s.falls + 1)
    return start(s, fx, "stream", seconds, seconds * 1.25)


def proven(s: State) -> State:
    """The stream has brought all that the status knows: the path is good."""
    return s._replace(held=0, falls=0) if s.by == "stream" and s.fresh and s.held else s
