"""401 in the middle, as after a token's end."""

from reattach_chaos.gate.faults.answering import answer
from reattach_chaos.gate.faults.base import Blow

BODY = b'{"type": "about:blank", "status": 401, "code": "unauthenticated"}'


async def strike(blow: Blow) -> None:
    """Answer 401."""
    await answer(blow, "401 Unauthorized", BODY, Content_Type="application/problem+json", WWW_Authenticate="Bearer")
