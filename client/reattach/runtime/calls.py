"""Finite calls: create, status, snapshot, cancel. tenacity repeats them, one retry object a call; the endless part is the core's.

Only what is worth repeating is repeated: no answer, and answers of the class busy. A wait is at least what the server asks for,
and jittered. Cancellation passes unhindered.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import NamedTuple

import tenacity

from reattach.core.backoff import Backoff
from reattach.core.messages import Refusal, Why
from reattach.policy import Policy
from reattach.profiles.base import Call, Profile
from reattach.runtime.clock import Clock, sleep
from reattach.transports.base import Request, Response, Wire, WireLost, WireRefused

Headers = Callable[[], Awaitable[dict[str, str | bytes]]]


class Refused(Exception):
    """A definite answer that is not the good one, or none at all (`why` busy).

    `sent`: an earlier attempt may have been taken; `attempts`: so many were made.
    """

    def __init__(self, refusal: Refusal, *, sent: bool, attempts: int) -> None:
        super().__init__(refusal.detail)
        self.refusal = refusal
        self.sent = sent
        self.attempts = attempts


class Limit(NamedTuple):
    """How long to go on: so many attempts, or so many seconds (None: for ever).

    `once`: no repeat after an attempt that may have been taken, however long there is time. `longest`: seconds; a server that
    asks for a longer wait ends it at once.
    """

    attempts: int | None = None
    seconds: float | None = None
    once: bool = False
    longest: float | None = None


class Calls:
    """Makes a profile's calls on a wire.

    Args:
        wire: Where to.
        profile: Sorts the answers.
        server: The address, without a slash at its end.
        headers: Asked for at every attempt (a token may be new).
        policy: The waits and the limit of one attempt.
        clock: Time and chance.
    """

    def __init__(
        self, wire: Wire, profile: Profile, server: str, headers: Headers, policy: Policy, clock: Clock
    ) -> None:
        self._wire = wire
        self._profile = profile
        self._server = server
        self._headers = headers
        self._policy = policy
        self._clock = clock
        self._wishes: dict[tuple[str, str], float] = {}
        """Until when a server does not want to be asked something again, whoever of us asks."""

    async def request(self, call: Call, timeout: float) -> Request:
        """Return the whole request of a profile's call, with today's headers."""
        headers = dict(await self._headers())
        headers.update({name: value.encode() if not value.isascii() else value for name, value in call.headers.items()})
        body = None
        if call.body is not None:
            body = call.body if isinstance(call.body, bytes) else json.dumps(call.body, ensure_ascii=False).encode()
            headers["Content-Type"] = "application/json"
        headers.setdefault("Accept", "application/json")
        return Request(call.method, self._server + call.path, headers, body, timeout)

    async def make(self, call: Call, limit: Limit) -> Response:
        """Return the good answer (2xx) of a call.

        Raises:
            Refused: Any other answer that repeating cannot mend, or the limit is over.
        """
        await self._as_wished(call, limit)
        sent = False
        backoff = Backoff()
        answer: Response | None = None
        looked = self._clock.now()
        spent = pausing = 0.0
        waited: list[float] = []

        def wait(state: tenacity.RetryCallState) -> float:
            nonlocal backoff
            error = state.outcome.exception() if state.outcome else None
            after = error.refusal.retry_after if isinstance(error, Refused) else None
            window, backoff = backoff.delayed(self._policy, retry_after=after)
            waited[:] = [self._clock.draw(window.low, window.high)]
            return waited[0]

        def stop(state: tenacity.RetryCallState) -> bool:
            nonlocal looked, spent, pausing
            # What an attempt and the wait before it cannot have taken, the machine slept: no reason to give up (promise 10).
            now = self._clock.now()
            spent += min(now - looked, self._policy.connect_timeout + pausing)
            looked, pausing = now, waited[0] if waited else 0.0
            if limit.attempts is not None and state.attempt_number >= limit.attempts:
                return True
            if limit.once and sent:
                return True
            error = state.outcome.exception() if state.outcome else None
            after = error.refusal.retry_after if isinstance(error, Refused) else None
            if after is not None and limit.longest is not None and after > limit.longest:
                return True
            return limit.seconds is not None and spent + pausing > limit.seconds

        def again(error: BaseException) -> bool:
            return isinstance(error, Refused) and error.refusal.why is Why.BUSY

        async def pause(seconds: float) -> None:
            await sleep(self._clock, seconds)
            await self._as_wished(call, limit)

        retrying = tenacity.AsyncRetrying(
            retry=tenacity.retry_if_exception(again), wait=wait, stop=stop, sleep=pause, reraise=True
        )
        async for attempt in retrying:
            with attempt:
                made = attempt.retry_state.attempt_number
                try:
                    answer = await self._wire.call(await self.request(call, self._policy.connect_timeout))
                except WireLost as error:
                    sent = sent or not error.definite
                    raise Refused(Refusal(Why.BUSY, error.detail), sent=sent, attempts=made) from error
                except WireRefused as error:
                    raise Refused(Refusal(Why.UNSENDABLE, error.detail), sent=sent, attempts=made) from error
                if not 200 <= answer.status <= 299:
                    refusal = self._profile.refusal(answer.status, answer.headers, answer.body)
                    if refusal.why is Why.BUSY and answer.status != 429:
                        sent = True  # a gateway's 502 says nothing about what is behind it
                    if refusal.why is Why.BUSY and refusal.retry_after is not None:
                        self._wish(call, refusal.retry_after)
                    raise Refused(refusal, sent=sent, attempts=made)
        assert answer is not None
        return answer

    async def _as_wished(self, call: Call, limit: Limit) -> None:
        """Wait out what the server asked for when another question of ours asked the same, or asked it meanwhile.

        A person's own question is sent: they were told how long the server wants, and ask nevertheless.

        Raises:
            Refused: There is no time for that.
        """
        left = self._wishes.get((call.method, call.path), 0.0) - self._clock.now()
        if left <= 0 or limit.longest is not None or limit.seconds is not None:
            return
        if limit.attempts == 1:
            refusal = Refusal(Why.BUSY, "the server asked before to wait", retry_after=left)
            raise Refused(refusal, sent=False, attempts=0)
        await sleep(self._clock, left)

    def _wish(self, call: Call, seconds: float) -> None:
        now = self._clock.now()
        self._wishes = {each: until for each, until in self._wishes.items() if until > now}
        self._wishes[call.method, call.path] = now + seconds
