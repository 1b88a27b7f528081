"""200, an event stream, and nothing in it."""

from reattach_chaos.gate.faults.answering import answer
from reattach_chaos.gate.faults.base import Blow


async def strike(blow: Blow) -> None:
    """Answer with an empty stream."""
    await answer(blow, "200 OK", b"", Content_Type="text/event-stream")
