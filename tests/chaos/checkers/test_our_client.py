"""The laws find nothing in our own client, over true histories of random schedules: faults, deaths, full disks, epochs, retention.

The schedules and the stage are the client's own (`tests/client/cuts`); here all that happens on it becomes a history, told by the
model server, the disk and the application, never by the client.
"""

import asyncio
import json
import random
from collections import Counter

import anyio.to_thread
import pytest

from client.cuts import play as stage
from client.cuts.laws import Watch
from client.cuts.process import Disk, Process
from client.cuts.schedule import HEARTBEAT_MS, POLICY, schedule_from
from reattach.testing import MemoryServer
from reattach.testing.line import Line
from reattach_chaos.checkers import judge
from reattach_chaos.history import (
    Applied,
    Born,
    Case,
    Close,
    Committed,
    Created,
    Delivered,
    Died,
    Exited,
    Finished,
    Logged,
    Received,
    Recorder,
    Resume,
    ResumeOk,
    ResumeRejected,
    Server,
    Snapshot,
    Status,
    Store,
    Surfaced,
    content_sha256,
)

SECONDS = 20.0


class Scribe(Watch):
    """Writes down what the application and the server see."""

    def __init__(self, schedule, server, disk, now):
        super().__init__(schedule, server, disk, now)
        self.recorder = Recorder(clock=now)
        self.life = 0
        self.conns = 0
        self.told = 0
        self.recorder.record(
            Case(id=str(schedule.seed), marks=True, heartbeat_ms=HEARTBEAT_MS, give_up_ms=POLICY.give_up_after * 1000 / 2,
                 converge_ms=600_000, storm_connects=12)
        )  # fmt: skip
        server.scribe = disk.scribe = self

    def write(self, kind, **facts):
        self.recorder.record(kind(life=self.life, run="run_1", **facts))

    def enters(self):
        super().enters()
        if self.life:
            self.write(Exited, code=0)
        self.life += 1
        self.write(Born)

    def hands(self, event):
        super().hands(event)
        if event.gap is not None:
            gap = event.gap
            self.write(Surfaced, what="gap", reason=gap.reason, after=gap.after, until=gap.until, missing=gap.missing)
        else:
            self.write(Delivered, id=event.id, redelivered=event.redelivered, sha256=content_sha256(event.data))

    def noted(self, position):
        super().noted(position)
        event = next((each for each in reversed(self.handed) if each.position == position), None)
        if event is not None and event.gap is None:
            self.write(Applied, id=event.id)

    def attaches(self, sent):
        self.conns += 1
        self.write(Resume, conn=self.conns, after=sent.after)
        return super().attaches(sent)

    def fails(self, error):
        self.write(Surfaced, what="error", reason=type(error).__name__)
        return super().fails(error)

    def outcome(self, outcome):
        super().outcome(outcome)
        self.write(Finished, status=outcome.status.value, evidence=outcome.evidence)

    def history(self):
        self.write(Exited, code=0)
        for run in self._server.runs.values():
            self.recorder.record(Created(who="control", run=run.id, key=run.key))
            ends = {"run.completed": "completed"}
            for event in run.ever.values():
                self.recorder.record(
                    Logged(who="control", run=run.id, id=event.id, cursor=f"{event.epoch}.{event.sequence}",
                           sequence=event.sequence, epoch=event.epoch, type=event.type, settles=ends.get(event.type))
                )  # fmt: skip
        return self.recorder.history()


@pytest.fixture
def scribes(monkeypatch):
    """Let a scribe watch, and tell it what the server and the disk do."""
    made = []

    def scribe(*args):
        made.append(Scribe(*args))
        return made[-1]

    monkeypatch.setattr(stage, "Watch", scribe)
    tell(monkeypatch)

    async def here(function, *args, **options):
        return function(*args)

    monkeypatch.setattr(anyio.to_thread, "run_sync", here)
    return made


def tell(monkeypatch):
    commit, die, perform, answer = Disk.commit, Process.die, MemoryServer.perform, MemoryServer.answer_stream
    finite, page = MemoryServer._answer, MemoryServer._page
    begin, bring, over = Line.__init__, Line._bring, Line._end
    words = {"trim": "trimmed", "rotate": "epoch", "lose": "lost"}
    current = {}

    def committed(disk, writes):
        failed = disk.failed
        try:
            return commit(disk, writes)
        finally:
            if disk.failed > failed:
                disk.scribe.write(Store, did="failed")
            elif disk.cursor:
                disk.scribe.write(Committed, id=disk.cursor)

    def died(process, reached):
        if process.alive:
            process._disk.scribe.write(Died)
        die(process, reached)

    def performed(server, run, beat):
        perform(server, run, beat)
        if beat.do in words:
            server.scribe.write(Server, did=words[beat.do])

    def answered(server, sent):
        current["scribe"] = server.scribe
        told = answer(server, sent)
        if told.status >= 400:
            body = b"".join(each for each in told.body._items if isinstance(each, bytes))
            code = next(
                (each for each in ("cursor_expired", "epoch_changed", "cursor_ahead") if each.encode() in body), ""
            )
            server.scribe.write(ResumeRejected, conn=server.scribe.conns, status=told.status, code=code)
        return told

    def read(server, sent, kind):
        told = finite(server, sent, kind)
        if kind in ("status", "snapshot") and told.status == 200:
            body = json.loads(told.body)
            if kind == "status":
                server.scribe.write(Status, status=body["status"], head=body["last_sequence"], epoch=body["epoch"])
            else:
                server.scribe.write(Snapshot, boundary=body["cursor"], status=body["status"])
        return told

    async def paged(server, sent, trip):
        told = await page(server, sent, trip)
        if told.status == 200:
            body = json.loads(told.body)
            for event in body["events"]:
                cursor = f"{body['epoch']}.{event['sequence']}"
                server.scribe.write(Received, conn=server.scribe.conns, id=cursor)
        return told

    def begun(line, clock, run, sequence, leg, *rest):
        line.scribe = current["scribe"]
        line.conn = line.scribe.conns
        if leg.again or leg.skip:
            line.scribe.write(Server, did="skipped")
        line.scribe.write(ResumeOk, conn=line.conn, epoch=run.epoch, head=run.last)
        begin(line, clock, run, sequence, leg, *rest)

    def brought(line, event):
        blocks, skipped = line._blocks, line._skipped
        bring(line, event)
        if skipped == line._skipped:
            whole = line._blocks > blocks
            if whole or line._leg.cut[1] > len(event.epoch) + 12:
                line.scribe.write(Received, conn=line.conn, id=f"{event.epoch}.{event.sequence}", whole=whole)

    def ended(line, how, **named):
        line.scribe.write(Close, conn=line.conn, by="server")
        over(line, how, **named)

    for owner, name, new in (
        (Disk, "commit", committed),
        (Process, "die", died),
        (MemoryServer, "perform", performed),
        (MemoryServer, "answer_stream", answered),
        (MemoryServer, "_answer", read),
        (MemoryServer, "_page", paged),
        (Line, "__init__", begun),
        (Line, "_bring", brought),
        (Line, "_end", ended),
    ):
        monkeypatch.setattr(owner, name, new)


def played(seed, scribes):
    schedule = schedule_from(random.Random(seed))
    broken = asyncio.run(asyncio.wait_for(stage.play(schedule), SECONDS))
    assert not broken, (seed, broken)
    return scribes.pop().history()


def judged(seeds, scribes):
    wrong, compared = {}, Counter()
    for seed in seeds:
        verdict = judge(played(seed, scribes))
        compared.update({law: getattr(ruling, "compared", 1) for law, ruling in verdict.rulings.items()})
        if verdict.word != "valid":
            wrong[seed] = verdict.sentence()
    return wrong, compared


def test_no_law_finds_anything_in_our_client(scribes):
    """Seeds 0 to 39; and the laws that speak of it had something to compare."""
    wrong, compared = judged(range(40), scribes)
    assert not wrong, wrong
    spoken = {
        "I1",
        "I2",
        "I3",
        "I4",
        "I5",
        "I6",
        "I7",
        "I8",
        "I11",
        "I12",
        "I13",
        "I14",
        "I15",
        "I16",
        "I18",
        "I25",
        "I26",
        "I27",
    }
    assert spoken <= {law for law, count in compared.items() if count}


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_no_law_finds_anything_in_our_client_over_thousands(scribes):
    """Seeds 1,000 to 2,999."""
    wrong, _ = judged(range(1000, 3000), scribes)
    assert not wrong, wrong
