"""The journal in one JSONL file, for one process: the methods of the seam.

Each write looks at the state, says what happened as lines, and returns when they are on disk. What needs no flush is in no line:
noted marks are in FILE-marks until a commit carries them; that a lease goes on or was given back is known in memory alone, since
with the process its lock on the file ends, and with that every lease in it.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any, cast

from reattach.core.messages import Mark
from reattach.stores.base import (
    Busy,
    Entry,
    Holder,
    Intent,
    Lease,
    Refusal,
    RunRow,
    StoreFailed,
    Transaction,
    Write,
)
from reattach.stores.check import batch_json, forgettable, gap_entry, length_of, refusal
from reattach.stores.jsonl import compaction, opening, rows
from reattach.stores.jsonl.journal import Journal, Saying
from reattach.stores.jsonl.tables import Held
from reattach.stores.leases import Alive, is_alive, taken
from reattach.stores.noted import Carried, must_be_committed, must_own, settle
from reattach.stores.times import moment, stamp

STEP = 4 << 20
"""Bytes of events that one call of `prune` removes: reading one line of it is all that it costs."""
WORTH = 1 << 16
"""Bytes that nobody can read any more, for which a person who asks gets the file written anew."""
OVERDUE = 16 << 20
"""Bytes for which that happens by itself, step by step, when marks are carried."""


class JsonlStore:
    """A journal in a JSONL file: lines that a person reads, appended and never changed. One process at a time has it.

    Args:
        path: The file; made at `open` if it is not there, its folder is not.
        wall: The wall clock, in seconds since 1970: times of lines and the end of leases.
        alive: Whether a lease's holder lives; tests that play several processes in one bring their own.
    """

    shared = False
    transactions_apart = False

    def __init__(
        self, path: str | os.PathLike[str], *, wall: Callable[[], float] = time.time, alive: Alive = is_alive
    ) -> None:
        self.name = os.fspath(path)
        self._path = Path(os.path.realpath(path))
        self._wall = wall
        self._alive = alive
        self._journal: Journal | None = None

    def open(self) -> None:
        """See `Store.open`; StoreTaken if another process has it."""
        if self._journal is None or not self._journal.is_open:
            self._journal = opening.enter(self._path, self._now())

    def close(self) -> None:
        """See `Store.close`."""
        journal, self._journal = self._journal, None
        if journal is None or not journal.is_open:
            return
        with suppress(StoreFailed), journal.turn:
            self._carry(journal)
        with journal.turn, journal.state:
            opening.leave(journal)

    # runs ---------------------------------------------------------------------------------------------------------

    def intend(self, intent: Intent) -> tuple[RunRow, bool]:
        """See `Store.intend`."""
        with self._writing() as journal:
            known = rows.intended(journal.tables, intent)
            if known is not None:
                return known, False
            return self._row_of(journal, rows.intend(journal.tables, intent, self._now())), True

    def created(self, run: int, *, run_id: str, session_id: str | None, status: str) -> RunRow:
        """See `Store.created`."""
        with self._writing() as journal:
            return self._row_of(journal, rows.created(journal.tables, run, run_id, session_id, status, self._now()))

    def forget(self, run: int) -> None:
        """See `Store.forget`."""
        with self._writing() as journal:
            row = journal.tables.rows.get(run)
            if row is not None and forgettable(row):
                journal.say([Saying("forgotten", {"run": run, "at": self._now()})])

    def adopt(self, server: str, profile: str, run_id: str, *, continues: str | None = None) -> RunRow:
        """See `Store.adopt`."""
        with self._writing() as journal:
            known = journal.tables.find(server, profile, None, run_id)
            if known is not None and (continues is None or known.continues is not None):
                return known
            said = rows.adopt(journal.tables, known, server, profile, run_id, continues, self._now())
            return self._row_of(journal, said)

    def row(self, run: int) -> RunRow:
        """See `Store.row`."""
        with self._reading() as journal:
            return journal.tables.rows[run]

    def find(self, server: str, profile: str, *, key: str | None = None, run_id: str | None = None) -> RunRow | None:
        """See `Store.find`."""
        with self._reading() as journal:
            return journal.tables.find(server, profile, key, run_id)

    def continuing(self, server: str, profile: str, run_id: str) -> list[RunRow]:
        """See `Store.continuing`."""
        return [row for row in self.rows(server, profile) if row.continues == run_id]

    def rows(self, server: str | None = None, profile: str | None = None) -> list[RunRow]:
        """See `Store.rows`."""
        with self._reading() as journal:
            return journal.tables.newest_first(server, profile)

    def hand_out(self, run: int) -> None:
        """See `Store.hand_out`."""
        self._change(run, handed_out=True)

    def need(self, run: int, word: str) -> None:
        """See `Store.need`."""
        self._change(run, needs=word)

    # events -------------------------------------------------------------------------------------------------------

    def commit(self, writes: Sequence[Write]) -> list[Refusal | None]:
        """See `Store.commit`; one line a write."""
        told = [(write, length_of(write), _events(write)) for write in writes]
        with self._writing() as journal:
            now = self._now()
            positions: dict[int, int] = {}
            refused: list[Refusal | None] = []
            said: list[Saying] = []
            for write, length, events in told:
                found = self._refused(journal, write, positions)
                refused.append(found)
                if found is None:
                    positions[write.run] = write.mark.position
                    said.append(_said(write, length, events, now))
            self._carry(journal, said)
            for write, refusal in zip(writes, refused, strict=True):
                if write.gap is not None and refusal is None:
                    journal.noted.begin_incarnation(write.run)
        return refused

    def read(self, run: int, after: int, limit: int) -> list[Entry]:
        """See `Store.read`."""
        return self._opened().read(run, after, limit)

    def newest(self, run: int, limit: int) -> list[Entry]:
        """See `Store.newest`."""
        with self._reading() as journal:
            last = journal.tables.rows[run].committed.position
            behind = journal.tables.logs[run].behind
            pruned = journal.tables.logs[run].pruned
        return self.read(run, max(behind, last - limit, pruned.at if pruned is not None else 0), limit)

    def rewind(self, lease: Lease, mark: Mark) -> RunRow:
        """See `Store.rewind`."""
        with self._writing() as journal:
            must_own(journal.lease_row(lease.run, lease.consumer), lease)
            row = journal.tables.rows[lease.run]
            again_to = max(row.again_to, row.committed.position)
            told = {"run": lease.run, "at": self._now(), "mark": list(mark), "again_to": again_to}
            return self._row_of(journal, Saying("rewound", told))

    # retention ----------------------------------------------------------------------------------------------------

    def prune(self, run: int, upto: int) -> bool:
        """See `Store.prune`; one line, the events stay in the file until it is compacted."""
        with self._writing() as journal:
            places, more = journal.tables.logs[run].oldest(upto, STEP)
            if places:
                pruned = journal.tables.logs[run].pruned
                last = journal.read(run, places[-1].last - 1, 1)[0]
                known = all(not place.gap for place in places) and (pruned is None or pruned.missing is not None)
                told = {"run": run, "at": self._now(), "upto": last.position, "until": last.element.get("cursor")}
                journal.say([Saying("pruned", {**told, "missing": last.position if known else None})])
            return more

    def compact(self) -> bool:
        """See `Store.compact`."""
        with self._writing() as journal:
            return compaction.step(journal, wasted=WORTH)

    # marks and leases ---------------------------------------------------------------------------------------------

    def applied(self, run: int, consumer: str) -> int:
        """See `Store.applied`."""
        with self._reading() as journal:
            row = journal.lease_row(run, consumer)
            return journal.noted.applied(run, consumer, row)

    def consumers(self, run: int) -> dict[str, int]:
        """See `Store.consumers`."""
        with self._reading() as journal:
            names = sorted(consumer for held, consumer in journal.tables.leases if held == run and consumer)
        return {name: self.applied(run, name) for name in names}

    def note(self, lease: Lease, position: int) -> None:
        """See `Store.note`; a mark of a lost lease, or above the committed position, never counts."""
        journal = self._journal
        if journal is not None and journal.is_open:
            journal.noted.note(lease, position)

    def carry(self) -> None:
        """See `Store.carry`; without a noted mark nothing is written."""
        with self._writing() as journal:
            self._carry(journal)
            with suppress(StoreFailed):  # a file that cannot be made smaller now is no fault of what was asked for
                compaction.step(journal, wasted=OVERDUE)

    def mark(self, lease: Lease, position: int) -> None:
        """See `Store.mark`."""
        with self._writing() as journal:
            row = must_own(journal.lease_row(lease.run, lease.consumer), lease)
            must_be_committed(position, row)
            if position > row.applied:
                journal.say([_mark(lease, position, self._now())])
            journal.noted.moved(lease, position)

    def lease(self, run: int, consumer: str, holder: Holder, seconds: float) -> Lease | Busy:
        """See `Store.lease`."""
        with self._writing() as journal:
            now = self._wall()
            held = journal.tables.leases.get((run, consumer))
            busy = self._busy(held, now)
            if busy is not None:
                return busy
            said = []
            applied = 0
            row = journal.lease_row(run, consumer)
            if row is not None:
                # What the last holder noted counts for the next one; under the new token it would not.
                applied = journal.noted.applied(run, consumer, row)
                if applied > row.applied:
                    said.append(_mark(Lease(run, consumer, row.token), applied, stamp(now)))
            journal.tables.rows[run]  # a KeyError of ours, before anything is written
            lease = Lease(run, consumer, held.token + 1 if held is not None else 1)
            number = held.number if held is not None else journal.tables.last_number + 1
            told = {**lease._asdict(), "number": number, "at": stamp(now), "holder": holder._asdict()}
            journal.say([*said, Saying("lease", told)])
            with journal.state:
                held = journal.tables.leases[run, consumer]
                held.holder, held.expires = holder, now + seconds
                row = journal.lease_row(run, consumer)
            assert row is not None
            journal.noted.hold(lease, row, applied)
            journal.noted.claim(lease)
            return lease

    def renew(self, leases: Sequence[Lease], seconds: float) -> list[Lease]:
        """See `Store.renew`; in memory."""
        with self._writing() as journal, journal.state:
            lost = []
            for lease in leases:
                held = _own(journal, lease)
                if held is None or held.holder is None:
                    lost.append(lease)
                    journal.noted.let_go(lease)
                else:
                    held.expires = self._wall() + seconds
            return lost

    def release(self, lease: Lease) -> None:
        """See `Store.release`; what it noted is carried first, that it is free is in memory."""
        with self._writing() as journal:
            self._carry(journal)
            with journal.state:
                held = _own(journal, lease)
                if held is not None:
                    held.holder = None
            journal.noted.let_go(lease)

    def holder(self, run: int, consumer: str) -> Busy | None:
        """See `Store.holder`."""
        with self._reading() as journal:
            return self._busy(journal.tables.leases.get((run, consumer)), self._wall())

    # the user's own transaction -----------------------------------------------------------------------------------

    def begin(self, lease: Lease, *, expected: int) -> Transaction:
        """Raise `NotImplementedError`: there is no SQL here."""
        raise NotImplementedError("a JSONL journal has no transactions")

    def changed(self) -> int:
        """See `Store.changed`: the number of the last line."""
        with self._reading() as journal:
            return journal.seq

    # inside -------------------------------------------------------------------------------------------------------

    @contextmanager
    def _writing(self) -> Iterator[Journal]:
        journal = self._opened()
        with journal.turn:
            journal.file  # noqa: B018  # not closed meanwhile
            yield journal

    @contextmanager
    def _reading(self) -> Iterator[Journal]:
        journal = self._opened()
        with journal.state:
            journal.file  # noqa: B018  # not closed meanwhile
            yield journal

    def _opened(self) -> Journal:
        if self._journal is None or not self._journal.is_open:
            raise StoreFailed("it is not open")
        return self._journal

    def _change(self, run: int, **changes: Any) -> None:
        with self._writing() as journal:
            row = journal.tables.rows.get(run)
            if row is not None and any(getattr(row, name) != value for name, value in changes.items()):
                journal.say([Saying("noted", {"run": run, "at": self._now(), **changes})])

    def _row_of(self, journal: Journal, said: Saying) -> RunRow:
        journal.say([said])
        return journal.tables.rows[said.told["run"]]

    def _refused(self, journal: Journal, write: Write, positions: dict[int, int]) -> Refusal | None:
        row = journal.tables.rows.get(write.run)
        held = journal.tables.leases.get((write.run, ""))
        position = positions.get(write.run, row.committed.position if row is not None else -1)
        return refusal(write, position, held.token if held is not None else None)

    def _carry(self, journal: Journal, said: list[Saying] | None = None) -> None:
        """Say what is to be said, with the marks that were noted."""
        said = said if said is not None else []
        now = self._now()
        positions = {each.told["run"]: each.told["mark"][0] for each in said}

        def raise_mark(lease: Lease, position: int) -> None:
            row = journal.lease_row(lease.run, lease.consumer)
            if row is None or row.token != lease.token or position <= row.applied:
                return
            if position <= positions.get(lease.run, row.committed):
                said.append(_mark(lease, position, now))

        carried: Carried = journal.noted.carry(raise_mark)
        if said:
            journal.say(said)
        settle(carried)

    def _busy(self, held: Held | None, now: float) -> Busy | None:
        if held is None or held.holder is None or not taken(held.holder, held.expires, now, self._alive):
            return None
        return Busy(held.holder, cast(datetime, moment(held.since)))

    def _now(self) -> str:
        return stamp(self._wall())


def _own(journal: Journal, lease: Lease) -> Held | None:
    held = journal.tables.leases.get((lease.run, lease.consumer))
    return held if held is not None and held.token == lease.token else None


def _mark(lease: Lease, position: int, now: str) -> Saying:
    return Saying("mark", {"run": lease.run, "consumer": lease.consumer, "applied": position, "at": now})


def _events(write: Write) -> str | None:
    if write.gap is not None:
        return json.dumps([gap_entry(write.gap)])
    return batch_json(write) if write.batch else None


def _said(write: Write, length: int, events: str | None, now: str) -> Saying:
    kind = "gap" if write.gap is not None else "events" if length else "outcome"
    told: dict[str, Any] = {"run": write.run, "at": now, "token": write.token, "mark": list(write.mark)}
    if length:
        told["first"] = write.prev.position + 1
    if write.status is not None:
        told["status"] = write.status
    if write.outcome is not None:
        told["outcome"] = write.outcome
    if write.bare:
        told["bare"] = True
    return Saying(kind, told, events)
