"""`SmallClient`: a right client in two hundred lines, made to be broken in one place at a time.

It keeps the laws the simplest way: a journal of what it was sent, saved before it is shown; a mark, saved after; attach after the
last of the journal; drop what is not new; believe an end only with its event; wait longer each time. A mutant is this class with
one decision changed. It is nobody's production client, and shares nothing with `reattach`'s.

Each decision is a method of its own, named in the README's table beside the mutant that changes it.
"""

import json
from typing import Any, NoReturn

from reattach_chaos.mutants.blocks import Block, Reader
from reattach_chaos.mutants.world import Fenced, Lost, Silent, StoreBroken, Stream, World

HEARTBEATS = 3.0
FLOOR, BASE, CEILING = 0.02, 0.1, 5.0
GIVE_UP = 120.0
HOLES = 3
"""So often in a row events may be missing at one place until they are believed to be gone."""
ENDS = {
    "run.completed": "completed",
    "run.failed": "failed",
    "run.cancelled": "cancelled",
    "run.paused": "paused",
}
GONE = (400, 403, 404, 409, 410)


class SmallClient:
    """Follows one run to its end, showing each event once.

    Args:
        world: Its surroundings.
        run: The run's id; None: it is created, under `key`.
        key: Of the create.
        heartbeat: Seconds in which a byte comes, on a stream that lives.
    """

    tells_marks = True
    """Whether it says what it committed and applied."""

    def __init__(self, world: World, run: str | None = None, *, key: str = "key", heartbeat: float = 1.0) -> None:
        self.world = world
        self.key = key
        self.heartbeat = heartbeat
        self.fruitless = 0
        self.holes = 0
        self.last_good = world.now()
        self.reader = Reader()
        self.token: int | None = world.lease()
        state = world.load()  # behind the lease: what another process writes until then is there
        self.run_id: str | None = run or state.get("run")
        self.journal: list[dict[str, Any]] = list(state.get("journal", []))
        self.applied: int = state.get("applied", 0)
        self.admitted = {self.identity(entry) for entry in self.journal}
        self.cursor: str | None = self.journal[-1]["cursor"] if self.journal else None

    # the way ----------------------------------------------------------------------------------------------------------

    def run(self) -> int:
        """Follow the run; return the exit code: 0 after its end, 1 after an error that was told."""
        try:
            if self.run_id is None:
                self.create()
            self.last_good = self.world.now()
            self.show(redelivered=True)
            while not self.done():
                self.attempt()
        except Fenced:
            return self.fail("lease_lost")
        except StoreBroken:
            return self.fail("commit_failed")
        except _GivenUp as error:
            return self.fail(str(error))
        return 0

    def create(self) -> None:
        """Ask for the run until there is one."""
        tries = 0
        while self.run_id is None:
            tries += 1
            try:
                answer = self.world.create(self.key_of(tries))
            except Lost:
                self.wait(None)
                continue
            self.run_id = str(answer.body["id"])
        self.save()

    def attempt(self) -> None:
        """Attach once and read until the connection ends; then wait."""
        wish = None
        try:
            stream = self.world.attach(self.run_id or "", self.asked_after())
            wish = stream.retry_after
            if stream.status == 200:
                self.opened()
                self.follow(stream)
            elif stream.status != 204:
                self.refused(stream.status, stream.code)
        except (Lost, Silent):
            pass
        if not self.done():
            self.wait(wish)

    def follow(self, stream: Stream) -> None:
        """Read a stream to its end."""
        self.reader = Reader()
        try:
            while not self.done():
                data = stream.read(self.patience())
                if not data:
                    self.ended()
                    return
                for block in self.reader.feed(data):
                    self.take(block)
        finally:
            stream.close()

    def take(self, block: Block) -> None:
        """Take a whole block: a control frame, or an event."""
        if not block.id:
            return
        value = block.value()
        entry = {"cursor": block.id, "id": value["id"], "type": block.type, "data": value["data"]}
        if self.identity(entry) in self.admitted:
            return
        if self.hole(entry):
            self.missed()
        self.admit(entry)

    def admit(self, entry: dict[str, Any]) -> None:
        """Make an event durable, then show it."""
        self.admitted.add(self.identity(entry))
        self.commit(entry)
        self.progress()
        self.show()

    def commit(self, entry: dict[str, Any]) -> None:
        """Make an event durable."""
        self.journal.append(entry)
        self.save()
        self.cursor = entry["cursor"]
        if self.tells_marks:
            self.world.say({"kind": "committed", "id": entry["cursor"]})

    def show(self, *, redelivered: bool = False) -> None:
        """Show what is durable and not shown yet, and mark it."""
        while self.applied < len(self.journal):
            entry = self.journal[self.applied]
            self.present(entry, redelivered=redelivered)
            self.confirm(entry)

    def present(self, entry: dict[str, Any], *, redelivered: bool = False) -> None:
        """Show one event."""
        line = {"kind": "rendered", "id": entry["cursor"], "data": entry["data"]}
        self.world.say(line | ({"redelivered": True} if redelivered else {}))

    def confirm(self, entry: dict[str, Any]) -> None:
        """Mark one event as done with; behind the settling one, tell the end."""
        self.applied += 1
        self.save()
        if self.tells_marks:
            self.world.say({"kind": "applied", "id": entry["cursor"]})
        if entry["type"] in ENDS:
            self.world.say({"kind": "finished", "status": ENDS[entry["type"]], "evidence": "event"})

    def save(self) -> None:
        """Write the journal and the mark."""
        self.world.save({"run": self.run_id, "journal": self.journal, "applied": self.applied}, self.token)

    # the decisions ----------------------------------------------------------------------------------------------------

    def key_of(self, tries: int) -> str:
        """Return the key of a create: always the same."""
        return self.key

    def asked_after(self) -> str | None:
        """Return the cursor to attach after: of the last event that is durable."""
        return self.cursor

    def identity(self, entry: dict[str, Any]) -> str:
        """Return by what an event is known: its own id."""
        return str(entry["id"])

    def hole(self, entry: dict[str, Any]) -> bool:
        """Return whether events are missing before this one."""
        if self.cursor is None or self.epoch(self.cursor) != self.epoch(entry["cursor"]):
            return False
        return self.number(entry["cursor"]) > self.number(self.cursor) + 1

    def missed(self) -> None:
        """Judge a hole: what is missing is asked for again; after the third time at one place it is gone, and that is told."""
        self.holes += 1
        if self.holes < HOLES:
            raise Lost("an event is missing")
        self.gone("gap_unfillable")

    def done(self) -> bool:
        """Return whether the settling event was shown."""
        return bool(self.journal) and self.journal[-1]["type"] in ENDS and self.applied == len(self.journal)

    def ended(self) -> None:
        """Judge an end of stream without a settling event: it is no end."""

    def opened(self) -> None:
        """Judge a 200: it is no progress, but a good sign."""
        self.last_good = self.world.now()

    def progress(self) -> None:
        """Note that something new came: waits are short again."""
        self.fruitless = self.holes = 0
        self.last_good = self.world.now()

    def patience(self) -> float:
        """Return the seconds of silence after which a connection is lost."""
        return self.heartbeat * HEARTBEATS

    def refused(self, status: int, code: str) -> None:
        """Judge a refusal: what is gone is told, and ends the watch; all else passes."""
        if status in GONE:
            self.gone(code or str(status))

    def wait(self, wish: float | None) -> None:
        """Wait before the next attempt: longer each time, by chance, and no shorter than the server wishes.

        After a connection that had brought something new, the first wait is none.
        """
        if self.world.now() - self.last_good > GIVE_UP:
            raise _GivenUp("reconnect_exhausted")
        delay = 0.0
        if self.fruitless:
            delay = self.world.draw(FLOOR, min(CEILING, BASE * 2.0 ** (self.fruitless - 1)))
        self.fruitless += 1
        self.world.sleep(max(delay, wish or 0.0))

    # small ------------------------------------------------------------------------------------------------------------

    def gone(self, reason: str) -> NoReturn:
        """Tell a gap, and end the watch."""
        self.world.say({"kind": "gap", "reason": reason})
        raise _GivenUp(reason)

    def fail(self, reason: str) -> int:
        """Tell an error; return the exit code."""
        self.world.say(
            {"kind": "error", "code": reason, "message": json.dumps({"run": self.run_id, "cursor": self.cursor})}
        )
        return 1

    @staticmethod
    def number(cursor: str) -> int:
        """Return the number in a cursor."""
        return int(cursor.rpartition(".")[2])

    @staticmethod
    def epoch(cursor: str) -> str:
        """Return the epoch in a cursor."""
        return cursor.rpartition(".")[0]


class _GivenUp(Exception):
    """The watch ends with this error."""
