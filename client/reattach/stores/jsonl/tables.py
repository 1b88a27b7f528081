"""What a JSONL journal's lines add up to: rows, places of events, marks, leases. In memory, made by `apply`, line after line.

The one way to change it is to apply a line, when it is durable: live and when the file is read again it is the same code, so what
a process sees is what the next one will. Nothing here reads or writes the file; of events only the place in it is kept.

Kinds of lines and their members (times RFC 3339)
    * `intended` `created` `adopted` `noted` `run`: changes of a row, under the names of `RunRow`; `was` is a row that became this.
    * `forgotten`: a row is gone.
    * `events` `gap` `outcome`: one commit: `token`, `first`, `mark` and what else a row's columns get; `events` holds its elements.
    * `rewound`: the run stands at `mark` again. `pruned`: its events up to `upto` are not read any more.
    * `mark`: `consumer` has `applied` up to there.
    * `lease`: `consumer` was taken, under `token`; `number` is its place in FILE-marks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from reattach.core.messages import Mark
from reattach.stores.base import Holder, RunRow
from reattach.stores.jsonl.lines import Line
from reattach.stores.jsonl.places import Log, Place, Pruned
from reattach.stores.times import moment, text_of

JOURNAL_SLOT = 1
"""The place in FILE-marks where the journal notes its own last durable line; leases come behind it."""

_TIMES = frozenset({"sent_at", "created_at", "settled_at", "updated_at"})
_COLUMNS = frozenset(RunRow._fields)
_BATCH = frozenset({"events", "gap", "outcome"})
_ROW = frozenset({"intended", "created", "adopted", "noted", "run"})


@dataclass(slots=True)
class Held:
    """A lease. `holder` is None when it was given back, or when its process is gone."""

    number: int
    token: int
    since: str
    holder: Holder | None = None
    expires: float = 0.0


class Tables:
    """The state of a journal."""

    def __init__(self) -> None:
        self.rows: dict[int, RunRow] = {}
        self.logs: dict[int, Log] = {}
        self.leases: dict[tuple[int, str], Held] = {}
        self.marks: dict[tuple[int, str], int] = {}
        self.title: dict[str, Any] = {}
        self.last_run = 0
        self.last_number = JOURNAL_SLOT
        self._by_key: dict[tuple[str, str, str], int] = {}
        self._by_id: dict[tuple[str, str, str], int] = {}

    # looking ------------------------------------------------------------------------------------------------------

    def find(self, server: str, profile: str, key: str | None, run_id: str | None) -> RunRow | None:
        """Return the row of a key or a run id."""
        if (key is None) == (run_id is None):
            raise ValueError("find takes a key or a run id")
        named, name = (self._by_key, key) if key is not None else (self._by_id, run_id)
        run = named.get((server, profile, name or ""))
        return self.rows[run] if run is not None else None

    def newest_first(self, server: str | None, profile: str | None) -> list[RunRow]:
        """Return all rows, or those of one server."""
        rows = sorted(self.rows.values(), key=_number, reverse=True)
        return [row for row in rows if server in (None, row.server) and profile in (None, row.profile)]

    def undone(self) -> tuple[tuple[str, str, str], ...]:
        """Return (server, profile, run id) of the runs that have an id and are not known to be done with."""
        return tuple(
            (row.server, row.profile, row.run_id)
            for row in self.rows.values()
            if row.run_id is not None
            and (row.outcome is None or (not row.handed_out and self._applied(row.run) < row.highest))
        )

    def _applied(self, run: int) -> int:
        return max((applied for (whose, _), applied in self.marks.items() if whose == run), default=0)

    # changing -----------------------------------------------------------------------------------------------------

    def apply(self, said: Line, offset: int, length: int) -> None:
        """Do what a line says; `offset` and `length` are its place in the file.

        Raises:
            ValueError: It says what no line of ours would.
        """
        told = said.told
        try:
            run = told["run"] if said.kind != "journal" else 0
            if said.kind in _BATCH:
                self._keep(said.kind, run, told, offset, length)
            elif said.kind in _ROW:
                self._change(run, told)
            elif said.kind == "mark":
                whose = (run, told["consumer"])
                self.marks[whose] = max(told["applied"], self.marks.get(whose, 0))
            elif said.kind == "rewound":
                self._change(run, {"at": told["at"], "committed": told["mark"], "again_to": told["again_to"]})
                self.logs[run].rewind(told["mark"][0])
            elif said.kind == "pruned":
                self.logs[run].prune(Pruned(told["upto"], told["until"], told["missing"]))
            elif said.kind == "lease":
                self.leases[run, told["consumer"]] = Held(told["number"], told["token"], told["at"])
                self.last_number = max(self.last_number, told["number"])
            elif said.kind == "forgotten":
                self._remove(run)
            elif said.kind == "journal":
                self.title = dict(told)
                self.last_run = told["last_run"]
                self.last_number = told["last_number"]
            else:
                raise ValueError(f"a line of kind {said.kind!r}")
        except (KeyError, TypeError, AttributeError, IndexError) as error:
            raise ValueError(f"a line of kind {said.kind!r} that does not fit ({error!r})") from error

    def _keep(self, kind: str, run: int, told: Mapping[str, Any], offset: int, length: int) -> None:
        row, log = self.rows[run], self.logs[run]
        mark = Mark(*told["mark"])
        changes: dict[str, Any] = {"committed": mark, "updated_at": moment(told["at"])}
        if kind != "outcome":
            if told["first"] != row.committed.position + 1:
                raise ValueError(f"positions from {told['first']} on behind {row.committed.position}")
            log.add(Place(told["first"], mark.position, offset, length, kind == "gap"))
        if told.get("bare"):  # keep="cursor": what lies below every mark is needed no more
            log.drop_below(min((at for (whose, _), at in self.marks.items() if whose == run), default=0))
        if kind == "gap":
            changes["incarnation"] = row.incarnation + 1
        if told.get("status") is not None:
            changes["status"] = told["status"]
        if told.get("outcome") is not None:
            changes |= {"outcome": told["outcome"], "settled_at": changes["updated_at"]}
            changes["again_to"] = min(row.again_to, mark.position)
        self.rows[run] = row._replace(**changes)

    def _change(self, run: int, told: Mapping[str, Any]) -> None:
        if "was" in told:
            self._remove(told["was"])
        changes: dict[str, Any] = {name: _column(name, told[name]) for name in _COLUMNS & told.keys()}
        changes["updated_at"] = moment(told["at"])
        row = self.rows.get(run)
        if row is None:
            row = RunRow(**{"created_at": changes["updated_at"], **changes})
            self.logs[run] = Log(behind=told.get("behind", 0))
            self.last_run = max(self.last_run, run)
        else:
            self._unname(row)
            row = row._replace(**changes)
        self.rows[run] = row
        if row.key is not None:
            self._by_key[row.server, row.profile, row.key] = run
        if row.run_id is not None:
            self._by_id[row.server, row.profile, row.run_id] = run

    def _remove(self, run: int) -> None:
        self._unname(self.rows.pop(run))
        del self.logs[run]
        for table in (self.leases, self.marks):
            for whose in [whose for whose in table if whose[0] == run]:
                del table[whose]

    def _unname(self, row: RunRow) -> None:
        if row.key is not None:
            self._by_key.pop((row.server, row.profile, row.key), None)
        if row.run_id is not None:
            self._by_id.pop((row.server, row.profile, row.run_id), None)


def members(columns: Mapping[str, Any]) -> dict[str, Any]:
    """Return columns of a row as the members of a line."""
    return {name: text_of(value) if isinstance(value, datetime) else value for name, value in columns.items()}


def _column(name: str, value: Any) -> Any:
    if name in _TIMES:
        return moment(value)
    return Mark(*value) if name == "committed" else value


def _number(row: RunRow) -> int:
    return row.run
