"""Another instance: this request goes to the second server."""

from reattach_chaos.gate.faults.base import Blow, Impossible


async def strike(blow: Blow) -> None:
    """Lead this request elsewhere."""
    if len(blow.link.setting.instances) < 2:
        raise Impossible("there is only one instance of the server")
    blow.tell()
    blow.link.wanted = 1
