"""Accepted, then closed without a byte: neither the server nor the client gets one."""

from reattach_chaos.gate.faults.base import Blow


async def strike(blow: Blow) -> None:
    """Close."""
    blow.tell()
    await blow.hang_up()
