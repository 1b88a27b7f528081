"""A chunk size that is none; then the connection ends."""

from reattach_chaos.gate.faults.base import Blow, Impossible

NONE = b"zz\r\n"


async def strike(blow: Blow) -> None:
    """Send it."""
    rewriter = blow.link.rewriter
    if rewriter is None or not rewriter.chunked:
        raise Impossible("the answer is not chunked")
    blow.tell()
    await blow.link.send_down(NONE)
    await blow.hang_up()
