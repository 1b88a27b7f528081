"""FIN, RST, stall, half-open: done by the actuator; what they mean for the server's side is done here.

After a FIN or a RST the server's connection is closed, as a proxy would. A stalled server is held back and not closed; of a
half-open connection the server's end is closed and the client's is not.
"""

from reattach_chaos.gate.actuators.base import ActuatorFailed
from reattach_chaos.gate.faults.base import Blow, Impossible, Over
from reattach_chaos.schedules import Fault
from reattach_chaos.schedules.fault import SILENCES


async def strike(blow: Blow) -> None:
    """Cut."""
    link, fault = blow.link, blow.planned.fault
    obstacle = link.setting.actuator.obstacle(fault)
    if obstacle is not None:
        raise Impossible(obstacle)
    blow.tell()
    if fault is Fault.STALL and blow.planned.direction == "upstream":
        link.held_up = True
        return
    link.silent = True
    quiet = fault in SILENCES
    link.end("gate", "silence" if quiet else "rst" if fault is Fault.RST else "fin")
    link.setting.ready.clear()
    try:
        await link.setting.actuator.cut(fault, link.to_client, link.setting.cuts.next_end())
    except ActuatorFailed as error:
        link.tap.trouble(str(error))
    finally:
        link.setting.ready.set()
    if fault is not Fault.STALL:
        link.drop_server()
    raise Over
