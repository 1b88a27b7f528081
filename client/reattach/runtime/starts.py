"""Starting work: the intent is on disk before the request leaves, and the run id before the first frame is shown.

The same key is sent again after a lost answer, in this process or the next; nothing else ever is (see `creating`). A create that
was definitely refused does not use up its key. The key of a job whose run was paused and answered gives its newest run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reattach import errors
from reattach.runtime.creating import create
from reattach.runtime.jobs import newest_anywhere
from reattach.stores.base import Intent, RunRow

if TYPE_CHECKING:
    from reattach.runtime.engine import Engine


async def start(engine: Engine, key: str, request: str, digest: str) -> RunRow:
    """Return the newest run of this key's job, created now or long ago.

    Args:
        engine: The client at work.
        key: The application's name for the work.
        request: The create's body, JSON text.
        digest: Of the body as a value.

    Raises:
        KeyConflict: The key names other work. Nothing was sent.
        SessionBusy, NotAuthorized, AttachError, RespondError: The server refused; nothing was created.
        ReconnectExhausted: No answer; the intent is kept, starting again with the same key goes on.
        AmbiguousOutcome: It may have been taken before and must not be repeated.
    """
    intent = Intent(engine.server, engine.profile.name, key, request, digest)
    row, new = await engine.post(lambda: engine.store.intend(intent))
    if row.request_sha256 is not None and row.request_sha256 != digest:
        at = row.sent_at or row.created_at
        raise errors.KeyConflict(
            f"key {key!r} was used at {at:%Y-%m-%d %H:%M:%S} UTC for another input (run {row.run_id or 'not known yet'!r}). "
            "Nothing was sent.",
            run_id=row.run_id or "",
            key=key,
            hint="Use the same input to go on with that run, or another key for new work.",
        )
    if row.run_id is None:
        row = await create(engine, row, new=new)
    row = await newest_anywhere(engine, row)
    # The answers to a pause may be on their way for the second time, too: their run is the newest, once it is known.
    return row if row.run_id is not None else await newest_anywhere(engine, await create(engine, row, new=False))
