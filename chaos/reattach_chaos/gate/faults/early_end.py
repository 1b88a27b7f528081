"""A clean early end: the body ends as a whole one does, and no terminal event has come."""

from reattach_chaos.gate.faults.base import Blow, Impossible


async def strike(blow: Blow) -> None:
    """End the body, then the connection."""
    rewriter = blow.link.rewriter
    if rewriter is None:
        raise Impossible("there is no answer whose body could end")
    blow.tell()
    await blow.link.send_down(rewriter.end)
    await blow.hang_up()
