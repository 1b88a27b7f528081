"""No process of ours outlives who forked it: `die_with`, called first by a child that is forked and not started.

A started child ends with its stdin; a forked one has none that its parent's end would close, and may wait for what never comes.
Linux only, as the nurseries are; elsewhere the child is on its own. It starts no thread, which a fork would not survive.
"""

import ctypes
import os
import signal
import sys

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
