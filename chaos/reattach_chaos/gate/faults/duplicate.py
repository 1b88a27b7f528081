"""A span twice: the last events are sent again, then the stream goes on."""

from reattach_chaos.gate.faults.base import Blow, Impossible


async def strike(blow: Blow) -> None:
    """Send the last events again."""
    link = blow.link
    again = link.rewriter.recent(max(1, int(blow.setting("events")))) if link.rewriter is not None else []
    if link.rewriter is None or not again:
        raise Impossible("no event has passed on this connection that could come twice")
    blow.tell()
    for data, block in again:
        link.tap.event(blow.exchange, block, None)
        await link.send_down(link.rewriter.body(data))
