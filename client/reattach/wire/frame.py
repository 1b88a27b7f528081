"""A frame: one unit as the transport delivered it, before a profile gave it meaning."""

from __future__ import annotations

from typing import NamedTuple


class Frame(NamedTuple):
    """One dispatched block of an event stream (a WebSocket message or an item of a page takes the same shape).

    `event` is "message" where the block named none. `id` is the last event id that was in force (sticky, "" for none): only a
    hint where the profile finds identity in the data. `data` is never None; a block without data is not a frame.
    """

    event: str
    data: str
    id: str
