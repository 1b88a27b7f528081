"""A small world around the real core: a journal, a network, a server and a handler, as immutable values.

`moves(world)` names everything that may happen next; time has no length, so an armed timer may fire at any moment (the idle timer
not while heartbeats flow). Faults happen as often as the scene allows. What a user must never see raises `Violation`. Rules of
the store and of the runtime that the core relies on can be dropped by name (`Scene.without`), so that a test can show what each
prevents. Nothing here imports a decision of the client but `subscription.step` itself, handed in as a value.

States of the core are interned, and what cannot change control flow is made equal (attempt numbers keep only their order, waits,
notices and texts are forgotten), so that a scene stays finite.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import NamedTuple

from reattach.core import messages as m
from reattach.core.backoff import Backoff
from reattach.core.messages import EARLIEST, UNSTATED, Arrival, By, Mark, Refusal, Why
from reattach.core.state import Rules, State
from reattach.model import GapReason, OnGap, Outcome, Status
from reattach.policy import Policy

Step = Callable[[State, m.Input], tuple[State, tuple[m.Effect, ...]]]
HIGH, LOW = 2, 1  # events in the handler's hands that park and unpark a subscription that keeps only its cursor
OUTCOME = Outcome(run_id="r", status=Status.COMPLETED)
PATIENT, HURRIED = Policy(give_up_after=None), Policy(give_up_after=60.0)
GAP_FAILURES: dict[str, tuple[GapReason, ...]] = {
    "cursor_expired": ("expired",),
    "epoch_changed": ("epoch", "diverged"),
    "cursor_refused": ("refused",),
    "gap_unfillable": ("hole", "no_log"),
}


class Violation(Exception):
    """Something that no user may ever see."""


class Scene(NamedTuple):
    """Which faults may happen, once for each time they are named, and what kind of run is followed.

    `opaque`: the vendor's positions cannot be compared. `older`: its server begins one event before the cursor. `budget`: time may
    run out. `size`: events of the run, one less in its next epochs. `keep`: what the journal keeps. `before`: this journal created
    the run. `without`: rules of the world left out. `by`: how events are asked for. `buffers`: no stream's bytes get through.
    `nolog`: the server can tell its state only.
    """

    faults: tuple[str, ...]
    on_gap: OnGap = "snapshot"
    keep: str = "events"
    opaque: bool = False
    older: bool = False
    budget: bool = False
    before: bool = False
    without: frozenset[str] = frozenset()
    size: int = 3
    by: By = "stream"
    buffers: bool = False
    nolog: bool = False

    def __str__(self) -> str:
        words = [
            *self.faults,
            *(name for name in ("opaque", "older", "budget", "before", "buffers", "nolog") if getattr(self, name)),
        ]
        words += [f"keep={self.keep}"] if self.keep != "events" else []
        words += [f"events={self.size}"] if self.size != 3 else []
        words += [self.by] if self.by != "stream" else []
        words += [f"on_gap={self.on_gap}"] if self.on_gap != "snapshot" else []
        return "+".join([*words, *(f"without-{name}" for name in sorted(self.without))])


class Entry(NamedTuple):
    """What one position of the journal holds: an event, or the boundary of a gap (inclusive)."""

    epoch: str
    sequence: int
    id: str | None
    gap: bool = False
    ends: bool = False


class Write(NamedTuple):
    """One commit on its way to the disk; `told` is what the core hears once it is there."""

    prev: Mark
    entries: tuple[Entry, ...]
    mark: Mark
    ends: bool
    told: m.Input
    old: bool = False


class Server(NamedTuple):
    """One run's log. `ends` holds every log that was ever complete: an honest history is one of them."""

    epoch: int = 1
    tag: str = "a"
    log: tuple[str, ...] = ()
    first: int = 1
    hole: int = 0
    gone: bool = False
    ends: tuple[tuple[str, ...], ...] = ()
    size: int = 3

    @property
    def whole(self) -> bool:
        return len(self.log) == self.size


class Said(NamedTuple):
    """One thing on its way to the client. The kind is named: values of two kinds with equal fields would be equal."""

    kind: str
    fact: m.Input


def says(fact: m.Input) -> Said:
    return Said(type(fact).__name__, fact)


class Line(NamedTuple):
    """One connection: asked after what, how far it was served, what is on its way.

    `early`: it was answered before the log was whole; such a body may end cleanly at any time, as when a server restarts.
    """

    after: str | None
    served: int = -1
    epoch: int = 0
    queue: tuple[Said, ...] = ()
    dead: str = ""
    closed: bool = False
    early: bool = False
    by: By = "stream"


class Ask(NamedTuple):
    """A finite read: its question, and the answer once the server gave one."""

    kind: str
    era: int
    attempt: int
    answer: m.Input | None = None


class World(NamedTuple):
    """Everything there is. `may` is how far the handler may read, `handed` how far it has."""

    core: int = 0
    journal: tuple[Entry, ...] = ()
    mark: Mark = Mark()
    ended: bool = False
    queue: tuple[Write, ...] = ()
    applied: int = 0
    handed: int = 0
    may: int = 0
    holding: bool = False
    again_to: int = 0
    redo: tuple[Entry, ...] = ()
    shown: tuple[Entry, ...] = ()
    finished: str = ""
    over: bool = False
    server: Server = Server()
    line: Line | None = None
    asks: tuple[Ask, ...] = ()
    faults: tuple[str, ...] = ()
    failed: bool = False
    causes: frozenset[str] = frozenset()
    denied: int = 0


Label = tuple[object, ...]
"""Words and facts; made a sentence only where somebody reads it."""


class Move(NamedTuple):
    """What may happen next. A fault is not needed for an end to be reached."""

    label: Label
    fault: bool
    act: Callable[[], World]


@cache
def cursor(epoch: int, sequence: int) -> str:
    return f"e{epoch}.{sequence}"


@cache
def place(after: str | None) -> tuple[int, int]:
    """Return epoch and sequence of a cursor; epoch 0 for the beginning of whatever there is."""
    if after is None or after == EARLIEST:
        return (0, 0)
    epoch, _, sequence = after.partition(".")
    return int(epoch[1:]), int(sequence)


@cache
def arrival(epoch: int, sequence: int, ident: str, prev: str | None, opaque: bool, settles: bool) -> Arrival:
    return Arrival(
        id=ident,
        prev_id=UNSTATED if opaque else prev,
        epoch=None if opaque else f"e{epoch}",
        sequence=None if opaque else sequence,
        cursor=cursor(epoch, sequence),
        dedupe=ident,
        digest=ident.encode(),
        type="end" if settles else "step",
        kind="end" if settles else "other",
        text="",
        time=None,
        data=None,
        stored="",
        wrapped=True,
        outcome=OUTCOME if settles else None,
    )


def entry_of(event: Arrival) -> Entry:
    epoch, sequence = place(event.cursor)
    return Entry(f"e{epoch}", sequence, event.id, ends=event.outcome is not None)


def entry_at(mark: Mark) -> Entry:
    """Return the boundary that a gap's mark names."""
    epoch, sequence = place(mark.cursor)
    return Entry(f"e{epoch}", sequence, mark.id, gap=True)


class Stage:
    """A scene with a step function: makes the first world and all moves from any world."""

    def __init__(self, scene: Scene, step: Step) -> None:
        self.scene = scene
        self.step = step
        self.rules = Rules(
            HURRIED if scene.budget else PATIENT,
            scene.on_gap,
            contiguous=not scene.opaque,
            by=scene.by,
            falls_back=scene.buffers,
            replays=not scene.nolog,
        )
        self.states: list[State] = []
        self._number: dict[State, int] = {}
        self._taken: dict[tuple[int, type, m.Input], tuple[int, tuple[m.Effect, ...]]] = {}
        self._ranked: dict[tuple[int, tuple[tuple[int, int], ...]], tuple[int, tuple[tuple[int, int], ...]]] = {}
        self._raw: list[State] = []
        self._raw_number: dict[State, int] = {}
        # Nobody but a crash, a second attach or a parked subscription can tell how far the handler is; so it is at once elsewhere.
        self.slow_handler = scene.keep == "cursor" or bool({"crash", "reopen"} & set(scene.faults))

    def opening(self) -> World:
        w = World(
            core=self._intern(State(rules=self.rules)),
            faults=self.scene.faults,
            server=Server(size=self.scene.size),
        )
        return self.boot(w, before=self.scene.before)

    # the core -----------------------------------------------------------------------------------------------------

    def _intern(self, state: State) -> int:
        number = self._number.get(state)
        if number is None:
            number = self._number[state] = len(self.states)
            self.states.append(state)
        return number

    def tell(self, w: World, given: m.Input) -> World:
        key = (w.core, type(given), given)  # values of two kinds with equal fields are equal
        taken = self._taken.get(key)
        if taken is None:
            before = self.states[w.core]
            after, effects = self.step(before, given)
            self._check_timers(before, given, after, effects)
            raw = self._raw_number.setdefault(after, len(self._raw))
            if raw == len(self._raw):
                self._raw.append(after)
            taken = self._taken[key] = (raw, effects)
        raw, effects = taken
        if w.finished and effects:
            raise Violation("acts after Finish")
        for effect in effects:
            w = self._perform(w, effect)
        w = self._renumber(w, raw)
        full = self.scene.keep == "cursor" and w.may - w.applied >= HIGH
        if full and self.states[w.core].mode in ("attaching", "live", "waiting"):
            return self.tell(w, m.Full())
        return w

    def _check_timers(self, before: State, given: m.Input, after: State, effects: tuple[m.Effect, ...]) -> None:
        running = set(before.timers)
        if isinstance(given, m.Elapsed):
            running.discard(given.timer)
        for effect in effects:
            if isinstance(effect, m.StartTimer):
                running.add(effect.timer)
            elif isinstance(effect, m.StopTimer):
                running.discard(effect.timer)
        if running != after.timers:
            raise Violation(f"timers forgotten: {sorted(running ^ after.timers)}")

    def _renumber(self, w: World, raw: int) -> World:
        """Make equal what decides nothing; attempts keep only their order, eras only whether they are the present one."""
        signature = tuple((ask.era, ask.attempt) for ask in w.asks)
        ranked = self._ranked.get((raw, signature))
        if ranked is None:
            ranked = self._ranked[(raw, signature)] = self._rank(self._raw[raw], signature)
        core, numbers = ranked
        if numbers != signature:
            asks = tuple(
                ask._replace(era=era, attempt=attempt, answer=answered(ask.answer, era, attempt))
                for ask, (era, attempt) in zip(w.asks, numbers, strict=True)
            )
            w = w._replace(core=core, asks=asks)
        elif core != w.core:
            w = w._replace(core=core)
        if w.finished and not self.slow_handler and not w.over:
            w = w._replace(over=True)
        return w

    def _rank(self, s: State, asks: tuple[tuple[int, int], ...]) -> tuple[int, tuple[tuple[int, int], ...]]:
        attempts = [s.attempt, s.denied, s.missing, s.settled_at if s.settled else 0, *(attempt for _, attempt in asks)]
        era = s.era
        rank = {attempt: number for number, attempt in enumerate(sorted({0, *attempts}))}
        s = s._replace(
            attempt=rank[s.attempt],
            denied=rank[s.denied],
            missing=rank[s.missing],
            settled_at=rank[s.settled_at] if s.settled else 0,
            era=1,
            backoff=Backoff(),
            loops=0,
            head=None,
            heartbeat=None,
            reason="",
            refusal=None,
            declined=False,
            timers=s.timers - {"stall", "stream"} if not s.rules.falls_back else s.timers - {"stall"},
            fresh=s.fresh and self.scene.opaque,
            asked=s.asked if s.mode == "attaching" else Mark(),
            cause=s.cause if s.mode == "resyncing" else None,
            hole=s.hole if s.hole == s.committed.position else -1,
            answered=s.answered and s.rules.falls_back,
            barred=s.barred and bool(s.denied or s.missing),
            held=s.held if s.rules.falls_back else 0,
            falls=0,
            owed=0,
            withheld=0,
            stated=False,
            beats=(),
            doubted=frozenset(),
            floor=0.0,
        )
        return self._intern(s), tuple((1 if each == era else 0, rank[attempt]) for each, attempt in asks)

    def _perform(self, w: World, effect: m.Effect) -> World:
        match effect:
            case m.StartTimer() | m.StopTimer() | m.Notice():
                pass
            case m.Open(after, _, by):
                if w.line is not None:
                    raise Violation("two connections")
                swallowed = self.scene.buffers and by == "stream"
                w = w._replace(line=Line(after, by=by, dead="buffered" if swallowed else ""))
            case m.Close():
                w = w._replace(line=None)
            case m.Commit(prev, batch, mark):
                ends = bool(batch) and batch[-1].outcome is not None
                told = m.Committed(mark, outcome=batch[-1].outcome if batch else None)
                w = w._replace(queue=(*w.queue, Write(prev, tuple(map(entry_of, batch)), mark, ends, told)))
            case m.CommitGap(prev, reason, mark):
                self._check_cause(w, reason)
                told = m.Committed(mark, gap=True)
                w = w._replace(queue=(*w.queue, Write(prev, (entry_at(mark),), mark, False, told)))
            case m.CommitOutcome(prev, outcome):
                w = w._replace(queue=(*w.queue, Write(prev, (), prev, True, m.OutcomeCommitted(outcome))))
            case m.Deliver(position):
                w = self._deliver(w, position)
            case m.ReadStatus(era, attempt):
                if any(ask.kind == "status" for ask in w.asks):
                    raise Violation("two status reads")
                w = w._replace(asks=(*w.asks, Ask("status", era, attempt)))
            case m.ReadSnapshot(era):
                # One asked for anew takes the place of the one that is out.
                rest = tuple(ask for ask in w.asks if ask.kind != "snapshot")
                w = w._replace(asks=(*rest, Ask("snapshot", era, 0)))
            case m.Finish(outcome, failure):
                w = self._finish(w, outcome, failure)
        return w

    def _check_cause(self, w: World, reason: GapReason) -> None:
        if not w.causes and not (reason == "no_log" and self.scene.nolog):
            raise Violation(f"a gap ({reason}) without a cause")

    def _finish(self, w: World, outcome: Outcome | None, failure: m.Failure | None) -> World:
        if w.finished:
            raise Violation("finished twice")
        if outcome is not None:
            coming = w.journal[w.handed : w.may] + w.redo
            check_history(w, w.shown + tuple(entry for entry in coming if entry not in w.shown))
            return w._replace(finished="completed")
        code = failure.code if failure is not None else "nothing"
        if code == "commit_failed":
            if not w.failed:
                raise Violation("StoreError though no commit failed")
        elif code == "not_found":
            if w.ended or any(entry.ends for entry in w.journal):
                raise Violation("NotFound though the journal holds the end")
            if any(write.ends for write in w.queue):
                raise Violation("NotFound though the end is on its way to the disk")
            if not w.server.gone:
                raise Violation("gave up: not_found")
        elif code == "not_authorized":
            if w.denied < 2:
                raise Violation("gave up: not_authorized")
        elif code in GAP_FAILURES:
            unfillable = self.scene.on_gap == "continue" and code == "gap_unfillable" and "hole" in w.causes
            allowed = w.causes or self.scene.nolog
            if not allowed or not (self.scene.on_gap == "raise" or unfillable):
                raise Violation(f"gave up: {code}")
            if any(write.ends for write in w.queue):
                raise Violation(f"{code} though the end is on its way to the disk")
        elif code == "reconnect_exhausted":
            if not self.scene.budget:
                raise Violation("gave up: reconnect_exhausted")
        elif code != "lease_lost":
            raise Violation(f"gave up: {code}")
        return w._replace(finished=code)

    # the handler --------------------------------------------------------------------------------------------------

    def _deliver(self, w: World, position: int) -> World:
        if w.finished or w.over:
            raise Violation("delivered after Finish")
        if position > len(w.journal):
            raise Violation("undurable")
        return self._show_all(w._replace(may=max(w.may, position)))

    def _show_all(self, w: World) -> World:
        if self.slow_handler:
            return w
        while w.handed < w.may:
            w = self._show(w)
            w = w._replace(holding=False, applied=w.handed)
        return w

    def _show(self, w: World) -> World:
        entry = w.journal[w.handed]
        return self._seen(w._replace(handed=w.handed + 1, holding=True), entry, again=w.handed < w.again_to)

    def _seen(self, w: World, entry: Entry, *, again: bool) -> World:
        shown = w.shown
        if "badcursor" in w.causes or (self.scene.on_gap == "continue" and "losetail" in w.causes):
            # The log may begin again at the oldest event kept, or twice at one boundary: what was seen before is the old one's.
            shown = shown[max((i + 1 for i, each in enumerate(shown) if each.gap), default=0) :]
        if entry in shown:
            if not again:
                raise Violation("doubled")
            return w
        last = w.shown[-1] if w.shown else Entry(entry.epoch, 0, None)
        if not entry.gap and (entry.epoch != last.epoch or entry.sequence != last.sequence + 1):
            raise Violation("reordered" if entry[:2] <= last[:2] else "lost")
        return w._replace(shown=(*w.shown, entry))

    def _back(self, w: World) -> World:
        w = w._replace(holding=False, applied=max(w.applied, w.handed))
        if self.states[w.core].mode == "parked" and w.may - w.applied <= LOW:
            return self.tell(w, m.Drained())
        return w

    # the journal --------------------------------------------------------------------------------------------------

    def boot(self, w: World, *, before: bool = True, old: tuple[Write, ...] = ()) -> World:
        """A new subscription on the same journal, in this process (`old`: its commits may still settle) or a new one."""
        journal, mark = w.journal, w.mark
        again_to = max(w.again_to, len(journal))  # a second crash before the first was made up for lowers nothing
        if self.scene.keep == "cursor" and "applied" not in self.scene.without:
            journal = journal[: w.applied]
            # At the beginning the epoch that was followed is still known: another one is another log.
            followed = w.journal[0].epoch if w.journal else w.mark.epoch
            mark = mark_of(journal) if journal else Mark(epoch=followed)
            w = w._replace(ended=w.ended and len(journal) == len(w.journal))
        begins = max((i + 1 for i, entry in enumerate(journal) if entry.gap), default=0)
        known = tuple(
            (None if self.scene.opaque else e.sequence, str(e.id), str(e.id).encode()) for e in journal[begins:]
        )
        handed = w.applied if self.scene.keep == "events" else len(journal)
        redo: tuple[Entry, ...] = ()
        if "barrier" in self.scene.without:
            redo, handed = journal[handed:], len(journal)
        w = w._replace(
            core=self._intern(State(rules=self.rules)),
            journal=journal,
            mark=mark,
            queue=old,
            handed=handed,
            redo=redo,
            may=0,
            applied=w.applied if self.scene.keep == "events" else len(journal),
            holding=False,
            again_to=again_to,
            finished="",
            over=False,
            line=None,
            asks=(),
        )
        ended = OUTCOME if w.ended or (journal and journal[-1].ends) else None
        return self.tell(w, m.Attached(mark, known if self.scene.keep == "events" else (), ended, before))

    def settle(self, w: World) -> tuple[World, bool]:
        """Take the first waiting commit to the disk, or refuse it and all behind it."""
        write = w.queue[0]
        w = w._replace(queue=w.queue[1:])
        if write.prev != w.mark and "prev" not in self.scene.without:
            return w._replace(queue=()), False
        return w._replace(journal=w.journal + write.entries, mark=write.mark, ended=w.ended or write.ends), True

    # everything that may happen -----------------------------------------------------------------------------------

    def moves(self, w: World) -> Iterator[Move]:
        yield from self._store_moves(w)
        if w.over:
            return
        core = self.states[w.core]
        if w.may > w.handed and not w.holding:
            yield Move(
                (
                    "handler gets",
                    w.journal[w.handed].id,
                ),
                False,
                lambda: self._show(w),
            )
        elif w.finished and not w.holding and not w.redo:
            yield Move(
                (
                    "handler learns:",
                    w.finished,
                ),
                False,
                lambda: w._replace(over=True),
            )
        if w.redo and not w.holding:
            yield Move(
                (
                    "handler gets",
                    w.redo[0].id,
                    "again",
                ),
                False,
                lambda: self._seen(w._replace(redo=w.redo[1:]), w.redo[0], again=True),
            )
        if w.holding:
            yield Move(("handler comes back (applied)",), False, lambda: self._back(w))
        yield from self._client_moves(w, core)
        if core.mode == "done" and not {"crash", "reopen"} & set(w.faults):
            return  # the world outside can change nothing any more
        yield from self._server_moves(w)
        yield from self._line_moves(w)
        yield from self._ask_moves(w)
        for timer in sorted(core.timers):
            if not (w.line is not None and w.line.dead == "buffered" and timer == "idle"):
                yield Move(
                    (
                        "timer",
                        timer,
                        "fires",
                    ),
                    False,
                    lambda timer=timer: self.tell(w, m.Elapsed(timer)),
                )

    def _spend(self, w: World, fault: str) -> World:
        at = w.faults.index(fault)
        causes = w.causes | {fault} if fault in ("rotate", "losetail", "trim", "hole", "badcursor") else w.causes
        return w._replace(faults=w.faults[:at] + w.faults[at + 1 :], causes=causes)

    def _store_moves(self, w: World) -> Iterator[Move]:
        if w.queue:
            write = w.queue[0]
            label = tuple(entry.id for entry in write.entries)

            def good() -> World:
                v, kept = self.settle(w)
                if write.old:
                    return v
                return self.tell(v, write.told) if kept else self.tell(v, m.CommitFailed())

            yield Move(
                (
                    "store settles",
                    label,
                ),
                False,
                good,
            )
            if "enospc" in w.faults and not write.old:

                def full() -> World:
                    v = self._spend(w, "enospc")
                    # The store of the rules refuses what is queued behind a failed commit: its predecessor is not there.
                    return self.tell(v._replace(queue=v.queue[1:], failed=True), m.CommitFailed())

                yield Move(
                    (
                        "FAULT commit of",
                        label,
                        "fails",
                    ),
                    True,
                    full,
                )
        if "crash" in w.faults:
            for reached in range(len(w.queue) + 1):

                def crash(reached: int = reached) -> World:
                    v = self._spend(w, "crash")
                    for _ in range(reached):
                        v = self.settle(v)[0] if v.queue else v
                    return self.boot(v)

                yield Move(
                    (
                        "FAULT client killed,",
                        reached,
                        "queued commits reached the disk",
                    ),
                    True,
                    crash,
                )

    def _client_moves(self, w: World, core: State) -> Iterator[Move]:
        if "reopen" in w.faults and core.mode != "done":

            def reopen() -> World:
                v = self.tell(self._spend(w, "reopen"), m.Closed())
                if "handover" in self.scene.without:
                    return self.boot(v, old=tuple(write._replace(old=True) for write in v.queue))
                while v.queue:  # the writer's turn comes first
                    v = self.settle(v)[0]
                return self.boot(v)

            yield Move(("FAULT caller closes and attaches again, same process",), True, reopen)
        if "takeover" in w.faults and core.mode != "done":
            yield Move(("FAULT another owner",), True, lambda: self.tell(self._spend(w, "takeover"), m.LeaseLost()))

    def _server_moves(self, w: World) -> Iterator[Move]:
        s = w.server
        if not s.whole:

            def append() -> World:
                log = (*s.log, f"{s.tag}{len(s.log) + 1}")
                ends = (*s.ends, log) if len(log) == s.size else s.ends
                return w._replace(server=s._replace(log=log, ends=ends))

            yield Move(
                (
                    "server appends",
                    s.tag,
                    len(s.log) + 1,
                ),
                False,
                append,
            )
        for fault, allowed, after in (
            ("gone", s.whole, lambda: s._replace(gone=True)),
            ("rotate", bool(s.log), lambda: Server(s.epoch + 1, "r", ends=s.ends, size=max(1, self.scene.size - 1))),
            ("losetail", bool(s.log) and not s.whole, lambda: s._replace(tag="b", log=s.log[:-1])),
            ("trim", len(s.log) > s.first, lambda: s._replace(first=s.first + 1)),
            ("hole", len(s.log) < 2, lambda: s._replace(hole=2)),
        ):
            if fault in w.faults and allowed:
                yield Move(
                    (
                        "FAULT server:",
                        fault,
                    ),
                    True,
                    lambda fault=fault, after=after: self._spend(w, fault)._replace(server=after()),
                )

    def _answer(self, w: World, line: Line) -> Line:
        """What the server says to an attach."""
        s = w.server
        if s.gone:
            return refusing(line, Why.NOT_FOUND)
        epoch, sequence = place(line.after)
        if line.after == EARLIEST:
            epoch, sequence = s.epoch, s.first - 1
        elif line.after is None:
            epoch = s.epoch
        if epoch != s.epoch:
            return refusing(line, Why.EPOCH)
        if sequence > len(s.log):
            return refusing(line, Why.AHEAD)
        if sequence < s.first - 1:
            return refusing(line, Why.EXPIRED)
        if self.scene.opaque:
            return line._replace(served=sequence, epoch=s.epoch, queue=(says(m.Opened()),), early=not s.whole)
        if s.whole and sequence == len(s.log) and line.by == "stream":
            return line._replace(served=sequence, epoch=s.epoch, queue=(says(m.Declined()),), closed=True)
        if self.scene.older and sequence >= s.first and line.after != EARLIEST:
            sequence -= 1
        ident = s.log[sequence - 1] if sequence else None
        opened = m.Opened(f"e{s.epoch}", cursor(s.epoch, sequence), sequence, ident)
        return line._replace(served=sequence, epoch=s.epoch, queue=(says(opened),), early=not s.whole)

    def _line_moves(self, w: World) -> Iterator[Move]:
        line = w.line
        if line is None:
            return
        waiting = line.served < 0 and not line.queue
        if not line.dead:
            if waiting:
                yield Move(
                    (
                        "server answers attach after",
                        line.after,
                    ),
                    False,
                    lambda: w._replace(line=self._answer(w, line)),
                )
            elif len(line.queue) < 2 and not line.closed:
                yield from self._serving(w, line)
            if line.queue:
                yield from self._reading(w, line)
        yield from self._line_faults(w, line, waiting)

    def _serving(self, w: World, line: Line) -> Iterator[Move]:
        s = w.server
        at = max(line.served if line.epoch == s.epoch else 0, s.first - 1)
        if s.hole == at + 1 and len(s.log) > at + 1:
            at += 1
        if at < len(s.log) and s.hole != at + 1:
            event = arrival(
                s.epoch, at + 1, s.log[at], s.log[at - 1] if at else None, self.scene.opaque, at + 1 == s.size
            )
            queue = (*line.queue, says(m.Received((event,))))
            yield Move(
                (
                    "server sends",
                    event.id,
                ),
                False,
                lambda: w._replace(line=line._replace(served=at + 1, epoch=s.epoch, queue=queue)),
            )
            if "repeat" in w.faults:
                twice = (*line.queue, says(m.Received((event, event))))
                yield Move(
                    (
                        "FAULT server sends",
                        event.id,
                        "twice",
                    ),
                    True,
                    lambda: self._spend(w, "repeat")._replace(
                        line=line._replace(served=at + 1, epoch=s.epoch, queue=twice)
                    ),
                )
        elif (s.whole or line.by == "poll") and at >= len(s.log):
            queue = (*line.queue, says(m.Ended()))
            yield Move(
                ("server ends the stream",), False, lambda: w._replace(line=line._replace(queue=queue, closed=True))
            )
        closing = (*line.queue, says(m.Closing("cursor_expired")))
        if line.epoch == s.epoch and line.served < s.first - 1:
            # A replay overtaken by trimming is closed; or it goes on at the oldest kept, as a careless server's does.
            yield Move(
                ("server closes: cursor_expired",),
                False,
                lambda: w._replace(line=line._replace(queue=closing, closed=True)),
            )
        if "draining" in w.faults:
            drained = (*line.queue, says(m.Closing("draining")))
            yield Move(
                ("FAULT server closes: draining",),
                True,
                lambda: self._spend(w, "draining")._replace(line=line._replace(queue=drained, closed=True)),
            )

    def _reading(self, w: World, line: Line) -> Iterator[Move]:
        first, rest = line.queue[0].fact, line.queue[1:]
        yield Move(
            (
                "client reads",
                first,
            ),
            False,
            lambda: self.tell(w._replace(line=line._replace(queue=rest)), first),
        )
        second = rest[0].fact if rest else None
        if isinstance(first, m.Received) and isinstance(second, m.Received):
            both = m.Received(first.arrivals + second.arrivals)
            yield Move(
                (
                    "client reads",
                    both,
                    "at once",
                ),
                False,
                lambda: self.tell(w._replace(line=line._replace(queue=rest[1:])), both),
            )

    def _line_faults(self, w: World, line: Line, waiting: bool) -> Iterator[Move]:
        faults = w.faults
        if "cut" in faults:
            yield Move(
                ("FAULT connection cut",), True, lambda: self.tell(self._spend(w, "cut")._replace(line=None), m.Lost())
            )
        if "endearly" in faults and line.served >= 0 and not line.dead and not line.queue and line.early:
            yield Move(("FAULT body ends early",), True, lambda: self.tell(self._spend(w, "endearly"), m.Ended()))
        if line.dead:
            return
        if "stall" in faults:
            yield Move(
                ("FAULT connection half-open",),
                True,
                lambda: self._spend(w, "stall")._replace(line=line._replace(dead="silent")),
            )
        if "buffer" in faults and not waiting:
            yield Move(
                ("FAULT path passes heartbeats only",),
                True,
                lambda: self._spend(w, "buffer")._replace(line=line._replace(dead="buffered")),
            )
        for fault, why in REFUSALS.items():
            if waiting and fault in faults:
                yield Move(
                    (
                        "FAULT attach answered",
                        fault,
                    ),
                    True,
                    lambda fault=fault, why=why: counted(self._spend(w, fault), fault)._replace(
                        line=refusing(line, why)
                    ),
                )

    def _ask_moves(self, w: World) -> Iterator[Move]:
        s = w.server
        for at, ask in enumerate(w.asks):
            rest = w.asks[:at] + w.asks[at + 1 :]
            if ask.answer is not None:
                # A read that was answered is no longer out when the core learns it.
                yield Move(
                    (
                        "client reads",
                        ask.answer,
                    ),
                    False,
                    lambda rest=rest, answer=ask.answer: self.tell(w._replace(asks=rest), answer),
                )
                continue
            answer = self._said(s, ask)
            yield Move(
                (
                    "server answers",
                    ask.kind,
                    ":",
                    answer,
                ),
                False,
                lambda at=at, ask=ask, answer=answer: w._replace(
                    asks=(*w.asks[:at], ask._replace(answer=answer), *w.asks[at + 1 :])
                ),
            )
            for fault, why in (("nostatus", Why.BUSY), ("401", Why.UNAUTHENTICATED), ("404", Why.NOT_FOUND)):
                if fault in w.faults:
                    no = failing(ask, why)
                    yield Move(
                        (
                            "FAULT",
                            ask.kind,
                            "answered",
                            fault,
                        ),
                        True,
                        lambda rest=rest, no=no, fault=fault: self.tell(
                            counted(self._spend(w, fault), fault)._replace(asks=rest), no
                        ),
                    )

    def _said(self, s: Server, ask: Ask) -> m.Input:
        if s.gone:
            return failing(ask, Why.NOT_FOUND)
        head = len(s.log)
        if ask.kind == "snapshot":
            return m.SnapshotRead(
                ask.era, Mark(0, f"e{s.epoch}", head, s.log[-1] if s.log else None, cursor(s.epoch, head))
            )
        status, outcome = (Status.COMPLETED, OUTCOME) if s.whole else (Status.RUNNING, None)
        if self.scene.opaque:
            return m.StatusRead(ask.era, ask.attempt, None, None, status, outcome)
        return m.StatusRead(ask.era, ask.attempt, f"e{s.epoch}", head, status, outcome)


REFUSALS = {
    "503": Why.BUSY,
    "401": Why.UNAUTHENTICATED,
    "404": Why.NOT_FOUND,
    "foreign": Why.FOREIGN,
    "badcursor": Why.CURSOR,
}


def counted(w: World, fault: str) -> World:
    return w._replace(denied=w.denied + 1) if fault == "401" else w


def refusing(line: Line, why: Why) -> Line:
    return line._replace(queue=(says(m.Refused(Refusal(why))),), closed=True, served=0)


def failing(ask: Ask, why: Why) -> m.Input:
    if ask.kind == "snapshot":
        return m.SnapshotFailed(ask.era, Refusal(why))
    return m.StatusFailed(ask.era, ask.attempt, Refusal(why))


def answered(answer: m.Input | None, era: int, attempt: int) -> m.Input | None:
    match answer:
        case m.StatusRead() | m.StatusFailed():
            return answer._replace(era=era, attempt=attempt)
        case m.SnapshotRead() | m.SnapshotFailed():
            return answer._replace(era=era)
        case _:
            return None


def mark_of(journal: tuple[Entry, ...]) -> Mark:
    if not journal:
        return Mark()
    last = journal[-1]
    return Mark(len(journal), last.epoch, last.sequence, last.id, f"{last.epoch}.{last.sequence}")


def check_history(w: World, got: tuple[Entry, ...]) -> None:
    """The end may be told only to who was handed one whole log after the last gap, and the gap must lie on that log."""
    begins = max((i + 1 for i, entry in enumerate(got) if entry.gap), default=0)
    boundary = got[begins - 1] if begins else Entry("", 0, None, gap=True)
    events = tuple(entry.id for entry in got[begins:])
    for log in w.server.ends:
        fits = boundary.sequence == 0 or log[boundary.sequence - 1 : boundary.sequence] == (boundary.id,)
        if fits and events == log[boundary.sequence :]:
            return
    whole = bool(got[begins:]) and got[-1].ends
    raise Violation("finished with a wrong history" if whole else "finished early")


def sentence(label: Label) -> str:
    return " ".join(map(brief, label))


def brief(given: object) -> str:
    match given:
        case str() | int() | None:
            return str(given)
        case tuple() if type(given) is tuple:
            return "[" + ", ".join(map(brief, given)) + "]"
        case m.Received(arrivals):
            return "Received " + ", ".join(each.id for each in arrivals)
        case m.Refused(refusal):
            return f"Refused {refusal.why}"
        case m.StatusRead():
            return f"StatusRead {given.epoch} head {given.head} {given.status}"
        case m.SnapshotRead():
            return f"SnapshotRead {given.boundary.cursor}"
        case m.Opened():
            return f"Opened {given.cursor} ({given.cursor_id})"
        case _:
            return type(given).__name__
