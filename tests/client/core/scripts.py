"""Short dialogues with the machine, one for each row of its table: what it is told, and what it must do at the end.

A script passes with the whole table and must fail when its row is left out; `test_table.py` checks both. Scripts tell facts in
order and look at the last answer only: effects as `(kind, …)` and the mode afterwards.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from reattach.core import messages as m
from reattach.core.messages import UNSTATED, Arrival, Mark, Refusal, Why
from reattach.core.state import Rules, State
from reattach.core.subscription import TABLE, step
from reattach.core.table import Table
from reattach.model import OnGap, Outcome, Status
from reattach.policy import Policy

NOW = -1  # in place of an era: the present one
OUTCOME = Outcome(run_id="r", status=Status.COMPLETED)


def event(
    sequence: int, *, epoch: str = "e1", tag: str = "a", prev: str | None = "", end: bool = False, text: str = ""
) -> Arrival:
    """One event of a small log: ids are a1, a2, …; each names its predecessor."""
    before = f"{tag}{sequence - 1}" if sequence > 1 else None
    return Arrival(
        id=f"{tag}{sequence}",
        prev_id=before if prev == "" else prev,
        epoch=epoch,
        sequence=sequence,
        cursor=f"{epoch}.{sequence}",
        dedupe=f"{tag}{sequence}",
        digest=f"{tag}{sequence}{text}".encode(),
        type="step",
        kind="end" if end else "other",
        text=text,
        time=None,
        data=None,
        stored="{}",
        wrapped=False,
        outcome=OUTCOME if end else None,
    )


def bare(ident: str, *, end: bool = False) -> Arrival:
    """One event of a vendor whose positions cannot be compared."""
    return event(1, end=end)._replace(id=ident, prev_id=UNSTATED, epoch=None, sequence=None, cursor=ident, dedupe=ident)


def mark(position: int, sequence: int | None = None, *, epoch: str = "e1", tag: str = "a") -> Mark:
    number = position if sequence is None else sequence
    return Mark(position, epoch, number, f"{tag}{number}" if number else None, f"{epoch}.{number}")


class Dialogue:
    """A machine under test: `tell` it facts, then look at `mode`, `effects` and `kinds` of the last answer."""

    def __init__(
        self,
        table: Table = TABLE,
        *,
        on_gap: OnGap = "snapshot",
        contiguous: bool = True,
        by: m.By = "stream",
        falls_back: bool = False,
        replays: bool = True,
        **policy: Any,
    ) -> None:
        self.table = table
        self.state = State(rules=Rules(Policy(**policy), on_gap, contiguous, by, falls_back, replays))
        self.effects: tuple[m.Effect, ...] = ()

    def tell(self, *facts: m.Input) -> Dialogue:
        for fact in facts:
            if getattr(fact, "era", None) == NOW:
                fact = fact._replace(era=self.state.era)  # type: ignore[union-attr,call-arg]  # those with an era
            self.state, self.effects = step(self.state, fact, self.table)
        return self

    @property
    def mode(self) -> str:
        return self.state.mode

    @property
    def kinds(self) -> list[str]:
        """The effects without timers and notices, by name, in order."""
        quiet = (m.StartTimer, m.StopTimer, m.Notice)
        return [type(effect).__name__ for effect in self.effects if not isinstance(effect, quiet)]

    def one(self, kind: type) -> Any:
        found = [effect for effect in self.effects if isinstance(effect, kind)]
        assert len(found) == 1, f"{kind.__name__}: {self.effects}"
        return found[0]

    def window(self, timer: str) -> tuple[float, float]:
        found = [(e.low, e.high) for e in self.effects if isinstance(e, m.StartTimer) and e.timer == timer]
        assert len(found) == 1, f"{timer}: {self.effects}"
        return found[0]

    @property
    def failure(self) -> str | None:
        failures = [e.failure.code for e in self.effects if isinstance(e, m.Finish) and e.failure is not None]
        return failures[0] if failures else None

    @property
    def ending(self) -> Outcome | None:
        outcomes = [e.outcome for e in self.effects if isinstance(e, m.Finish)]
        return outcomes[0] if outcomes else None


ATTACHED = m.Attached(Mark())
OPENED = m.Opened("e1", "e1.0", 0, None)
RECONNECT = m.Elapsed("reconnect")


def attaching(table: Table, *, before: bool = False, **how: Any) -> Dialogue:
    return Dialogue(table, **how).tell(m.Attached(Mark(), before=before))


def live(table: Table, **how: Any) -> Dialogue:
    return attaching(table, **how).tell(OPENED)


def holding(table: Table, count: int = 2, **how: Any) -> Dialogue:
    """Live, with `count` committed events."""
    talk = live(table, **how).tell(status(head=0))
    for number in range(1, count + 1):
        talk.tell(m.Received((event(number),)), m.Committed(mark(number)))
    return talk


def waiting(table: Table, **how: Any) -> Dialogue:
    return live(table, **how).tell(m.Lost())


def again(table: Table, **how: Any) -> Dialogue:
    """Attaching for the second time, two events committed."""
    return holding(table, **how).tell(m.Lost(), RECONNECT)


def resyncing(table: Table, **how: Any) -> Dialogue:
    return again(table, **how).tell(m.Refused(Refusal(Why.EXPIRED)))


def status(
    settled: bool = False, head: int | None = 2, *, epoch: str | None = "e1", attempt: int = 1, era: int = NOW
) -> m.StatusRead:
    word = Status.COMPLETED if settled else Status.RUNNING
    return m.StatusRead(era, attempt, epoch, head, word, OUTCOME if settled else None)


def held_back(table: Table) -> Dialogue:
    """Attaching by long polls, since two streams in a row held back what the status knew."""
    talk = live(table, falls_back=True)
    for _ in range(2):
        talk.tell(status(head=2), m.Elapsed("behind"))
        assert talk.mode == "waiting"
        talk.tell(RECONNECT)
        if talk.one(m.Open).by == "stream":
            talk.tell(OPENED)
    return talk


SCRIPTS: dict[str, Callable[[Table], None]] = {}


def script(check: Callable[[Table], None]) -> Callable[[Table], None]:
    SCRIPTS[check.__name__] = check
    return check


# a row each, in the order of the table; the name of a script is the name of its row ------------------------------------


@script
def attached_at_the_end(table: Table) -> None:
    """A journal that holds the end needs no network."""
    talk = Dialogue(table).tell(m.Attached(mark(3), outcome=OUTCOME))
    assert (talk.kinds, talk.mode, talk.ending) == (["Deliver", "Finish"], "done", OUTCOME)


@script
def attached(table: Table) -> None:
    """Deliver what is durable, ask after it, and begin the safety net."""
    talk = Dialogue(table).tell(m.Attached(mark(2)))
    assert (talk.kinds, talk.mode) == (["Deliver", "Open", "ReadStatus"], "attaching")
    assert (talk.one(m.Open).after, talk.one(m.Deliver).position) == ("e1.2", 2)
    assert talk.state.timers == {"connect", "budget", "poll", "stall"}


@script
def opened_elsewhere(table: Table) -> None:
    """An answer of another epoch is another log."""
    talk = again(table).tell(m.Opened("e2", "e2.2", 2, "a2"))
    assert (talk.kinds, talk.mode, talk.state.cause) == (["Close", "ReadSnapshot"], "resyncing", "epoch")


@script
def opened_on_another_event(table: Table) -> None:
    """Another event under the number of our cursor: the log lost its tail."""
    talk = again(table).tell(m.Opened("e1", "e1.2", 2, "b2"))
    assert (talk.kinds, talk.mode, talk.state.cause) == (["Close", "ReadSnapshot"], "resyncing", "diverged")
    same = again(table).tell(m.Opened("e1", "e1.2", 2, "a2"))
    assert same.mode == "live"


@script
def opened_in_the_middle(table: Table) -> None:
    """A silent start above our cursor is a hole: once as a loss, twice a gap."""
    middle = m.Opened("e1", "e1.4", 4, "a4")
    talk = again(table).tell(middle)
    assert (talk.kinds, talk.mode) == (["Close"], "waiting")
    talk.tell(RECONNECT, middle)
    assert (talk.kinds, talk.mode, talk.state.cause) == (["Close", "ReadSnapshot"], "resyncing", "hole")


@script
def opened(table: Table) -> None:
    """The budget stands and silence is measured."""
    talk = attaching(table).tell(m.Opened("e1", "e1.0", 0, None, 7, heartbeat=2.0))
    assert (talk.kinds, talk.mode, talk.state.head) == ([], "live", 7)
    assert talk.window("idle") == (6.0, 6.0)
    assert talk.state.timers == {"idle", "poll", "stall"}


@script
def received(table: Table) -> None:
    """What one read brought is one commit that names its predecessor."""
    talk = live(table).tell(m.Received((event(1), event(2))))
    commit = talk.one(m.Commit)
    assert (commit.prev, [each.id for each in commit.batch], commit.mark) == (Mark(), ["a1", "a2"], mark(2))
    assert (talk.kinds, talk.mode) == (["Commit"], "live")


@script
def heard(table: Table) -> None:
    """Any byte gives another idle limit."""
    talk = live(table).tell(m.Heard())
    assert talk.window("idle") == (45.0, 45.0)


@script
def hinted(table: Table) -> None:
    """The stream's wish is the base of the next windows."""
    talk = live(table).tell(m.Hinted(4.0), m.Lost())
    assert talk.window("reconnect") == (0.25, 4.0)


@script
def lost(table: Table) -> None:
    """A loss closes, waits and asks for the status, and says nothing about the run."""
    talk = live(table).tell(status(head=0), m.Lost())
    assert (talk.kinds, talk.mode, "reconnect" in talk.state.timers) == (["Close", "ReadStatus"], "waiting", True)
    assert live(table).tell(m.Lost(), status(head=0)).kinds == ["ReadStatus"], "one that was out is followed by another"


@script
def ended_at_the_tail(table: Table) -> None:
    """Settled by status, and an attach opened after that answer ended with nothing: the end, where numbers tell nothing."""
    for tail in (m.Ended(), m.Declined()):
        talk = attaching(table, contiguous=False).tell(
            m.Opened(), m.Received((bare("x"),)), m.Committed(Mark(1, cursor="x"))
        )
        talk.tell(m.Lost(), status(True, None, epoch=None))
        assert talk.mode == "waiting"
        talk.tell(RECONNECT, tail)
        assert (talk.kinds, talk.mode) == (["Close", "CommitOutcome"], "ending")


@script
def ended(table: Table) -> None:
    """A clean end of the body is a loss like any other."""
    talk = holding(table).tell(m.Ended())
    assert (talk.mode, "Finish" in talk.kinds, "Close" in talk.kinds) == ("waiting", False, True)


@script
def refused_for_now(table: Table) -> None:
    """Busy: never sooner than the server says, and not beyond the budget."""
    busy = Refusal(Why.BUSY, retry_after=90.0)
    talk = attaching(table).tell(m.Refused(busy, left=500.0))
    assert (talk.mode, talk.window("reconnect")) == ("waiting", (90.0, 91.0))
    talk = attaching(table).tell(m.Refused(busy, left=80.0))
    assert (talk.kinds, talk.failure) == (["Close", "Finish"], "reconnect_exhausted")
    assert live(table).tell(m.Refused(busy)).mode == "waiting"


@script
def refused_the_token(table: Table) -> None:
    """One 401 is an old token; the second is the end."""
    no = m.Refused(Refusal(Why.UNAUTHENTICATED))
    talk = attaching(table).tell(no)
    assert talk.mode == "waiting"
    assert talk.tell(RECONNECT, no).failure == "not_authorized"


@script
def refused_as_missing(table: Table) -> None:
    """A run that we know exists may be missing once; one that we never saw may not."""
    no = m.Refused(Refusal(Why.NOT_FOUND))
    talk = attaching(table, before=True).tell(no)
    assert talk.mode == "waiting"
    assert talk.tell(RECONNECT, no).failure == "not_found"
    assert attaching(table).tell(no).failure == "not_found"


@script
def refused_the_cursor(table: Table) -> None:
    """A refused cursor is never sent again."""
    causes = {Why.EPOCH: "epoch", Why.EXPIRED: "expired", Why.AHEAD: "diverged", Why.CURSOR: "refused"}
    for why, cause in causes.items():
        talk = again(table).tell(m.Refused(Refusal(why)))
        assert (talk.kinds, talk.mode, talk.state.cause) == (["Close", "ReadSnapshot"], "resyncing", cause)


@script
def refused_by_another_protocol(table: Table) -> None:
    """A login page twice may pass; the third in a row is for a person."""
    page = m.Refused(Refusal(Why.FOREIGN))
    talk = attaching(table).tell(page)
    assert talk.mode == "waiting"
    assert talk.tell(RECONNECT, page).mode == "waiting"
    assert talk.tell(RECONNECT, page).failure == "remote_protocol_error"
    talk = attaching(table).tell(OPENED, page)
    assert talk.tell(RECONNECT, OPENED, page).mode == "waiting"
    assert talk.tell(RECONNECT, OPENED, page).failure == "remote_protocol_error", "an attach mends nothing of it"


@script
def refused(table: Table) -> None:
    """No repetition can mend it."""
    for why, code in (
        (Why.FORBIDDEN, "not_authorized"),
        (Why.OVERSIZE, "remote_protocol_error"),
        (Why.OTHER, "attach_error"),
    ):
        talk = attaching(table).tell(m.Refused(Refusal(why)))
        assert (talk.kinds, talk.failure, talk.mode) == (["Close", "Finish"], code, "done")


@script
def declined(table: Table) -> None:
    """204: the status knows why; the stream is tried again at the pace of the poll, and one not settled is named."""
    talk = again(table).tell(m.Declined())
    assert (talk.kinds, talk.mode, talk.window("reconnect")) == (["Close"], "waiting", (30.0, 37.5))
    talk.tell(status(attempt=2))
    assert talk.one(m.Notice).code == "declined"


@script
def closing_for_good(table: Table) -> None:
    """The log moved on under us."""
    for reason, cause in (("epoch_changed", "epoch"), ("cursor_expired", "expired")):
        talk = holding(table).tell(m.Closing(reason))
        assert (talk.kinds, talk.mode, talk.state.cause) == (["Close", "ReadSnapshot"], "resyncing", cause)


@script
def closing(table: Table) -> None:
    """A planned close waits a jittered time, never nothing, and is not counted; an unknown reason too."""
    for reason in ("max_age", "draining", "slow_consumer", "a new word"):
        talk = holding(table).tell(m.Closing(reason, retry=2.0))
        assert (talk.mode, talk.window("reconnect"), talk.state.backoff.waits) == ("waiting", (0.25, 2.0), 0)


@script
def ended_for_now(table: Table) -> None:
    """By polls nothing stays open: the end of the pages waits for the status, and what that has above us is fetched."""
    talk = attaching(table, by="poll").tell(status(head=0), OPENED, m.Received((event(1),)), m.Ended())
    assert (talk.kinds, talk.mode) == (["Close"], "polling")
    assert not talk.state.timers & {"reconnect", "budget", "idle", "connect"}
    talk.tell(m.Committed(mark(1)), m.Elapsed("poll"), status(head=1))
    assert (talk.kinds, talk.mode) == ([], "polling")
    talk.tell(m.Elapsed("poll"), status(head=2))
    assert (talk.kinds, talk.one(m.Open).after, talk.one(m.Open).by) == (["Open"], "e1.1", "poll")


@script
def stream_elapsed(table: Table) -> None:
    """After long polls for long enough a stream is tried again, at once and not counted."""
    talk = held_back(table)
    assert talk.one(m.Open).by == "longpoll"
    talk.tell(OPENED, m.Elapsed("stream"))
    assert (talk.mode, talk.window("reconnect"), talk.state.backoff.waits) == ("waiting", (0.0, 0.25), 2)
    assert talk.tell(RECONNECT).one(m.Open).by == "stream"


@script
def woke(table: Table) -> None:
    """A machine that slept attaches at once with a new budget, but no sooner than a server that is busy wants."""
    for talk in (attaching(table), live(table), waiting(table)):
        talk.tell(m.Woke(60.0))
        assert (talk.mode, talk.window("reconnect"), talk.window("budget")) == ("waiting", (0.0, 0.25), (600.0, 600.0))
    busy = attaching(table).tell(m.Refused(Refusal(Why.BUSY, retry_after=90.0)), m.Woke(60.0))
    assert busy.window("reconnect") == (30.0, 30.25)


@script
def woke_elsewhere(table: Table) -> None:
    """With nothing open, the status is asked at once; a search for the place gets a new budget."""
    talk = attaching(table, by="poll").tell(status(head=0), OPENED, m.Ended())
    assert talk.tell(m.Woke(60.0)).kinds == ["ReadStatus"]
    assert resyncing(table).tell(m.Woke(60.0)).window("budget") == (600.0, 600.0)


@script
def connect_elapsed(table: Table) -> None:
    """No answer in time is a loss."""
    assert attaching(table).tell(m.Elapsed("connect")).mode == "waiting"


@script
def idle_elapsed(table: Table) -> None:
    """Silence is a loss, also in a replay of what we have by a server that never said that it took us."""
    assert live(table).tell(m.Elapsed("idle")).mode == "waiting"
    replay = again(table).tell(m.Received((event(1),)))
    assert replay.mode == "live", "what such a stream holds back is looked for as well"
    assert replay.tell(m.Elapsed("connect")).mode == "live"
    assert replay.tell(m.Elapsed("idle")).mode == "waiting"


@script
def behind_elapsed(table: Table) -> None:
    """A path that holds events back is left."""
    assert live(table).tell(status(head=2), m.Elapsed("behind")).mode == "waiting"


@script
def reconnect_elapsed(table: Table) -> None:
    """The wait is over: ask after what is committed."""
    talk = holding(table).tell(m.Lost(), RECONNECT)
    assert (talk.kinds, talk.mode, talk.one(m.Open).after) == (["Open"], "attaching", "e1.2")


@script
def budget_elapsed(table: Table) -> None:
    """Neither an attach nor a status answer for the whole budget, wherever it runs out."""
    out = m.Elapsed("budget")
    for talk in (attaching(table), waiting(table), resyncing(table)):
        talk.tell(out)
        assert (talk.kinds, talk.failure, talk.mode) == (["Close", "Finish"], "reconnect_exhausted", "done")


@script
def resync_elapsed(table: Table) -> None:
    """Ask for the boundary again."""
    talk = resyncing(table).tell(m.Elapsed("resync"))
    assert (talk.kinds, talk.mode, "resync" in talk.state.timers) == (["ReadSnapshot"], "resyncing", True)


@script
def connect_elapsed_at_the_earliest(table: Table) -> None:
    """An attach at the oldest event that got no answer is closed before it is tried again."""
    talk = resyncing(table, on_gap="continue").tell(m.Elapsed("connect"))
    assert talk.kinds == ["Close"]
    assert talk.tell(m.Elapsed("resync")).kinds == ["Open"]


@script
def snapshot_read(table: Table) -> None:
    """The boundary is journaled as a gap, in its place; what is missing is counted within one epoch."""
    talk = resyncing(table).tell(m.SnapshotRead(NOW, mark(0, 5), {"text": "state"}))
    gap = talk.one(m.CommitGap)
    assert (gap.prev, gap.reason, gap.mark, gap.missing, gap.state) == (
        mark(2),
        "expired",
        mark(3, 5),
        3,
        {"text": "state"},
    )
    assert talk.state.timers == {"poll", "stall"}


@script
def snapshot_failed(table: Table) -> None:
    """A missing run ends it, a token is asked for once, a busy server is asked again when it says."""
    assert resyncing(table).tell(m.SnapshotFailed(NOW, Refusal(Why.NOT_FOUND))).failure == "not_found"
    talk = resyncing(table).tell(m.SnapshotFailed(NOW, Refusal(Why.UNAUTHENTICATED)))
    assert talk.mode == "resyncing"
    assert talk.tell(m.SnapshotFailed(NOW, Refusal(Why.UNAUTHENTICATED))).failure == "not_authorized"
    talk = resyncing(table).tell(m.SnapshotFailed(NOW, Refusal(Why.BUSY, retry_after=70.0)))
    assert (talk.mode, talk.window("resync")) == ("resyncing", (70.0, 71.0))


@script
def opened_at_the_earliest(table: Table) -> None:
    """on_gap="continue": where the server begins is the boundary."""
    talk = resyncing(table, on_gap="continue").tell(m.Opened("e1", "e1.4", 4, "a4"))
    assert (talk.kinds, talk.one(m.CommitGap).mark) == (["CommitGap"], mark(3, 4))
    assert (talk.mode, talk.state.timers) == ("live", {"idle", "poll", "stall"}), "the connection is kept"
    talk.tell(m.Received((event(5),)))
    assert (talk.one(m.Commit).prev, talk.one(m.Commit).mark) == (mark(3, 4), mark(4, 5))
    talk.tell(m.Committed(mark(3, 4), gap=True), m.Committed(mark(4, 5)))
    assert (talk.kinds, talk.one(m.Deliver).position) == (["Deliver"], 4)


@script
def refused_at_the_earliest(table: Table) -> None:
    """As for a snapshot."""
    talk = resyncing(table, on_gap="continue").tell(m.Refused(Refusal(Why.BUSY, retry_after=70.0)))
    assert (talk.kinds, talk.mode, talk.window("resync")) == (["Close"], "resyncing", (70.0, 71.0))
    assert talk.tell(m.Elapsed("resync"), m.Refused(Refusal(Why.NOT_FOUND))).failure == "not_found"
    gone = m.Refused(Refusal(Why.EXPIRED, status=410))
    talk = resyncing(table, on_gap="continue").tell(gone)
    assert (talk.kinds, talk.mode) == (["Close"], "resyncing"), "a replica may lag"
    assert talk.tell(m.Elapsed("resync"), gone).failure == "gap_unfillable", "what is kept is refused, and stays so"


@script
def declined_at_the_earliest(table: Table) -> None:
    """A settled log that keeps nothing: its snapshot tells where it ends."""
    talk = resyncing(table, on_gap="continue").tell(m.Declined())
    assert (talk.kinds, talk.mode) == (["Close", "ReadSnapshot"], "resyncing")


@script
def lost_at_the_earliest(table: Table) -> None:
    """A loss there closes and waits."""
    for loss in (m.Lost(), m.Ended()):
        talk = resyncing(table, on_gap="continue").tell(loss)
        assert (talk.kinds, talk.mode, "resync" in talk.state.timers) == (["Close"], "resyncing", True)
        assert talk.tell(m.Elapsed("resync")).kinds == ["Open"]


@script
def gap_committed(table: Table) -> None:
    """The gap is delivered in its place, and the stream goes on after the boundary."""
    talk = resyncing(table).tell(m.SnapshotRead(NOW, mark(0, 5)), m.Committed(mark(3, 5), gap=True))
    assert talk.kinds[:2] == ["Deliver", "Open"]
    assert (talk.mode, talk.one(m.Open).after, talk.one(m.Deliver).position) == ("attaching", "e1.5", 3)
    assert talk.tell(m.Opened("e1", "e1.5", 5, "a5"), m.Received((event(6),))).kinds == ["Commit"]


@script
def drained_by_commit(table: Table) -> None:
    """The boundary is asked for when the last commit has settled, not before."""
    talk = live(table).tell(m.Received((event(1),)), m.Received((event(1, epoch="e2", tag="r"),)))
    assert (talk.kinds, talk.mode) == (["Close"], "resyncing")
    assert talk.tell(m.Committed(mark(1))).kinds == ["Deliver", "ReadSnapshot"]


@script
def committed_the_end(table: Table) -> None:
    """The settling event is durable: delivered, then the end is told, in every state."""
    talk = live(table).tell(m.Received((event(1, end=True),)), m.Lost(), m.Committed(mark(1), outcome=OUTCOME))
    assert (talk.kinds, talk.mode, talk.ending) == (["Deliver", "Close", "Finish"], "done", OUTCOME)


@script
def committed(table: Table) -> None:
    """Nothing else delivers; progress begins the backoff again."""
    talk = live(table).tell(m.Received((event(1),)), m.Lost(), m.Committed(mark(1)))
    assert (talk.kinds, talk.mode, talk.state.backoff.waits) == (["Deliver"], "waiting", 0)


@script
def outcome_committed(table: Table) -> None:
    """An outcome by status is told once it is durable."""
    talk = holding(table).tell(status(True), m.OutcomeCommitted(OUTCOME))
    assert (talk.kinds, talk.mode, talk.ending) == (["Finish"], "done", OUTCOME)


@script
def commit_failed(table: Table) -> None:
    """Never deliver what is not durable; what was queued behind it neither."""
    talk = live(table).tell(m.Received((event(1),)), m.Received((event(2),)), m.CommitFailed())
    assert (talk.kinds, talk.failure, talk.mode) == (["Close", "Finish"], "commit_failed", "done")
    assert talk.tell(m.Committed(mark(2))).effects == ()


@script
def lease_lost(table: Table) -> None:
    """Another owner writes now."""
    talk = live(table).tell(m.LeaseLost())
    assert (talk.kinds, talk.failure, talk.mode) == (["Close", "Finish"], "lease_lost", "done")


@script
def full(table: Table) -> None:
    """The handler is behind: nothing is read, and no time runs out."""
    for talk in (attaching(table), live(table), waiting(table)):
        talk.tell(m.Full())
        assert (talk.kinds, talk.mode) == (["Close"], "parked")
        assert talk.state.timers == {"poll", "stall"}


@script
def drained_by_handler(table: Table) -> None:
    """The handler caught up: ask after what is committed."""
    talk = holding(table).tell(m.Full(), m.Drained())
    assert (talk.kinds, talk.mode, talk.one(m.Open).after) == (["Open"], "attaching", "e1.2")


@script
def closed(table: Table) -> None:
    """Closing works in every state, stops everything and tells nothing more."""
    parked = live(table).tell(m.Full())
    ending = holding(table).tell(status(True))
    for talk in (Dialogue(table), attaching(table), live(table), waiting(table), resyncing(table), parked, ending):
        talk.tell(m.Closed())
        assert (talk.kinds, talk.mode, talk.state.timers) == (["Close"], "done", frozenset())
        assert talk.tell(m.Closed(), m.OutcomeCommitted(OUTCOME), m.Committed(mark(9))).effects == ()


@script
def poll_elapsed(table: Table) -> None:
    """The slow poll never stops; it asks unless a read is out or the place is being looked for."""
    talk = live(table).tell(status(), m.Elapsed("poll"))
    assert (talk.kinds, "poll" in talk.state.timers) == (["ReadStatus"], True)
    assert talk.tell(m.Elapsed("poll")).kinds == []
    lost_place = resyncing(table).tell(m.Elapsed("poll"))
    assert (lost_place.kinds, "poll" in lost_place.state.timers) == ([], True)


@script
def stall_elapsed(table: Table) -> None:
    """No event for long: a notice, and nothing is begun again."""
    talk = live(table).tell(m.Elapsed("stall"))
    assert (talk.kinds, talk.mode, talk.one(m.Notice).code) == ([], "live", "stall")


@script
def status_of_another_epoch(table: Table) -> None:
    """Epochs are compared before numbers."""
    for talk in (holding(table), again(table), holding(table).tell(m.Lost()), holding(table).tell(m.Full())):
        talk.tell(status(True, 2, epoch="e2"))
        assert (talk.kinds[:2], talk.mode, talk.state.cause) == (["Close", "ReadSnapshot"], "resyncing", "epoch")


@script
def status_settled(table: Table) -> None:
    """Settled, and nothing above what is committed: the outcome is made durable, then told."""
    for talk in (holding(table), again(table), holding(table).tell(m.Lost()), holding(table).tell(m.Full())):
        talk.tell(status(True, 2))
        assert (talk.kinds[-2:], talk.mode) == (["Close", "CommitOutcome"], "ending")


@script
def status_answered(table: Table) -> None:
    """The server is there: the budget begins again, and what it has above us must come."""
    talk = waiting(table).tell(status(head=2))
    assert talk.window("budget") == (600.0, 600.0)
    talk = live(table).tell(status(head=2))
    assert talk.window("behind") == (5.0, 5.0)


@script
def status_missing(table: Table) -> None:
    """404 by status and by stream in one attempt are one; the next is the end."""
    by_status = m.StatusFailed(NOW, 1, Refusal(Why.NOT_FOUND))
    by_stream = m.Refused(Refusal(Why.NOT_FOUND))
    talk = attaching(table, before=True).tell(by_status, by_stream)
    assert talk.mode == "waiting"
    talk.tell(RECONNECT, by_status._replace(attempt=2))
    assert (talk.kinds[-2:], talk.failure) == (["Close", "Finish"], "not_found")


@script
def status_denied(table: Table) -> None:
    """401 by status and by stream in one attempt are one; the next is the end; 403 is definite."""
    by_status = m.StatusFailed(NOW, 1, Refusal(Why.UNAUTHENTICATED))
    talk = attaching(table).tell(by_status, m.Refused(Refusal(Why.UNAUTHENTICATED)))
    assert talk.mode == "waiting"
    talk.tell(RECONNECT, by_status._replace(attempt=2))
    assert (talk.kinds[-2:], talk.failure) == (["Close", "Finish"], "not_authorized")
    assert attaching(table).tell(m.StatusFailed(NOW, 1, Refusal(Why.FORBIDDEN))).failure == "not_authorized"


@script
def status_unanswered(table: Table) -> None:
    """The poll asks again, not sooner than the server says; with nothing but the status to go by, the budget runs."""
    talk = live(table).tell(m.StatusFailed(NOW, 1, Refusal(Why.BUSY, retry_after=90.0)))
    assert talk.window("poll") == (90.0, 91.0)
    talk = attaching(table, by="poll").tell(status(head=0), OPENED, m.Ended(), m.Elapsed("poll"))
    assert talk.tell(m.StatusFailed(NOW, 1, Refusal(Why.BUSY))).window("budget") == (600.0, 600.0)
    assert talk.tell(m.Elapsed("budget")).failure == "reconnect_exhausted"
