"""Which log a text names: `memory`, the path of a file, or the address of a Redis. Nothing is opened.

What only some logs need is imported for those. Checked by tests/mockserver/test_cli.py.
"""

import importlib.util
from pathlib import Path
from urllib.parse import urlsplit

from reattach_mockserver.logs.base import EventLog

SHARED = ("redis", "rediss", "unix")
"""The schemes of logs that several processes may share."""


class NoSuchLog(Exception):
    """The text names no log that can be had here; it says what to do, and holds no password."""


def is_shared(place: str) -> bool:
    """Tell whether several processes may share the log."""
    return _scheme(place) in SHARED


def log_at(place: str, *, lease: float) -> EventLog:
    """Return the log, not yet opened.

    Args:
        place: See the module.
        lease: Seconds after which the runs of a replica that was killed are taken over, where replicas share the log.

    Raises:
        NoSuchLog: See there.
    """
    if place == "memory":
        from reattach_mockserver.logs.memory import MemoryLog

        return MemoryLog()
    scheme = _scheme(place)
    if scheme in SHARED:
        if importlib.util.find_spec("redis") is None:
            raise NoSuchLog("redis not installed. Run: pip install 'reattach[mockserver,redis]'")
        from reattach_mockserver.logs.redis.log import RedisLog

        try:
            return RedisLog(place, lease=lease)
        except ValueError:
            # The library's own words may quote the address.
            raise NoSuchLog(
                "this is no address of a Redis; expected redis://[user:password@]host[:port][/database]"
            ) from None
    if scheme:
        raise NoSuchLog(f"there is no log at {scheme}://; expected memory, a file, or redis://host:port/database")
    from reattach_mockserver.logs.sqlite import SqliteLog

    return SqliteLog(Path(place))


def _scheme(place: str) -> str:
    return urlsplit(place).scheme if "://" in place else ""
