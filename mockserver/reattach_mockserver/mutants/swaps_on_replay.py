"""A server that sends neighbours in another order when it sends them again."""

from reattach_mockserver.mutants.block import Block
from reattach_mockserver.mutants.holding import HoldingStream
from reattach_mockserver.mutants.wrong import WrongServer


class _Stream(HoldingStream):
    """Its streams."""

    def overtaken(self, block: Block) -> bool:
        """Return whether it is sent again; every other one waits, since one at most is held back."""
        return self.after is not None and not block.kind.startswith("run.")


class SwapsOnReplay(WrongServer):
    """See the module."""

    id = "swaps-on-replay"
    words = "sends neighbours in another order when it sends them again"
    breaks = ("RS-10", "RS-11")
    found_by = ("I5",)
    anomaly = "lost"
    streams = _Stream
