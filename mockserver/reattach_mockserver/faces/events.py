"""`GET /v1/runs/{id}/events`: which form it takes, and what comes before a stream.

Where the rules come from: PROTOCOL, sections 3 and 4. Checked by tests/mockserver/test_stream.py and test_refusals.py.
"""

from reattach_mockserver.engine.engine import Engine
from reattach_mockserver.event import SETTLED
from reattach_mockserver.faces.accept import chosen_form
from reattach_mockserver.faces.call import Call
from reattach_mockserver.faces.checks import check_caller, check_streams, check_work, find_run, sequence_after
from reattach_mockserver.faces.pages import answer_page
from reattach_mockserver.faces.problem import Refusal, invalid_request
from reattach_mockserver.faces.sse import stream


async def read_events(engine: Engine, call: Call) -> None:
    """Answer with a page or with a stream, as `Accept` says."""
    check_caller(engine, call)
    match chosen_form(call.headers("accept")):
        case "json":
            await answer_page(engine, call)
        case "sse":
            await _attach(engine, call)
        case None:
            raise Refusal("not_acceptable", "events come as text/event-stream or application/json")


async def _attach(engine: Engine, call: Call) -> None:
    check_work(engine)
    check_streams(engine, call)
    run = await find_run(engine, call)
    names = call.parameter("names")
    if names not in (None, "on", "off"):
        raise invalid_request("names is to be 'on' or 'off'")
    after = await sequence_after(engine, call, run, header=True)
    if run.status in SETTLED and after == run.last_sequence:
        await call.answer(204, b"", {})
        return
    check_streams(engine, call)  # again: whoever was checked at the same time has joined by now
    await stream(engine, call, run, after, named=names != "off")
