"""Lets a log go of events that retention keeps no more, once what they amount to is kept in their place.

A snapshot is the fold of all events from the first one. So where a log lets go of the first ones, it is given their fold, in one
transaction, and later snapshots begin with that. Done a good many events at a time; a log that has room for all ignores it.

Never here: which events retention keeps (`logs/advance.py`). Checked by tests/mockserver/test_compaction.py.
"""

import json
from collections.abc import Callable
from contextlib import suppress

from reattach_mockserver.engine.fold import Fold
from reattach_mockserver.logs.base import Base, EventLog, LogUnavailable, RunRecord

_MANY = 128  # events that are let go of at a time
_PAGE = 500
_PAGE_BYTES = 4_194_304


class Compaction:
    """Compacts the runs of one log.

    Args:
        log: The log.
        may_lose: Tells whether the run is not in need of its first events.
    """

    def __init__(self, log: EventLog, may_lose: Callable[[RunRecord], bool]) -> None:
        self._log = log
        self._may_lose = may_lose

    async def trimmed(self, before: RunRecord, after: RunRecord) -> None:
        """See to a run whose first sequence has moved on, if it has come past another hundred or so."""
        if before.first_sequence // _MANY != after.first_sequence // _MANY and self._may_lose(after):
            with suppress(LogUnavailable):  # it will be done with the next ones
                await self._compact(after)

    async def _compact(self, run: RunRecord) -> None:
        # One more is kept than can be read: whoever is at the boundary is told the id of the event before it.
        through = run.first_sequence - 2
        base = await self._log.base(run.id)
        done = 0 if base is None else base.sequence
        if through <= done:
            return
        fold = Fold(run.epoch, base)
        while fold.sequence < through:
            page = await self._log.read(run.id, fold.sequence, min(_PAGE, through - fold.sequence), _PAGE_BYTES)
            if not page or page[0].sequence != fold.sequence + 1:
                return  # another replica was first
            for event in page:
                fold.apply(json.loads(event.body))
        await self._log.compact(run.id, run.writer, done, Base(through, json.dumps(fold.state())))
