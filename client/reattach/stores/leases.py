"""Who holds a lease: telling one process from every other, and a dead holder from a living one.

Facts of the operating system and one decision, `taken`. Nothing here stores or waits; the tables are each store's own. Safety
never rests on this page: a holder wrongly thought dead is fenced by the lease token and can write nothing more. What rests on
it is how soon the next process may go on.

Rules and their sources
    * A dead holder is replaced at once on its host, elsewhere when its time is over (surface.md 1.4, "follows one run in two
      processes").
    * A process is named by host, boot, pid and start, since a pid alone is given out again (surface.md section 5).
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

from reattach.stores.base import Holder

Alive = Callable[[Holder], bool | None]
"""Whether a holder's process lives; None where nobody here can know."""

_PROC = Path("/proc")
_ENDED = frozenset("ZXx")  # a zombie's file is still there until its parent has asked, but it writes nothing any more


def current_holder(client: str) -> Holder:
    """Return the holder that this process is now, for one client in it. Read at each call: a fork is another process."""
    pid = os.getpid()
    return Holder(socket.gethostname(), _boot(), pid, _started(pid) or "", client)


def is_alive(holder: Holder) -> bool | None:
    """Return whether the holder's process lives; None if it is not this host's, or its processes cannot be seen from here."""
    if holder.host != socket.gethostname():
        return None
    boot, _, space = holder.boot.partition("/")
    own_boot, _, own_space = _boot().partition("/")
    if boot != own_boot:
        return False
    if space != own_space or os.name != "posix":
        return None  # another container's pid 7 is not our pid 7
    started = _started(holder.pid)
    return started is not None and started == holder.started


def is_alive_of_many(holder: Holder) -> bool | None:
    """As `is_alive`, for a journal that hosts share: there, another boot of a host's name may be another machine's."""
    return is_alive(holder) if holder.boot.partition("/")[0] == _boot().partition("/")[0] else None


def taken(holder: Holder, expires: float, now: float, alive: Alive) -> bool:
    """Return whether a lease that `holder` has until `expires` (wall clock, s) is still its own at `now`."""
    return now < expires and alive(holder) is not False


def holder_json(holder: Holder) -> str:
    """Return a holder as the JSON text that is stored."""
    return json.dumps(holder._asdict(), ensure_ascii=False)


def holder_of(text: str) -> Holder:
    """Return the holder that `holder_json` wrote."""
    return Holder(**json.loads(text))


def _boot() -> str:
    """Return what names this boot and, after a slash, this process's view of process numbers; "" where it is not told."""
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text("ascii").strip()
    except OSError:
        return ""
    try:
        return f"{boot}/{os.readlink(_PROC / 'self/ns/pid')}"
    except OSError:
        return boot


def _started(pid: int) -> str | None:
    """Return when a process began, in the system's own words; None if there is no such process."""
    if (_PROC / "self/stat").exists():
        try:
            told = (_PROC / str(pid) / "stat").read_bytes()
        except OSError:
            return None
        # The name in parentheses may hold anything, also spaces and ")": fields are counted from behind the last one.
        fields = told.rpartition(b")")[2].split()
        return None if fields[0].decode() in _ENDED else fields[19].decode()
    try:
        shown = subprocess.run(["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, timeout=5)
    except (OSError, subprocess.SubprocessError):
        return ""
    return shown.stdout.strip() or None
