"""One run by id: its status, its snapshot, its cancellation; and a run by its key.

Where the rules come from: PROTOCOL, sections 3 and 5. Checked by tests/mockserver/test_reads.py and
test_cancel.py.
"""

from reattach_mockserver.engine.engine import Engine
from reattach_mockserver.event import SETTLED
from reattach_mockserver.faces.call import Call
from reattach_mockserver.faces.checks import check_caller, check_json, find_run
from reattach_mockserver.faces.describe import body_of, etag_of, run_json
from reattach_mockserver.faces.problem import invalid_request
from reattach_mockserver.logs.pause import with_resolutions


async def read_run(engine: Engine, call: Call) -> None:
    """Answer with the run, or that it is as the caller knows it."""
    check_caller(engine, call)
    check_json(call)
    run = await find_run(engine, call)
    body = body_of(run, engine.now())
    tag = etag_of(body)
    if _is_known(tag, call.headers("if-none-match")):
        await call.answer(304, b"", {"ETag": tag})
        return
    await call.answer(200, body, {"Content-Type": "application/json", "ETag": tag})


def _is_known(tag: str, known: list[str]) -> bool:
    tags = [part.strip().removeprefix("W/") for line in known for part in line.split(",")]
    return "*" in tags or tag in tags


async def read_run_by_key(engine: Engine, call: Call) -> None:
    """Answer with the run that was created under a key, if there is one."""
    caller = check_caller(engine, call)
    check_json(call)
    key = call.parameter("idempotency_key")
    if key is None:
        raise invalid_request("the parameter 'idempotency_key' is missing: runs are not listed as a whole")
    run = await engine.log.by_key(caller.principal, key)
    now = None if run is None else await engine.run(run.id)
    await call.answer_json({"runs": [] if now is None else [run_json(now, engine.now())]})


async def read_snapshot(engine: Engine, call: Call) -> None:
    """Answer with the fold of all events up to a stated cursor."""
    check_caller(engine, call)
    check_json(call)
    run, state = await engine.snapshot(await find_run(engine, call))
    sequence = state["sequence"]
    await call.answer_json(
        {
            "cursor": f"{run.epoch}.{sequence}",
            "epoch": run.epoch,
            **state,
            "required_actions": with_resolutions(state["required_actions"], run, engine.now()),
        }
    )


async def cancel_run(engine: Engine, call: Call) -> None:
    """Record that the run is to be cancelled; 200 where it has settled already."""
    check_caller(engine, call)
    check_json(call)
    run = await find_run(engine, call)
    settled = run.status in SETTLED
    run = await engine.cancel(run)
    # Settled between the two: recorded or not, there is nothing left to wait for.
    settled = settled or run.status in SETTLED
    await call.answer_json(run_json(run, engine.now()), status=200 if settled else 202)
