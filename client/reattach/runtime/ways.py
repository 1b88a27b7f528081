"""Which way events come: what the caller asked for by `transport=`, among what the profile can.

The one place where a transport's name is understood; which connection a stream uses is the wire's (`setup.py`).
"""

from __future__ import annotations

from typing import NamedTuple

from reattach.core.messages import By
from reattach.profiles.base import Profile

_ASKED: dict[str, By] = {"sse": "stream", "longpoll": "longpoll", "poll": "poll"}


class Chosen(NamedTuple):
    """How events are asked for first, and whether long polls may take over where a path holds a stream back."""

    by: By = "stream"
    falls_back: bool = False


def chosen(transport: object, profile: Profile) -> Chosen:
    """Return the way for a transport's name; a wire of the caller's own is like "auto".

    Raises:
        ValueError: There is no such transport, or the vendor has none such.
    """
    if not isinstance(transport, str) or transport == "auto":
        first = profile.ways[0]
        return Chosen(first, first == "stream" and "longpoll" in profile.ways)
    way = _ASKED.get(transport)
    if way is None:
        raise ValueError(
            f'transport={transport!r} is not known; there are "auto", "sse", "websocket", "longpoll" and "poll"'
        )
    if way not in profile.ways:
        raise ValueError(f"transport={transport!r}: {profile.name} has none such, only {' and '.join(profile.ways)}")
    return Chosen(way)
