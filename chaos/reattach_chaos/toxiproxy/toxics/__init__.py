"""Every toxic by the name that the API has for it. How to add one: `base.py`."""

from typing import Final

from reattach_chaos.toxiproxy.toxics.bandwidth import Bandwidth
from reattach_chaos.toxiproxy.toxics.base import Toxic
from reattach_chaos.toxiproxy.toxics.latency import Latency
from reattach_chaos.toxiproxy.toxics.limit_data import LimitData
from reattach_chaos.toxiproxy.toxics.noop import Noop
from reattach_chaos.toxiproxy.toxics.reset_peer import ResetPeer
from reattach_chaos.toxiproxy.toxics.slicer import Slicer
from reattach_chaos.toxiproxy.toxics.slow_close import SlowClose
from reattach_chaos.toxiproxy.toxics.timeout import Timeout

TOXICS: Final[dict[str, type[Toxic]]] = {
    each.kind: each for each in (Noop, Latency, Bandwidth, SlowClose, Timeout, ResetPeer, Slicer, LimitData)
}
