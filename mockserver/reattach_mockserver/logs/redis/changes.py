"""What a transaction is to find and to do, gathered as values: `scripts.COMMIT` finds and does it in one moment.

Each method adds to both lists; nothing here talks to Redis. What sets a run is a member of follows from its record, so that no
caller can forget one.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias, TypeVar

from reattach_mockserver.event import SETTLED, Entry, Stored
from reattach_mockserver.logs.base import RunRecord
from reattach_mockserver.logs.redis.keys import (
    ACTIVE,
    COUNTS,
    RUNS,
    WAKES,
    active_key,
    events_key,
    ids_key,
    operation_key,
    owned_key,
    run_key,
    session_active_key,
    session_key,
    session_runs_key,
    session_waiting_key,
    steps_key,
)
from reattach_mockserver.logs.redis.records import Row, hash_of, stream_fields, told_text
from reattach_mockserver.logs.redis.scripts import NUMBER, TELL

T = TypeVar("T")

Word: TypeAlias = str | bytes

_MOST = 1_000  # words; even, and well below what Lua can unpack


class Changes:
    """One transaction of one replica."""

    def __init__(self, replica: str) -> None:
        self._replica = replica
        self._checks: list[Sequence[Word]] = []
        self._commands: list[Sequence[Word]] = []

    def words(self) -> list[Word]:
        """Return the arguments of the script."""
        words: list[Word] = [str(len(self._checks))]
        for part in (*self._checks, *self._commands):
            words += [str(len(part)), *part]
        return words

    # What is to be found

    def expect(self, value: str, *command: Word) -> None:
        """Go on only if the command answers this; nothing is the empty text."""
        self._checks.append(["is", value, *command])

    def expect_below(self, limit: int, *command: Word) -> None:
        """Go on only if the command answers a smaller number."""
        self._checks.append(["below", str(limit), *command])

    def expect_run(self, row: Row) -> None:
        """Go on only if nobody has changed the run since it was read."""
        self.expect(row.version, "HGET", run_key(row.record.id), "version")

    def expect_new(self, run_id: str, entries: Iterable[Entry]) -> None:
        """Go on only if the run has none of these events."""
        for ids in _some([entry.id for entry in entries]):
            self._checks.append(["none", "", "HMGET", ids_key(run_id), *ids])

    # What is to be done

    def do(self, *command: Word) -> None:
        """Do a command."""
        self._commands.append(command)

    def create(self, row: Row, created_at: str) -> None:
        """Make a run that is not there, in a session that began at `created_at`."""
        record = row.record
        place = (record.principal, record.session_id)
        self.do("HSET", run_key(record.id), *hash_of(row), "number", NUMBER)
        self.do("ZADD", RUNS, NUMBER, record.id)
        self.do("ZADD", session_runs_key(*place), NUMBER, record.id)
        self.do("HSET", session_key(*place), "created_at", created_at, "last", record.id)
        self.do("HINCRBY", session_key(*place), "version", "1")
        self._join(row, NUMBER)

    def update(self, before: Row, after: Row) -> None:
        """Write a run as it is now, and tell the other replicas."""
        record = after.record
        place = (record.principal, record.session_id)
        self.do("HSET", run_key(record.id), *hash_of(after))
        was, is_now = before.record.status not in SETTLED, record.status not in SETTLED
        if (was, before.owner) != (is_now, after.owner):
            if was:
                self._leave(before)
            if is_now:
                self._join(after, str(record.number))
        if _waits(before.record) and not _waits(record):
            self.do("SREM", session_waiting_key(*place), record.id)
        elif _waits(record) and not _waits(before.record):
            self.do("SADD", session_waiting_key(*place), record.id)
        self.wake(record.id)

    def _join(self, row: Row, number: str) -> None:
        record = row.record
        self.do("ZADD", ACTIVE, number, record.id)
        self.do("ZADD", active_key(record.principal), number, record.id)
        self.do("SADD", session_active_key(record.principal, record.session_id), record.id)
        self.do("SADD", owned_key(row.owner), record.id)

    def _leave(self, row: Row) -> None:
        record = row.record
        self.do("ZREM", ACTIVE, record.id)
        self.do("ZREM", active_key(record.principal), record.id)
        self.do("SREM", session_active_key(record.principal, record.session_id), record.id)
        self.do("SREM", owned_key(row.owner), record.id)

    def append(self, record: RunRecord, new: Sequence[tuple[Entry, Stored]]) -> None:
        """Write new events of a run."""
        if not new:
            return
        for entry, event in new:
            self.do("XADD", events_key(record.id), f"{event.sequence}-0", *stream_fields(entry, event))
            told = entry.operation
            if told is not None:
                self.do(TELL, operation_key(record.principal, told.id), record.id, told_text(told), told.status)
        for places in _some([word for _, event in new for word in (event.id, str(event.sequence))]):
            self.do("HSET", ids_key(record.id), *places)
        for steps in _some([entry.step for entry, _ in new]):
            self.do("SADD", steps_key(record.id), *steps)
        self.do("HINCRBY", COUNTS, "events", str(len(new)))

    def drop(self, run_id: str, keep: int, lost: Sequence[Sequence[bytes]]) -> None:
        """Take back the events after `keep`, of which `lost` has sequence, id and step."""
        if lost:
            for some in _some(lost):
                self.do("XDEL", events_key(run_id), *(f"{int(each[0])}-0" for each in some))
                self.do("HDEL", ids_key(run_id), *(each[1] for each in some))
                self.do("SREM", steps_key(run_id), *(each[2] for each in some))
            # The next one will have a smaller id than the last that was taken back.
            self.do("XSETID", events_key(run_id), f"{keep}-0")
            self.do("HINCRBY", COUNTS, "events", str(-len(lost)))

    def wake(self, run_id: str) -> None:
        """Tell the other replicas that the run has changed."""
        self.do("PUBLISH", WAKES, f"{self._replica} run {run_id}")


def _some(words: Sequence[T]) -> Iterator[Sequence[T]]:
    """Yield them all, as many at a time as one command of a script can have."""
    for start in range(0, len(words), _MOST):
        yield words[start : start + _MOST]


def _waits(record: RunRecord) -> bool:
    return record.status == "requires_action" and record.resolution is None
