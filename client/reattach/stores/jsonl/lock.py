"""FILE-lock: a JSONL journal is one process's at a time, and who comes second is told who has it.

The lock is the system's and ends with the process, however that ends. What is written in the file is only for people.
"""

from __future__ import annotations

import errno
import json
import os
import socket
from contextlib import suppress
from pathlib import Path

from reattach.stores.base import StoreFailed, StoreTaken

try:
    import fcntl
except ImportError:  # pragma: no cover  # Windows
    fcntl = None  # type: ignore[assignment]  # there is no such module there


class Lock:
    """The right to use a journal, from now to `release`.

    Args:
        path: The lock's file.
        mode: Its permissions, if it is made.
        now: The time, for people.

    Raises:
        StoreTaken: Another process has it.
        StoreFailed: This system, or this file system, has no such locks.
    """

    def __init__(self, path: Path, mode: int, now: str) -> None:
        if fcntl is None:  # pragma: no cover
            raise StoreFailed("a JSONL journal needs file locks, which this system has not; use a SQLite file")
        self._handle = os.open(path, os.O_RDWR | os.O_CREAT, mode)
        try:
            try:
                fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                if error.errno in (errno.EAGAIN, errno.EACCES):
                    raise StoreTaken(_named(self._handle)) from None
                raise StoreFailed(f"this file system has no file locks ({error.strerror}); use a local disk") from error
            with suppress(OSError):  # a full disk costs others the name, not us the journal
                told = {"pid": os.getpid(), "host": socket.gethostname(), "since": now}
                os.ftruncate(self._handle, 0)
                os.pwrite(self._handle, json.dumps(told).encode() + b"\n", 0)
        except BaseException:
            os.close(self._handle)
            raise

    def release(self) -> None:
        """Leave the journal to others, at once: also while a child that was just forked still has what it inherits open."""
        with suppress(OSError):
            fcntl.flock(self._handle, fcntl.LOCK_UN)
        self.drop()

    def drop(self) -> None:
        """In a forked child: let go of what was inherited. The lock stays the parent's."""
        with suppress(OSError):
            os.close(self._handle)


def _named(handle: int) -> str:
    try:
        told = json.loads(os.pread(handle, 4096, 0))
        return f"pid {told['pid']} on {told['host']} since {told['since']}"
    except (OSError, ValueError, KeyError, TypeError):
        return "another process"
