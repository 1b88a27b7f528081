"""The file that lines are appended to: durable when `append` returns, cut back to what was durable when it does not.

Knows bytes and nothing of what they say. After an error of the disk it is not known what reached it (of a failed fsync the
system may even forget that it failed): so the file is cut back, and nothing is appended until that was done. OSErrors pass.
"""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from pathlib import Path

_sync = getattr(os, "fdatasync", os.fsync)  # the size is of the data: fdatasync carries it, too

MODE = 0o600  # prompts and answers are in it


class LogFile:
    """An open file. One thread appends at a time; any thread reads.

    Args:
        path: The file, which is there.
        size: Bytes from its beginning that are good; what is behind them is cut off by the first `append`.
        folder: Where its name is, which may not be on disk yet: also made so by the first `append`.
    """

    def __init__(self, path: Path, size: int, folder: Path) -> None:
        self._handle = os.open(path, os.O_RDWR)
        self._size = size
        self._doubtful = True
        """Whether there may be more in the file than what is good."""
        self._folder: Path | None = folder

    @property
    def size(self) -> int:
        """Bytes that are durable."""
        return self._size

    def append(self, data: bytes) -> int:
        """Add bytes durably and return where they begin; an error keeps nothing of them."""
        at = self._size
        self._settle()
        self._doubtful = True
        try:
            write_all(self._handle, data, at)
            _sync(self._handle)
        except BaseException:
            with suppress(OSError):  # then the next append tries again, or the next process finds a torn end
                self._cut()
            raise
        self._doubtful = False
        self._size = at + len(data)
        return at

    def settle(self) -> None:
        """Cut off what is not good and make the rest durable: a killed process may have written it and not flushed it."""
        self._settle()
        _sync(self._handle)

    def read(self, offset: int, length: int) -> bytes:
        """Return bytes of the good part; fewer if the file has become shorter."""
        parts = []
        while length > 0:
            part = os.pread(self._handle, length, offset)
            if not part:
                break
            parts.append(part)
            offset += len(part)
            length -= len(part)
        return b"".join(parts)

    def close(self) -> None:
        """Close it. Never raises."""
        with suppress(OSError):
            os.close(self._handle)

    def _settle(self) -> None:
        if self._folder is not None:
            flush_folder(self._folder)
            self._folder = None
        if self._doubtful:
            self._cut()

    def _cut(self) -> None:
        if os.fstat(self._handle).st_size != self._size:
            os.ftruncate(self._handle, self._size)
        self._doubtful = False


def write_all(handle: int, data: bytes, at: int) -> None:
    """Write all bytes at a place of a file, however little it takes at once."""
    rest = memoryview(data)
    while rest:
        written = os.pwrite(handle, rest, at)
        rest = rest[written:]
        at += written


def make(path: Path, data: bytes, mode: int = MODE) -> None:
    """Put a new file in place of what is at `path`, whole or not at all, durably up to the folder's next flush."""
    fresh = path.with_name(path.name + ".new")
    fresh.unlink(missing_ok=True)
    handle = os.open(fresh, os.O_CREAT | os.O_EXCL | os.O_RDWR, mode)
    try:
        os.chmod(fresh, mode)
        write_all(handle, data, 0)
        _sync(handle)
        os.replace(fresh, path)
    except BaseException:
        with suppress(OSError):
            fresh.unlink()
        raise
    finally:
        os.close(handle)


def flush_folder(path: Path) -> None:
    """Make names in a folder durable, where the system can."""
    try:
        handle = os.open(path, os.O_RDONLY)
    except OSError:
        return  # a folder that may not be listed, or a system that opens no folders
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno != errno.EINVAL:  # a file system that knows no such thing
            raise
    finally:
        os.close(handle)
