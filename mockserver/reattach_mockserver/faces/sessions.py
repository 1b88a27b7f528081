"""Sessions: what they are and which runs they have. Where the rules come from: PROTOCOL, section 3.

Checked by tests/mockserver/test_reads.py.
"""

from reattach_mockserver.engine.engine import Engine
from reattach_mockserver.faces.call import Call
from reattach_mockserver.faces.checks import check_caller, check_json
from reattach_mockserver.faces.describe import run_json, session_json
from reattach_mockserver.faces.problem import Refusal, invalid_request
from reattach_mockserver.logs.base import SessionRecord

_PAGE = 100


async def read_session(engine: Engine, call: Call) -> None:
    """Answer with the session."""
    await call.answer_json(session_json(await _find(engine, call)))


async def read_session_runs(engine: Engine, call: Call) -> None:
    """Answer with a page of the session's runs, oldest first."""
    session = await _find(engine, call)
    number = 0
    after = call.parameter("after")
    if after is not None:
        last = await engine.log.run(after)
        if last is None or (last.principal, last.session_id) != (session.principal, session.id):
            raise invalid_request("after is to be the id of a run of this session")
        number = last.number
    runs = await engine.log.session_runs(session.principal, session.id, number, _PAGE + 1)
    page, more = runs[:_PAGE], len(runs) > _PAGE
    now = engine.now()
    await call.answer_json({"runs": [run_json(run, now) for run in page], "next": page[-1].id if more else None})


async def _find(engine: Engine, call: Call) -> SessionRecord:
    caller = check_caller(engine, call)
    check_json(call)
    session_id: str = call.scope["path_params"]["session_id"]
    session = await engine.log.session(caller.principal, session_id)
    if session is None:
        raise Refusal("session_not_found", f"there is no session {session_id!r}")
    return session
