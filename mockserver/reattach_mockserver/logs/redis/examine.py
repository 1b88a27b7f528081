"""Looking in a Redis that was restarted for what this replica has shown.

A run that lacks it has lost its tail: its append-only file was cut short, or it is an older copy. What comes next would take
numbers that readers have seen with other events, so the run gets a new epoch, by compare and set: of several replicas that find it
out, one does it. Its owner may write no more, and whoever plays it next takes it over.
"""

import secrets
from dataclasses import replace

from reattach_mockserver.logs.advance import renewed
from reattach_mockserver.logs.redis.changes import Changes
from reattach_mockserver.logs.redis.keys import NOBODY
from reattach_mockserver.logs.redis.link import Way
from reattach_mockserver.logs.redis.records import Row, row_of
from reattach_mockserver.logs.redis.scripts import COMMIT, LOOK
from reattach_mockserver.logs.redis.shown import Place, Shown


async def examine(way: Way, shown: Shown, replica: str) -> None:
    """Begin a new epoch of every run that lacks what was shown of it.

    Raises:
        LogUnavailable: Redis cannot be asked; nothing may be shown before it was.
    """
    for run_id, place in shown.places():
        while (row := await _lacking(way, run_id, place, shown)) is not None:
            run = replace(row.record, incarnation=max(row.record.incarnation, place.incarnation))
            changes = Changes(replica)
            changes.expect_run(row)
            changes.update(row, Row(renewed(run, None, run.last_time), secrets.token_hex(8), NOBODY))
            await way.script(COMMIT, *changes.words())  # refused: another replica was first, and it is looked at again


async def _lacking(way: Way, run_id: str, place: Place, shown: Shown) -> Row | None:
    """Return the run if it does not have what was shown of it in the epoch that it is in."""
    found, event = await way.script(LOOK, run_id, place.event_id)
    row = row_of(found)
    if row is None:
        shown.forget(run_id)  # gone altogether: nothing of it can be mistaken
        return None
    if row.record.incarnation > place.incarnation:
        return None
    has = event is not None and int(event[0]) == place.sequence
    return None if has and row.record.incarnation == place.incarnation else row
