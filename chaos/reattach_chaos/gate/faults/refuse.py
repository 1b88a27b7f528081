"""Connection refused. Who asks is known only once they have connected: that attempt is reset, then the port is closed a while.

Attempts on a closed port cannot be counted (the kernel answers them), so the while is a time, for each of the fault's `times`;
all of them are used up by the first.
"""

from reattach_chaos.gate import sockets
from reattach_chaos.gate.faults.base import Blow, Over

WHILE_S = 0.15  # longer than a first backoff


async def strike(blow: Blow) -> None:
    """Refuse."""
    link = blow.link
    blow.tell()
    link.silent = True
    link.end("gate", "rst")
    link.setting.shut(WHILE_S * blow.planned.times)
    sockets.rst(link.to_client)
    link.drop_server()
    raise Over
