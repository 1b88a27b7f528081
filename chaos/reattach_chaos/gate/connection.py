"""One connection of the gate, from its acceptance to its end; every wait has one."""

import asyncio
import contextlib

from reattach_chaos.gate import sockets
from reattach_chaos.gate.downward import Downward
from reattach_chaos.gate.link import Ends, Link, Setting
from reattach_chaos.gate.tap import Tap
from reattach_chaos.gate.upward import Upward


async def serve(setting: Setting, tap: Tap, client: Ends, *, planned: bool) -> None:
    """Relay one connection until one side ends or it is cut; both sides are closed then."""
    link = Link(setting, tap, client, _relay_down, planned=planned)
    if setting.away:
        # Nobody listens: no request is read, and none is counted.
        tap.connect(None, ok=False)
        sockets.rst(link.to_client)
        return
    tap.connect(None)
    if not setting.ready.is_set():
        await setting.ready.wait()
        if not sockets.is_open(link.to_client):
            link.end("gate", "fin")  # the actuator has closed it on its way
            link.to_client.close()
            return
    upward = asyncio.create_task(Upward(link).run())
    over = asyncio.create_task(link.over.wait())
    try:
        await asyncio.wait({upward, over}, return_when=asyncio.FIRST_COMPLETED)
        if upward.done() and not over.done():
            # The client has closed its side: so is the server's. What a fault is in the middle of, it ends.
            if link.to_server is not None:
                sockets.fin(link.to_server)
            await asyncio.wait({over}, timeout=sockets.SETTLE_S if link.firing or link.downward else 0)
        else:
            # The client has been sent all that it will get: it closes, or is left after a while.
            held = link.silent and link.ended == ("gate", "silence")
            await asyncio.wait({upward}, timeout=sockets.STALL_S if held else sockets.SETTLE_S)
    finally:
        # Before the first await: we may be cancelled at any, when the gate ends.
        tasks = [task for task in (upward, over, link.downward) if task is not None]
        link.drop_server()
        link.to_client.close()
        for task in tasks:
            task.cancel()
        for result in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(result, Exception):
                tap.trouble(f"{type(result).__name__}: {result}")
        with contextlib.suppress(OSError):
            await link.to_client.wait_closed()
        link.end("gate", "fin")


async def _relay_down(link: Link) -> None:
    await Downward(link).run()
