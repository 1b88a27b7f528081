"""The gate: a TCP relay that knows HTTP/1.1, event streams, JSON pages and WebSocket frames well enough to cut at a meaning.

    from reattach_chaos.gate import Gate

It stands between a client under test and any server, changes no byte that no fault asks for, writes down what passed, and does
what a schedule says exactly where it says. Start with `gate.py`, then `downward.py`; a place is a `Mark`, found by a reader such as
`events.py`.

`python -m reattach_chaos.gate` is the demo's, with a plan of its own (`relay.py`, `plan.py`, `server.py`).

Never here: a byte of our own where no fault is planned, a verdict, anything of the client's. The parsers are the gate's own, so
that a fault of the client's decoder cannot hide itself.
"""

from reattach_chaos.gate.actuators import Actuator, LocalActuator
from reattach_chaos.gate.gate import Gate
from reattach_chaos.gate.routes import NATIVE, Dialect

__all__ = ["Gate", "Actuator", "LocalActuator", "Dialect", "NATIVE"]
