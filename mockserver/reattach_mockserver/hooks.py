"""Moments between two steps that a test can hold still, or use to change the world exactly there.

A hook is awaited with the run's id and a sequence; what it does meanwhile (publish, trim, begin a new epoch, settle, kill)
lies between the two steps and nowhere else. Unset, a moment costs one comparison and no turn of the event loop.

For tests of this server and of what is built on it; no promise of the protocol is kept by a hook. Checked by
tests/mockserver/test_seam.py, which does all of that at every one of them.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias

Hook: TypeAlias = Callable[[str, int], Awaitable[None]]
"""Takes the run's id, and the last sequence that is known on the side where the moment is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hooks:
    """The moments, in the order in which they come.

    Where a run is written:
        created: The create is durable; the run is not being played yet.
        appending: Entries are made; the log was not asked to take them. The sequence is the head that the writer began with.
        durable: The log has taken them; nobody was told.
        woken: The run's readers were told.

        reached: A run has come to a point between two steps; takes the point's name, not a sequence: `append`, `publish` and
            `published` with the names of the steps, and what its work calls its own (`engine/work.py`).

    Where a snapshot is read:
        pinned: The events after the snapshot are kept from now on; it was not made yet.
        folded: It was made, and was not handed out yet.

    Where a run is read, on every face:
        found: The run was read and the cursor found good; the reader has not joined those who are told.
        joined: It has joined, and has read nothing.
        read: A page of the log was read, perhaps an empty one; nothing is known of what the run has become meanwhile.
        sent: A page was sent; nothing was read after it.
        replayed: The log was read to its end, and the reader does not wait yet: between replay and live.
        roused: It was told, or its time was up; it has read nothing since.
    """

    created: Hook | None = None
    appending: Hook | None = None
    durable: Hook | None = None
    woken: Hook | None = None
    reached: Callable[[str, str], Awaitable[None]] | None = None
    pinned: Hook | None = None
    folded: Hook | None = None
    found: Hook | None = None
    joined: Hook | None = None
    read: Hook | None = None
    sent: Hook | None = None
    replayed: Hook | None = None
    roused: Hook | None = None
