"""Which way events come: what the caller asked for by `transport=` or by the address, among what the profile can.

The one place where a transport's name is understood; which connection serves it is the wire's (`setup.py`).
"""

from __future__ import annotations

import importlib.util
from typing import NamedTuple
from urllib.parse import urlsplit

from reattach.core.messages import By
from reattach.profiles.base import Profile, Way, socket_way

_ASKED: dict[str, By] = {"sse": "stream", "longpoll": "longpoll", "poll": "poll"}


class Chosen(NamedTuple):
    """How events come.

    `by` is how they are asked for first, and `falls_back` whether long polls may take over where a path holds a stream back. A
    stream is asked for and read by `way`; `socket` says that it is a WebSocket.
    """

    by: By
    falls_back: bool
    way: Way
    socket: bool = False


def chosen(url: str, transport: object, profile: Profile) -> Chosen:
    """Return the way for an address and a transport's name; a wire of the caller's own is like "auto".

    Raises:
        ValueError: There is no such transport, the vendor has none such, the address contradicts it, or the library for it is not
            installed.
    """
    if _is_socket(url, transport):
        way = socket_way(profile)
        if way is None:
            raise ValueError(f'profile={profile.name!r} has no WebSocket; leave transport="websocket" or ws:// out')
        return Chosen("stream", False, way, socket=True)
    if not isinstance(transport, str) or transport == "auto":
        first = profile.ways[0]
        return Chosen(first, first == "stream" and "longpoll" in profile.ways, profile)
    by = _ASKED.get(transport)
    if by is None:
        raise ValueError(
            f'transport={transport!r} is not known; there are "auto", "sse", "websocket", "longpoll" and "poll"'
        )
    if by not in profile.ways:
        raise ValueError(f"transport={transport!r}: {profile.name} has none such, only {' and '.join(profile.ways)}")
    return Chosen(by, False, profile)


def _is_socket(url: str, transport: object) -> bool:
    """Whether events come by WebSocket: the transport says so, or the address does.

    Raises:
        ValueError: They contradict each other, or the library for it is not installed.
    """
    by_address = urlsplit(url).scheme in ("ws", "wss")
    if by_address and isinstance(transport, str) and transport not in ("auto", "websocket"):
        raise ValueError(f"url={url!r} asks for WebSocket and transport={transport!r} for something else; change one")
    if transport != "websocket" and not by_address:
        return False
    if isinstance(transport, str) and importlib.util.find_spec("websockets") is None:
        raise ValueError("WebSocket needs the package 'websockets'; install it with: pip install 'reattach[ws]'")
    return True
