"""One side effect by id. Where the rules come from: PROTOCOL, section 5, operations.

Checked by tests/mockserver/test_operations.py.
"""

from reattach_mockserver.engine.engine import Engine
from reattach_mockserver.engine.operations import read_operation as operation_as_known
from reattach_mockserver.faces.call import Call
from reattach_mockserver.faces.checks import check_caller, check_json
from reattach_mockserver.faces.problem import Refusal


async def read_operation(engine: Engine, call: Call) -> None:
    """Answer with what is known of the operation, if a run of the caller's had it."""
    caller = check_caller(engine, call)
    check_json(call)
    operation_id: str = call.scope["path_params"]["operation_id"]
    found = await operation_as_known(engine.log, caller.principal, operation_id, engine.now())
    if found is None:
        raise Refusal("operation_not_found", f"there is no operation {operation_id!r}")
    await call.answer_json(found)
