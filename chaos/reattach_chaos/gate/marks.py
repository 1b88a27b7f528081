"""`Mark`: a place in a stream of bytes by its meaning. The readers find marks, the cuts ask whether one is theirs.

A mark lies between two bytes: all before it may pass, nothing behind it yet. A reader of any form (event streams, JSON pages,
WebSocket frames) yields `(index, mark)` for the bytes that it is given, in their order, and says nothing of what it was not yet
asked for.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from reattach_chaos.gate.blocks import Block
from reattach_chaos.schedules.place import Place


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """One place that was reached.

    Attributes:
        place: The word; None: only `block` is told, as of a control frame.
        number: The event's number in its run, from 1, where the place is one of an event; expected, until its id has come.
        width: Of the character, with "in-character".
        replay: The server had the event when the stream was asked for.
        block: What has ended here, with "after-event".
        offset: So many bytes of the answer have passed, with "offset".
        whole: Whether the client can use `block` already: in a JSON page it can only when the page is whole.
    """

    place: Place | None
    number: int | None = None
    width: int | None = None
    replay: bool = False
    block: Block | None = None
    offset: int | None = None
    whole: bool = True


class Reader(Protocol):
    """Finds the marks in one body. Any split of the bytes gives the same marks at the same bytes."""

    def feed(self, data: bytes) -> Iterator[tuple[int, Mark]]:
        """Take some bytes; yield each mark with its index in `data`. An index of 0: only now is certain what lay there."""
        ...

    def finish(self) -> Iterator[Mark]:
        """Take the end of the body; yield the marks that only it makes certain."""
        ...

    @property
    def number(self) -> int:
        """The number of the event that is on its way, or is expected next."""
        ...

    @property
    def partial(self) -> str | None:
        """The id of an event that has not come whole, but its id line has; None for none."""
        ...
