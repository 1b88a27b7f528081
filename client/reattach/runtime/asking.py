"""Questions to the server that have a finite answer: the token asked for again once, and the words where no answer came."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reattach import errors
from reattach.core.messages import Failure, Why
from reattach.core.moves import failure_of
from reattach.profiles.base import Call, Reading, Unreadable
from reattach.runtime.calls import Limit, Refused
from reattach.runtime.failures import Place, error_of
from reattach.transports.base import Response

if TYPE_CHECKING:
    from reattach.runtime.engine import Engine

ATTEMPTS = 3
"""Of one question: one request and at most two repeats."""


async def asked(engine: Engine, call: Call, limit: Limit | None = None) -> Response:
    """Return the good answer of a call; a refused token is asked for again, once.

    Without a limit it is one request and two repeats; who waits is not kept longer than the budget by a server's Retry-After.

    Raises:
        Refused: It was refused, or not answered.
    """
    limit = limit or Limit(attempts=ATTEMPTS, longest=engine.policy.give_up_after)
    denied = sent = False
    while True:
        try:
            return await engine.calls.make(call, limit)
        except Refused as error:
            error.sent = sent = sent or error.sent  # what was lost before the token was refused may have been taken
            if error.refusal.why is not Why.UNAUTHENTICATED or denied:
                raise
            denied = True


def told(error: Refused) -> tuple[str, str]:
    """Return how often was asked, and what came last, in the words of messages."""
    tried = "1 attempt" if error.attempts == 1 else f"{error.attempts} attempts"
    wait = error.refusal.retry_after
    return tried, error.refusal.detail if not wait else f"{error.refusal.detail}, asking to wait {wait:g} s"


async def reading(engine: Engine, place: Place, call: Call) -> Reading:
    """Return a run as the answer of a call tells it.

    Raises:
        NotFound, NotAuthorized, RemoteProtocolError, AttachError, LocalProtocolError: It did not say.
    """
    try:
        answer = await asked(engine, call)
        return engine.profile.reading(place.run_id, answer.body)
    except Unreadable as error:
        raise error_of(Failure("remote_protocol_error", error.detail, attempts=1), place) from error
    except Refused as error:
        if error.refusal.why is Why.BUSY:
            tried, last = told(error)
            raise errors.AttachError(
                f"{engine.server} did not answer about run {place.run_id!r} ({tried}, last: {last}).",
                run_id=place.run_id,
                key=place.key,
                cursor=place.mark.cursor,
                tried=tried,
                problem=error.refusal.code,
                hint="Try again; the run itself may be going on.",
            ) from error
        raise error_of(failure_of(error.refusal)._replace(attempts=1), place) from error


def unanswered(engine: Engine, what: str, error: Refused) -> errors.ReattachError:
    """Return the error of a question that got no good answer.

    Args:
        engine: The client at work.
        what: What was asked about: "operation 'op_1'".
        error: What came instead.
    """
    refusal = error.refusal
    facts: errors.Facts = {"problem": refusal.code, "tried": ""}
    said = f"{refusal.status} {refusal.code or ''}".strip() if refusal.status is not None else "no answer"
    match refusal.why:
        case Why.BUSY:
            tried, last = told(error)
            return errors.AttachError(
                f"{engine.server} did not answer about {what} ({tried}, last: {last}).",
                hint="Ask again later.",
                **(facts | {"tried": tried}),
            )
        case Why.NOT_FOUND:
            return errors.NotFound(
                f"{engine.server} knows no {what} ({said}). Nothing was changed.",
                hint="Check the server's address and whose token it is.",
                **facts,
            )
        case Why.UNAUTHENTICATED | Why.FORBIDDEN:
            return errors.NotAuthorized(
                f"{engine.server} refused the token when asked about {what} ({said}).",
                hint="Renew the token, then ask again.",
                **facts,
            )
        case Why.UNSENDABLE:
            return errors.LocalProtocolError(
                f"the question about {what} cannot be sent: {refusal.detail}.",
                hint="Check headers and token for characters that HTTP does not allow.",
                **facts,
            )
        case Why.FOREIGN:
            return unreadable(engine, what, refusal.detail)
        case _:
            return errors.AttachError(
                f"{engine.server} does not answer about {what} ({said}: {refusal.detail}).",
                hint="No repetition helps as long as the server answers so.",
                **facts,
            )


def unreadable(engine: Engine, what: str, detail: str) -> errors.RemoteProtocolError:
    """Return the error of an answer that is not the protocol."""
    return errors.RemoteProtocolError(
        f"asked about {what}, {engine.server} answered what is not the protocol: {detail}.",
        hint="Open the address in a browser, then ask again.",
    )


def unsupported(engine: Engine, what: str) -> errors.UsageError:
    """Return the error of a question that this vendor's protocol does not have."""
    return errors.UsageError(f"{what} cannot be asked for with profile {engine.profile.name!r}. Nothing was sent.")
