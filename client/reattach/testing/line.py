"""One open connection of a `MemoryServer`: what is sent on it, and where its plan cuts it."""

from __future__ import annotations

from collections.abc import Callable

from reattach.runtime.clock import Alarm, Clock
from reattach.testing.body import Body
from reattach.testing.forms import Form
from reattach.testing.model_run import Logged, ModelRun
from reattach.testing.plans import Leg


class Line:
    """A subscriber of one run.

    Args:
        clock: For heartbeats.
        run: The run.
        sequence: The number that it goes on after.
        leg: The plan.
        heartbeat_ms: Milliseconds between two signs of life at most.
        form: How it is said.
        over: Called once when nothing more is sent on it, with how it ends: "fin", "reset", "stall" or "hold".
    """

    def __init__(
        self,
        clock: Clock,
        run: ModelRun,
        sequence: int,
        leg: Leg,
        heartbeat_ms: int,
        form: Form,
        over: Callable[[Line, str], None],
    ) -> None:
        self.body = Body()
        self.epoch = run.epoch
        self._clock = clock
        self._run = run
        self._leg = leg
        self._form = form
        self._over = over
        self._heartbeat_ms = heartbeat_ms
        self._blocks = 0
        self._pending = bytearray()
        self._ended = False
        self._held = False
        self._skipped = 0
        self._beat: Alarm | None = None
        self._next = max(run.first, sequence + 1 - leg.again)
        cursor_id = None
        if sequence:
            before = run.at(sequence)
            cursor_id = before.id if before else run.forgotten_id
        if leg.attached:
            self._send(
                form.attached(
                    sequence,
                    run_id=run.id,
                    epoch=run.epoch,
                    last=run.last,
                    cursor_id=cursor_id,
                    heartbeat_ms=heartbeat_ms,
                )
            )
        else:
            self._blocks = 1
            self._maybe_cut()
        self._skipped = leg.skip
        self.bring()

    @property
    def over(self) -> bool:
        """Whether nothing more is sent on it."""
        return self._ended

    def bring(self) -> None:
        """Send what the log has and this line has not."""
        while not self._ended and (event := self._run.at(self._next)) is not None:
            self._next += 1
            self._bring(event)
        self._flush()
        if not self._ended and self._run.settled and self._next > self._run.last:
            self._end("fin")
        self._begin_beat()

    def close(self, reason: str | None) -> None:
        """End it between two events, saying why; None ends it in silence."""
        if not self._ended:
            if reason is None:
                self._end("stall")
            else:
                self._pending += self._form.closing(reason)
                self._end("fin")

    def cut(self, how: str) -> None:
        """Break it now, between two blocks: "fin", "reset", "stall" or "hold"."""
        if not self._ended:
            self._end(how, whole=False)

    def _bring(self, event: Logged) -> None:
        if self._skipped:
            self._skipped -= 1
            return
        self._send(self._form.event(event))

    def _send(self, block: bytes) -> None:
        cut = self._leg.cut
        if cut is not None and self._blocks == cut[0]:
            self._pending += block[: min(cut[1], len(block) - 1)]
            self._end(self._leg.how, whole=False)
            return
        self._pending += block
        self._blocks += 1
        self._maybe_cut()

    def _maybe_cut(self) -> None:
        cut = self._leg.cut
        if cut is not None and self._blocks >= cut[0] and cut[1] == 0:
            if self._leg.closing is not None:
                self._pending += self._form.closing(self._leg.closing)
            self._end(self._leg.how)

    def _end(self, how: str, *, whole: bool = True) -> None:
        self._ended = True
        if how == "fin" and whole:
            self._pending += self._form.over
        self._flush()
        if how == "fin":
            self.body.fin()
        elif how == "reset":
            self.body.reset()
        self._held = how == "hold"
        if self._beat is not None and not self._held:
            self._beat.cancel()
        self._over(self, how)
        self._begin_beat()

    def _flush(self) -> None:
        if self._pending:
            size = self._leg.read
            reads = [size] * (len(self._pending) // size) if size else []
            self.body.send(bytes(self._pending), reads=reads)
            self._pending.clear()

    def _begin_beat(self) -> None:
        if (self._held or not self._ended) and self._beat is None:
            self._beat = self._clock.call_at(self._clock.now() + self._heartbeat_ms / 1500.0, self._send_beat)

    def _send_beat(self) -> None:
        self._beat = None
        if self._held or not self._ended:
            if self.body.closed.is_set():
                self._held = False
                if not self._ended:
                    self._ended = True
                    self._over(self, "stall")
                return
            self.body.send(self._form.beat)
            self._begin_beat()
