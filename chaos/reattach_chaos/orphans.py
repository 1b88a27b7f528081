"""No process of ours outlives who began it: `at_stdins_end` for a child that was started, `die_with` for one that was forked.

A started child ends with its stdin; a forked one has none that its parent's end would close, and may wait for what never comes:
it calls `die_with` first. Linux only, as the nurseries are; elsewhere the child is on its own. It starts no thread, which a fork
would not survive.
"""

import asyncio
import ctypes
import os
import signal
import sys
from collections.abc import Callable

_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


def die_with(parent: int) -> None:
    """Have the kernel end this process with SIGKILL when its parent ends, however that comes.

    Args:
        parent: Its process id, taken before the fork: who has lost it already ends now.
    """
    if _LIBC is None:
        return
    if _LIBC.prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG)")
    if os.getppid() != parent:
        os._exit(128 + signal.SIGKILL)


def at_stdins_end(end: Callable[[], None]) -> None:
    """Have the running loop call this once stdin has ended; what comes there before is not read as anything."""
    loop, stdin = asyncio.get_running_loop(), sys.stdin.fileno()

    def heard() -> None:
        if not os.read(stdin, 1024):
            loop.remove_reader(stdin)
            end()

    loop.add_reader(stdin, heard)
