"""Servers and proxies in the hands of a test, on either backend.

with Toxiproxy() as toxiproxy, toxiproxy.proxy("127.0.0.1:8700") as proxy:
    proxy.plan("rst", after=1234)          # before the client connects: exact
    follow(proxy.url_for(url))
    proxy.heal()
    proxy.cut("stall")                     # now; proxy.heal() lets what waited go on
"""

from reattach_chaos.toxiproxy.control.backends import BackendName
from reattach_chaos.toxiproxy.control.doors import Doors
from reattach_chaos.toxiproxy.control.errors import Declined, InfrastructureError, ToxiproxyError, Unsafe
from reattach_chaos.toxiproxy.control.proxy import Fault, PlannedFault, Proxy
from reattach_chaos.toxiproxy.control.toxiproxy import Toxiproxy

__all__ = [
    "Toxiproxy",
    "Proxy",
    "Doors",
    "Fault",
    "PlannedFault",
    "BackendName",
    "ToxiproxyError",
    "Unsafe",
    "Declined",
    "InfrastructureError",
]
