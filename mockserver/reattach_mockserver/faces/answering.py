"""What stands around every call, on every port: a refusal becomes its problem, a failure one that says nothing more than that.

It knows no path and no rule; what answers the call is given. Where the rules come from: PROTOCOL, section 4, Refusals.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping

from starlette.types import Receive, Scope, Send

from reattach_mockserver.engine.engine import Engine
from reattach_mockserver.faces.call import Call, Gone
from reattach_mockserver.faces.problem import Refusal, overloaded
from reattach_mockserver.logs.base import LogUnavailable

_logger = logging.getLogger(__name__)


async def started(engine: Engine) -> None:
    """Start the engine, where nobody ran the application's lifespan.

    Raises:
        Refusal: It cannot be started now.
    """
    try:
        await engine.start()
    except LogUnavailable:
        raise overloaded("the log cannot be opened at the moment") from None
    except Exception:
        _logger.exception("the engine could not be started")
        raise Refusal("internal", "the server could not be started; its log says why") from None


async def answering(
    engine: Engine,
    scope: Scope,
    receive: Receive,
    send: Send,
    answer: Callable[[Call], Awaitable[None]],
    extra: Mapping[str, str],
) -> None:
    """Have a call answered, whatever happens; `extra` headers are in every answer.

    Raises:
        Exception: What failed when half an answer was sent. That cannot be taken back; breaking off shows that it is none.
    """
    begun = False

    async def observed(message: Mapping[str, object]) -> None:
        nonlocal begun
        begun = True
        await send(dict(message))

    call = Call(scope, receive, observed, extra)
    try:
        await answer(call)
    except Refusal as refusal:
        await call.refuse(refusal)
    except Gone:
        return
    except LogUnavailable:
        if begun:
            raise
        await call.refuse(overloaded("the log cannot be asked at the moment"))
    except Exception:
        if not engine.started and not begun:
            await call.refuse(overloaded("the server restarts"))
            return
        _logger.exception("%s %s failed", call.method, scope["path"])
        if begun:
            raise
        await call.refuse(Refusal("internal", "the server failed; nothing more is known"))
