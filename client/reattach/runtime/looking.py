"""Looking on at a run, for views: where the fold begins, and how it grows.

It begins at the run's beginning, in the journal. With keep="cursor" there are no events in it: the fold begins with the server's
snapshot, and with a new one whenever events went by that memory has no more, so that no view is ever silently short of something.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from reattach import errors
from reattach.core.fold import Fold
from reattach.core.messages import Failure
from reattach.core.moves import failure_of
from reattach.model import Event, Gap
from reattach.profiles.base import Unreadable
from reattach.runtime import asking, outcomes
from reattach.runtime.calls import Refused
from reattach.runtime.failures import Place, error_of
from reattach.runtime.followed import Followed

if TYPE_CHECKING:
    from reattach.runtime.engine import Engine


class Look(NamedTuple):
    """A followed run and its fold; events up to the sequence `since` are in the fold already."""

    followed: Followed
    fold: Fold
    since: int | None = None


async def from_snapshot(engine: Engine, followed: Followed, place: Place) -> Look:
    """Return a look that begins with the server's state.

    Raises:
        UsageError: This server has no snapshots.
        NotFound, NotAuthorized, RemoteProtocolError, AttachError: It did not give one.
    """
    call = engine.profile.snapshot(place.run_id)
    if call is None:
        raise errors.UsageError(
            f'views() with keep="cursor" begin with the server\'s snapshot, and profile {engine.profile.name!r} has none.',
            run_id=place.run_id,
            hint='Use a client with keep="events".',
        )
    position = followed.feed.readable
    try:
        answer = await asking.asked(engine, call)
        boundary, state = engine.profile.boundary(place.run_id, answer.body)
    except Unreadable as error:
        raise error_of(Failure("remote_protocol_error", error.detail, attempts=1), place) from error
    except Refused as error:
        raise error_of(failure_of(error.refusal)._replace(attempts=1), place) from error
    fold = Fold(place.run_id)
    # The profile says what a snapshot changes where it fills a gap; here nothing is missing, so no gap is in the view.
    filled = Gap(run_id=place.run_id, reason="no_log", snapshot=state)
    event = Event(id="", run_id=place.run_id, type="snapshot", data=None, kind="gap", gap=filled, position=position)
    for_fold = Event(
        id="", run_id=place.run_id, type="snapshot", data=None, kind="other", cursor=boundary.cursor, position=position
    )
    fold.add(for_fold, engine.profile.changes(event))
    return Look(followed, fold, boundary.sequence)


def grow(look: Look, engine: Engine) -> bool:
    """Fold what may be read, from memory where it is there, else from the journal (blocks on the disk).

    False: neither has it (keep="cursor"); look again.
    """
    fold, feed = look.fold, look.followed.feed
    readable = feed.readable
    while fold.position < readable:
        newest = feed.newest(fold.position, readable - fold.position)
        if newest is None:
            if feed.bare:
                return False
            outcomes.catch_up(fold, engine.store, look.followed.run, engine.profile, readable)
        for event in newest or ():
            if look.since is not None and event.sequence is not None and event.sequence <= look.since:
                fold.position = event.position
            else:
                outcomes.add(fold, event, engine.profile)
    return True
