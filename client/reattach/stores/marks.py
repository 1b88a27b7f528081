"""FILE-marks: applied marks that survive `kill -9` at once, without a flush to disk. Memory-mapped, shared by all processes.

A mark written here is in the system's page cache, so the process may die at any instruction; a power cut may lose or tear it,
therefore each commit, and the runtime's timer, carries noted marks into the journal's own table. Nothing here decides what a
mark is worth: whoever reads one names the incarnation and the lease token that it must carry, and drops it above the committed
position.

Format, little-endian
    * 64 bytes of head: 16 magic, 16 journal id, 4 CRC-32 of both, zeros.
    * One pair of slots of 32 bytes each for every lease, by its number from 1: incarnation, token, position (8 bytes each),
      CRC-32 of the three, begun with that of whose it is: run, consumer and the moment the lease was taken. Written
      alternately, so that a torn write leaves the one before.

A file that is missing, foreign, torn or another journal's is replaced, never trusted. It is never shortened, and grows by written
zeros, not by holes: in a mapping, a page that the disk has no room for would kill the process.
"""

from __future__ import annotations

import mmap
import os
import threading
from pathlib import Path
from struct import Struct
from zlib import crc32

_MAGIC = b"reattach-marks/1"
_HEAD = Struct("<16s16sI")
_BODY = Struct("<QQQ")
_SLOT = Struct("<QQQI")
_SLOT_BYTES = 32
_TOKENS = Struct("<8xQ24xQ")  # of both slots of a pair
_PAIR_BYTES = 2 * _SLOT_BYTES
_tokens, _body, _write = _TOKENS.unpack_from, _BODY.pack, _SLOT.pack_into  # every event's mark passes here
_HEAD_BYTES = 64
_GROWTH = 1 << 16  # bytes: a thousand leases


class Slots:
    """The slot pair of one lease while this process holds it. `note` may be called from any thread."""

    __slots__ = ("_at", "_lock", "_map", "_salt", "_token", "_turn", "carried", "incarnation", "position")

    def __init__(
        self, mapped: mmap.mmap | bytearray, at: int, salt: int, incarnation: int, token: int, position: int
    ) -> None:
        self._map = mapped
        self._at = at
        self._salt = salt
        self._turn = 0
        self._lock = threading.Lock()
        self.incarnation = incarnation
        self._token = token
        self.position = position
        self.carried = position

    def claim(self) -> None:
        """Make both slots this owner's, so that a former one can tell; only once the take is durable.

        Sooner, a take that then fails would have wiped out what the owner before it noted.
        """
        with self._lock:
            if max(_tokens(self._map, self._at)) > self._token:
                return  # a later owner's
            values = (self.incarnation, self._token, self.position)
            check = crc32(_BODY.pack(*values), self._salt)
            for at in (self._at, self._at + _SLOT_BYTES):
                _SLOT.pack_into(self._map, at, *values, check)

    def note(self, position: int) -> None:
        """Note a position, if it is a later one. About a microsecond; waits for nothing but another `note`."""
        with self._lock:
            if position <= self.position:
                return
            incarnation, token, mapped, at = self.incarnation, self._token, self._map, self._at
            first, second = _tokens(mapped, at)
            if first > token or second > token:
                return  # to write here would wipe out what the new owner noted
            check = crc32(_body(incarnation, token, position), self._salt)
            _write(mapped, at + self._turn, incarnation, token, position, check)
            self._turn ^= _SLOT_BYTES
            self.position = position


class MarksFile:
    """The mapped file. Made, grown and replaced only by who holds the journal's write lock; read and noted in by anyone.

    Args:
        path: The file.
        journal: The journal's id, 16 bytes: another journal's marks are not ours.
        mode: The file's permissions, whatever the umask: those of the journal.
    """

    def __init__(self, path: Path, journal: bytes, mode: int) -> None:
        self._path = path
        self._mode = mode
        self._journal = journal
        self._map = self._opened()

    @staticmethod
    def belongs(path: Path, journal: bytes) -> bool:
        """Return whether the file is there and this journal's, so that it would not be replaced."""
        try:
            with path.open("rb") as file:
                return file.read(_HEAD.size) == _head_of(journal) and path.stat().st_size >= _HEAD_BYTES
        except FileNotFoundError:
            return False

    def slots(self, number: int, whose: str, incarnation: int, token: int, position: int) -> Slots:
        """Return the slot pair of a lease, for its holder to note in; the file grows if it must."""
        at = _HEAD_BYTES + (number - 1) * _PAIR_BYTES
        if at + _PAIR_BYTES > len(self._map):
            self._grow(at + _PAIR_BYTES)
        return Slots(self._map, at, crc32(whose.encode()), incarnation, token, position)

    def newest(self, number: int, whose: str, incarnation: int, token: int) -> int:
        """Return the newest position that was noted under this incarnation and token, 0 if none."""
        at = _HEAD_BYTES + (number - 1) * _PAIR_BYTES
        if at + _PAIR_BYTES > len(self._map) and not self._map_again(at + _PAIR_BYTES):
            return 0
        salt = crc32(whose.encode())
        found = 0
        for slot in (at, at + _SLOT_BYTES):
            told_incarnation, told_token, position, check = _SLOT.unpack_from(self._map, slot)
            if (told_incarnation, told_token) == (incarnation, token) and check == crc32(
                _BODY.pack(told_incarnation, told_token, position), salt
            ):
                found = max(found, position)
        return found

    def flush(self) -> None:
        """Make what is noted durable."""
        self._map.flush()

    def _opened(self) -> mmap.mmap:
        if self.belongs(self._path, self._journal):
            return self._mapped()
        # Replaced by name, never in place: a process may still have the old one mapped.
        fresh = self._path.with_name(self._path.name + ".new")
        fresh.unlink(missing_ok=True)
        handle = os.open(fresh, os.O_CREAT | os.O_EXCL | os.O_WRONLY, self._mode)
        try:
            os.chmod(fresh, self._mode)
            os.write(handle, _head_of(self._journal).ljust(_GROWTH, b"\0"))
        finally:
            os.close(handle)
        os.replace(fresh, self._path)
        return self._mapped()

    def _mapped(self) -> mmap.mmap:
        with self._path.open("r+b") as file:
            return mmap.mmap(file.fileno(), 0)

    def _grow(self, wanted: int) -> None:
        size = self._path.stat().st_size
        if size < wanted:
            with self._path.open("r+b") as file:
                file.seek(size)
                file.write(bytes(-(-wanted // _GROWTH) * _GROWTH - size))
        # The old mapping is left to those who still hold slots in it; both show the same pages.
        self._map = self._mapped()

    def _map_again(self, wanted: int) -> bool:
        """Map what another process has added; False if the file does not reach that far."""
        try:
            if self._path.stat().st_size < wanted:
                return False
            self._map = self._mapped()
        except OSError:
            return False
        return True


class PrivateMarks:
    """In place of the file where the journal is no file: marks that only this process can read, until they are carried."""

    def slots(self, number: int, whose: str, incarnation: int, token: int, position: int) -> Slots:
        """Return a slot pair for a lease's holder."""
        return Slots(bytearray(_PAIR_BYTES), 0, crc32(whose.encode()), incarnation, token, position)

    def newest(self, number: int, whose: str, incarnation: int, token: int) -> int:
        """Return 0: what others noted is in the journal, or nowhere."""
        return 0


def _head_of(journal: bytes) -> bytes:
    head = _MAGIC + journal
    return head + crc32(head).to_bytes(4, "little")
