"""The preloaded library of disk faults: how it is built, and how a process that has it preloaded tells it what to do."""

from __future__ import annotations

import ctypes
import errno
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

SOURCE = Path(__file__).parent / "client" / "disk" / "faults.c"

OFF, ERROR, ERROR_FROM_HERE, SHORT, KILL_BEFORE, KILL_AFTER, KILL_TORN = range(7)  # as in the source


class Fault(NamedTuple):
    """What the n-th call does."""

    mode: int
    code: int = 0

    @property
    def kills(self) -> bool:
        return self.mode in (KILL_BEFORE, KILL_AFTER, KILL_TORN)


FAULTS = {
    "full": Fault(ERROR, errno.ENOSPC),  # one call finds the disk full
    "filling": Fault(SHORT, errno.ENOSPC),  # one write takes less than asked, the next finds it full
    "full for good": Fault(ERROR_FROM_HERE, errno.ENOSPC),
    "broken": Fault(ERROR, errno.EIO),
    "broken for good": Fault(ERROR_FROM_HERE, errno.EIO),
    "killed before": Fault(KILL_BEFORE),
    "killed after": Fault(KILL_AFTER),
    "killed in the middle": Fault(KILL_TORN),  # half of a write is done
}


def build(folder: Path) -> Path:
    """Return the library, built with the system's C compiler."""
    made = folder / "faults.so"
    done = subprocess.run(
        [shutil.which("cc") or "cc", "-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o", made, SOURCE, "-ldl"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return made


class Faults:
    """The library as this very process has it preloaded."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL(None)
        self._library.faults_arm.argtypes = (ctypes.c_char_p, ctypes.c_long, ctypes.c_int, ctypes.c_int)
        self._library.faults_calls.restype = ctypes.c_long

    def arm(self, folder: Path, number: int, fault: Fault) -> None:
        """Begin to count calls on files below a folder; the n-th does what the fault says."""
        self._library.faults_arm(str(folder).encode(), number, fault.mode, fault.code)

    def disarm(self) -> None:
        """Leave every call to the system."""
        self._library.faults_arm(b"", 0, OFF, 0)

    @property
    def calls(self) -> int:
        return self._library.faults_calls()

    @property
    def fired(self) -> bool:
        return bool(self._library.faults_fired())
