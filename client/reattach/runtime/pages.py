"""Pages as one connection: a run's events, asked for page after page, told to the core as a stream's would be.

The first page is asked for without waiting: it is the answer to the attach. By long polls each further one waits on the server
until there is something; by polls the pages end when the server has no more for now. What is refused in the middle is refused as
an attach would be. Tokens are asked for at each page.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reattach.core.liveness import BEATS
from reattach.core.messages import By, Declined, Ended, Heard, Input, Opened, Refusal, Refused, Why
from reattach.policy import Policy
from reattach.profiles.base import Noted, Reader, Unreadable
from reattach.transports.base import WireLost

if TYPE_CHECKING:
    from reattach.runtime.engine import Engine

LONGEST_WAIT = 20.0
"""Seconds that the server may hold a page back: below the 30 s after which some proxies and the protocol itself give up."""


def waiting(policy: Policy) -> float:
    """Return the seconds that a long poll may wait, so that three in a row are silence."""
    return min(LONGEST_WAIT, policy.idle_timeout / BEATS)


class Pages:
    """One connection that is made of pages.

    Args:
        engine: The client at work.
        run_id: The run.
        after: The cursor to go on after, None for the beginning.
        by: Long polls, or pages until there is none for now.
        reader: Reads their frames.
    """

    def __init__(self, engine: Engine, run_id: str, after: str | None, by: By, reader: Reader) -> None:
        self._engine = engine
        self._run_id = run_id
        self._after = after
        self._by = by
        self._reader = reader
        self._first = True
        self.over = False
        """Whether the last page was read, or refused."""

    async def read(self) -> tuple[Input | Noted, ...]:
        """Return what the next page says, in order.

        Raises:
            WireLost: No whole answer in time.
            WireRefused: It cannot be asked for.
        """
        engine = self._engine
        wait = waiting(engine.policy)
        held = 0.0 if self._first or self._by == "poll" else wait
        call = engine.profile.page(self._run_id, self._after, held)
        if call is None:
            self.over = True
            return (Refused(Refusal(Why.OTHER, f"{engine.profile.name} has no pages of events")),)
        # The core's own limit is the one that counts; this one is for an answer that comes in drops.
        request = await engine.calls.request(call, engine.policy.connect_timeout + held)
        answer = await engine.wire.call(request)
        if answer.status == 204:
            self.over = True
            return (Declined(),)
        if answer.status != 200:
            self.over = True
            return (Refused(engine.profile.refusal(answer.status, answer.headers, answer.body)),)
        try:
            page = engine.profile.paged(self._run_id, self._after, answer.body, first=self._first)
        except Unreadable as error:
            self.over = True
            return (Refused(Refusal(Why.FOREIGN, error.detail, 200)),)
        if not page.last and page.following == self._after:
            raise WireLost("a page that brings nothing and leads nowhere")
        self._first, self._after = False, page.following
        told: list[Input | Noted] = [Heard()]
        told.extend(
            each._replace(heartbeat=wait) if isinstance(each, Opened) else each
            for each in self._reader.read(page.frames)
        )
        self.over = page.last and (page.settled or self._by == "poll")
        if self.over:
            told.append(Ended())
        return tuple(told)
