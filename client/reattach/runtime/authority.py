"""What only the server can tell: what became of an effect, and which runs a session has. Nothing of it is journaled."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

from reattach import errors
from reattach.model import Needs, Operation
from reattach.profiles.base import Listed, Unreadable
from reattach.runtime import asking, outcomes
from reattach.runtime.calls import Refused
from reattach.stores.base import RunRow

if TYPE_CHECKING:
    from reattach.runtime.engine import Engine

PAGES = 10_000
"""More pages of one session are a server that goes round in circles."""


async def operation(engine: Engine, operation_id: str) -> Operation:
    """Return what the authority knows of an effect.

    Raises:
        UsageError: The id cannot be one, or the profile has no authority to ask.
        NotFound, NotAuthorized, AttachError, RemoteProtocolError: It did not say.
    """
    what = f"operation {_good(operation_id, 'operation_id')!r}"
    call = engine.profile.operation(operation_id)
    if call is None:
        raise asking.unsupported(engine, what)
    try:
        answer = await asking.asked(engine, call)
        return engine.profile.operation_told(operation_id, answer.body)
    except Unreadable as error:
        raise asking.unreadable(engine, what, error.detail) from error
    except Refused as error:
        raise asking.unanswered(engine, what, error) from error


async def session_runs(engine: Engine, session_id: str) -> list[tuple[RunRow, Needs | None]]:
    """Return a session's runs, oldest first, each as its row: the journal's where it knows the run, else one that is not in it.

    Raises:
        UsageError: The id cannot be one, or the profile has no sessions.
        NotFound, NotAuthorized, AttachError, RemoteProtocolError: The server did not say.
    """
    what = f"session {_good(session_id, 'session_id')!r}"
    listed: dict[str, Listed] = {}
    after: str | None = None
    for _ in range(PAGES):
        call = engine.profile.session_runs(session_id, after)
        if call is None:
            raise asking.unsupported(engine, what)
        try:
            answer = await asking.asked(engine, call)
            page, after = engine.profile.session_told(answer.body)
        except Unreadable as error:
            raise asking.unreadable(engine, what, error.detail) from error
        except Refused as error:
            raise asking.unanswered(engine, what, error) from error
        known = len(listed)
        listed.update((each.run_id, each) for each in page)
        if after is None or len(listed) == known:
            break

    def work() -> list[tuple[RunRow, Needs | None]]:
        found: list[tuple[RunRow, Needs | None]] = []
        for each in listed.values():
            row = engine.store.find(engine.server, engine.profile.name, run_id=each.run_id)
            needs = None if row is None else outcomes.needs_in(engine.store, row)
            found.append((row or _unseen(engine, each, session_id), needs))
        return found

    return await engine.post(work)


def _unseen(engine: Engine, told: Listed, session_id: str) -> RunRow:
    """Return the row of a run that the journal does not have (its number is 0); the journal learns of it when it is read."""
    now = engine.clock.wall()
    return RunRow(
        run=0,
        server=engine.server,
        profile=engine.profile.name,
        created_at=now,
        updated_at=now,
        run_id=told.run_id,
        session_id=told.session_id or session_id,
        continues=told.continues,
        status=told.status.value,
    )


def _good(told: object, name: str) -> str:
    """Return an id that a path can carry.

    Raises:
        UsageError: It cannot be one.
    """
    if not isinstance(told, str) or not told or told in (".", ".."):
        raise errors.UsageError(f"{name}={told!r} is no id. Nothing was sent.")
    try:
        quote(told, safe="")
    except UnicodeEncodeError as error:
        raise errors.UsageError(f"{name}={told!r} cannot be sent. Nothing was.") from error
    return told
