"""The journal in memory: it forgets with the process, so it is for tests and for ":memory:".

It keeps the whole law of `base` but durability, and keeps each event as the same text that the other stores write, so that what
is read back went through the same door. Closing keeps the content: a second client may open the same object again, which is how
tests play the death of a process. No SQL, hence no transactions.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from reattach.core.messages import Mark
from reattach.stores.base import (
    Busy,
    Entry,
    Holder,
    Intent,
    Lease,
    LeaseGone,
    Refusal,
    RunRow,
    Transaction,
    Write,
)
from reattach.stores.check import batch_json, forgettable, gap_entry, joined, length_of, refusal
from reattach.stores.entry import pruned_element
from reattach.stores.leases import Alive, is_alive, taken


@dataclass(slots=True)
class _Held:
    """A lease as it stands; `holder` is None after it was given back."""

    token: int
    holder: Holder | None
    since: float
    expires: float


@dataclass(slots=True)
class _Log:
    """One run's row and its entries: `entries[position - pruned - 1]` is the parsed element; up to `pruned` a gap stands."""

    row: RunRow
    entries: list[Mapping[str, Any]] = field(default_factory=list)
    incarnation_starts: int = 0
    pruned: int = 0
    gap: Mapping[str, Any] | None = None

    @property
    def position(self) -> int:
        """The committed position."""
        return self.pruned + len(self.entries)

    def last_gap(self) -> int:
        """Return the position of the last gap among the entries, 0 if there is none."""
        return max((at for at, element in enumerate(self.entries, self.pruned + 1) if "gap" in element), default=0)

    def after(self, position: int, limit: int) -> list[Entry]:
        """Return up to `limit` entries from `position` + 1 on."""
        begin = max(position, self.pruned)
        found = self.entries[begin - self.pruned : begin - self.pruned + limit]
        entries = [Entry(at, element) for at, element in enumerate(found, begin + 1)]
        return entries if self.gap is None or position >= self.pruned else [Entry(self.pruned, self.gap), *entries]


class MemoryStore:
    """A journal that lives as long as this object.

    Args:
        wall: The wall clock, in seconds since 1970: times of rows and the end of leases.
        alive: Whether a lease's holder lives; tests that play several processes in one bring their own.
    """

    name = ":memory:"
    shared = False
    transactions_apart = False

    def __init__(self, *, wall: Callable[[], float] = time.time, alive: Alive = is_alive) -> None:
        self._wall = wall
        self._alive = alive
        self._lock = threading.RLock()
        self._logs: dict[int, _Log] = {}
        self._last_run = 0
        self._marks: dict[tuple[int, str], int] = {}
        self._leases: dict[tuple[int, str], _Held] = {}

    def open(self) -> None:
        """Do nothing: the content is here already."""

    def close(self) -> None:
        """Do nothing: the content stays for the next `open`."""

    # runs ---------------------------------------------------------------------------------------------------------

    def intend(self, intent: Intent) -> tuple[RunRow, bool]:
        """See `Store.intend`."""
        with self._lock:
            known = self._intended(intent)
            if known is not None:
                return known, False
            return self._add(**intent._asdict(), sent_at=self._now()), True

    def created(self, run: int, *, run_id: str, session_id: str | None, status: str) -> RunRow:
        """See `Store.created`."""
        with self._lock:
            mine = self.row(run)
            twin = self.find(mine.server, mine.profile, run_id=run_id)
            kept, changes = joined(mine, twin, run_id, session_id, status)
            if kept != run:
                del self._logs[run]
            return self._change(kept, **changes)

    def forget(self, run: int) -> None:
        """See `Store.forget`."""
        with self._lock:
            log = self._logs.get(run)
            if log is not None and forgettable(log.row):
                del self._logs[run]

    def adopt(self, server: str, profile: str, run_id: str, *, continues: str | None = None) -> RunRow:
        """See `Store.adopt`."""
        with self._lock:
            known = self.find(server, profile, run_id=run_id)
            if known is None:
                return self._add(server, profile, run_id=run_id, continues=continues)
            if continues is None or known.continues is not None:
                return known
            return self._change(known.run, continues=continues)

    def row(self, run: int) -> RunRow:
        """See `Store.row`."""
        with self._lock:
            return self._logs[run].row

    def find(self, server: str, profile: str, *, key: str | None = None, run_id: str | None = None) -> RunRow | None:
        """See `Store.find`."""
        if (key is None) == (run_id is None):
            raise ValueError("find takes a key or a run id")
        for row in self.rows(server, profile):
            if (row.key == key) if key is not None else (row.run_id == run_id):
                return row
        return None

    def continuing(self, server: str, profile: str, run_id: str) -> list[RunRow]:
        """See `Store.continuing`."""
        return [row for row in self.rows(server, profile) if row.continues == run_id]

    def rows(self, server: str | None = None, profile: str | None = None) -> list[RunRow]:
        """See `Store.rows`."""
        with self._lock:
            rows = [log.row for log in reversed(self._logs.values())]
        return [row for row in rows if server in (None, row.server) and profile in (None, row.profile)]

    def hand_out(self, run: int) -> None:
        """See `Store.hand_out`."""
        with self._lock:
            if run in self._logs:
                self._change(run, handed_out=True)

    def need(self, run: int, word: str) -> None:
        """See `Store.need`."""
        with self._lock:
            if run in self._logs:
                self._change(run, needs=word)

    # events -------------------------------------------------------------------------------------------------------

    def commit(self, writes: Sequence[Write]) -> list[Refusal | None]:
        """See `Store.commit`."""
        told = [(write, length_of(write), json.loads(batch_json(write))) for write in writes]
        with self._lock:
            return [self._keep(write, entries) for write, _, entries in told]

    def _keep(self, write: Write, entries: list[Mapping[str, Any]]) -> Refusal | None:
        log = self._logs.get(write.run)
        held = self._leases.get((write.run, ""))
        refused = refusal(write, log.position if log else -1, held.token if held else None)
        if refused is not None or log is None:
            return refused
        if write.gap is not None:
            entries = [gap_entry(write.gap)]
            log.incarnation_starts = write.mark.position
            self._change(write.run, incarnation=log.row.incarnation + 1)
        log.entries += entries
        changes: dict[str, Any] = {"committed": write.mark}
        if write.status is not None:
            changes["status"] = write.status
        if write.outcome is not None:
            changes |= {"outcome": write.outcome, "settled_at": self._now()}
            changes["again_to"] = min(log.row.again_to, write.mark.position)
        self._change(write.run, **changes)
        return None

    def read(self, run: int, after: int, limit: int) -> list[Entry]:
        """See `Store.read`."""
        with self._lock:
            return self._logs[run].after(after, limit)

    def newest(self, run: int, limit: int) -> list[Entry]:
        """See `Store.newest`."""
        with self._lock:
            log = self._logs[run]
            return self.read(run, max(log.incarnation_starts, log.pruned, log.position - limit), limit)

    def rewind(self, lease: Lease, mark: Mark) -> RunRow:
        """See `Store.rewind`."""
        with self._lock:
            self._must_own(lease)
            log = self._logs[lease.run]
            again_to = max(log.row.again_to, log.position)
            del log.entries[mark.position - log.pruned :]
            if log.incarnation_starts > mark.position:
                log.incarnation_starts = log.last_gap()
            return self._change(lease.run, committed=mark, again_to=again_to)

    # retention ----------------------------------------------------------------------------------------------------

    def prune(self, run: int, upto: int) -> bool:
        """See `Store.prune`; all of it at once."""
        with self._lock:
            log = self._logs[run]
            removed = log.entries[: max(0, upto - log.pruned)]
            if removed:
                del log.entries[: len(removed)]
                log.pruned += len(removed)
                whole = all("gap" not in element for element in removed) and (
                    log.gap is None or log.gap["gap"]["missing"] is not None
                )
                log.gap = json.loads(pruned_element(removed[-1].get("cursor"), log.pruned if whole else None))
            return False

    def compact(self) -> bool:
        """Return False: what was removed takes no room here."""
        return False

    # marks and leases ---------------------------------------------------------------------------------------------

    def applied(self, run: int, consumer: str) -> int:
        """See `Store.applied`."""
        return self._marks.get((run, consumer), 0)

    def consumers(self, run: int) -> dict[str, int]:
        """See `Store.consumers`."""
        with self._lock:
            names = {consumer for held, consumer in self._leases if held == run and consumer}
            return {consumer: self.applied(run, consumer) for consumer in sorted(names)}

    def note(self, lease: Lease, position: int) -> None:
        """See `Store.note`; a mark of a lost lease, or above the committed position, is left out."""
        with self._lock:
            if self._owns(lease) and position <= self._logs[lease.run].position:
                self._raise_mark(lease, position)

    def carry(self) -> None:
        """Do nothing: a noted mark is kept at once here."""

    def mark(self, lease: Lease, position: int) -> None:
        """See `Store.mark`."""
        with self._lock:
            self._must_own(lease)
            committed = self._logs[lease.run].position
            if position > committed:
                raise ValueError(f"applied {position} would be above committed {committed}")
            self._raise_mark(lease, position)

    def lease(self, run: int, consumer: str, holder: Holder, seconds: float) -> Lease | Busy:
        """See `Store.lease`."""
        with self._lock:
            now = self._wall()
            held = self._leases.get((run, consumer))
            if held is not None and held.holder is not None and taken(held.holder, held.expires, now, self._alive):
                return Busy(held.holder, datetime.fromtimestamp(held.since, UTC))
            token = held.token + 1 if held is not None else 1
            self._leases[run, consumer] = _Held(token, holder, now, now + seconds)
            return Lease(run, consumer, token)

    def renew(self, leases: Sequence[Lease], seconds: float) -> list[Lease]:
        """See `Store.renew`."""
        with self._lock:
            lost = []
            for lease in leases:
                held = self._leases.get((lease.run, lease.consumer))
                if held is None or held.token != lease.token or held.holder is None:
                    lost.append(lease)
                else:
                    held.expires = self._wall() + seconds
            return lost

    def release(self, lease: Lease) -> None:
        """See `Store.release`."""
        with self._lock:
            if self._owns(lease):
                self._leases[lease.run, lease.consumer].holder = None

    def holder(self, run: int, consumer: str) -> Busy | None:
        """See `Store.holder`."""
        with self._lock:
            held = self._leases.get((run, consumer))
            if held is None or held.holder is None or not taken(held.holder, held.expires, self._wall(), self._alive):
                return None
            return Busy(held.holder, datetime.fromtimestamp(held.since, UTC))

    # the user's own transaction -----------------------------------------------------------------------------------

    def begin(self, lease: Lease, *, expected: int) -> Transaction:
        """Raise `NotImplementedError`: there is no SQL here."""
        raise NotImplementedError('a journal in memory has no transactions: use a SQLite file, such as "runs.db"')

    def changed(self) -> int:
        """Return 0: no other process can write here."""
        return 0

    # inside -------------------------------------------------------------------------------------------------------

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self._wall(), UTC)

    def _owns(self, lease: Lease) -> bool:
        held = self._leases.get((lease.run, lease.consumer))
        return held is not None and held.token == lease.token

    def _must_own(self, lease: Lease) -> None:
        if not self._owns(lease):
            raise LeaseGone(f"lease token {lease.token} is not the current one")

    def _raise_mark(self, lease: Lease, position: int) -> None:
        whose = (lease.run, lease.consumer)
        self._marks[whose] = max(position, self._marks.get(whose, 0))

    def _intended(self, intent: Intent) -> RunRow | None:
        if intent.key is not None:
            return self.find(intent.server, intent.profile, key=intent.key)
        rows = self.continuing(intent.server, intent.profile, intent.continues or "")
        return next((row for row in rows if row.request_sha256 == intent.request_sha256), None)

    def _add(self, server: str, profile: str, **told: Any) -> RunRow:
        self._last_run += 1
        now = self._now()
        row = RunRow(self._last_run, server, profile, created_at=now, updated_at=now, **told)
        self._logs[row.run] = _Log(row)
        return row

    def _change(self, run: int, **changes: Any) -> RunRow:
        log = self._logs[run]
        log.row = log.row._replace(**changes, updated_at=self._now())
        return log.row
