"""Writes a script as a scenario file, in JSON.

One law: `loads_script(dump_script(script)) == script`, for every script that the parser could have
made. The text is pure ASCII, so it survives whatever carries it; a
person who wants to read one writes YAML.

Checked by tests/mockserver/scenarios/test_parse_laws.py.
"""

import json
from typing import Any, assert_never

from reattach_mockserver.scenarios.script import (
    Action,
    Ask,
    Blob,
    CloseStreams,
    End,
    ExpireTo,
    ExpireTokens,
    Kill,
    Limits,
    NewEpoch,
    Overload,
    Parallel,
    Problem,
    RawEvent,
    Release,
    Repeat,
    Restart,
    Say,
    Script,
    Status,
    Step,
    Tool,
    Wait,
)


def dump_script(script: Script) -> str:
    """Return the script as JSON text, a step a line, with a line end after the last."""
    head: dict[str, Any] = {"reattach": "scenario/1", "name": script.name, "seed": script.seed, "clock": script.clock}
    if script.limits != Limits():
        names = ("heartbeat_ms", "stream_age_ms", "retention_events", "retention_ms", "line_end")
        head["limits"] = {
            name: getattr(script.limits, name) for name in names if getattr(script.limits, name) is not None
        }
    steps = ",\n".join(f"  {json.dumps(_step(step), allow_nan=False)}" for step in script.steps)
    return f'{json.dumps(head)[:-1]}, "steps": [\n{steps}\n]}}\n'


def _step(step: Step) -> dict[str, Any]:
    match step:
        case Say():
            return {"say": step.text, "split": step.split, "every_ms": step.every_ms}
        case Tool():
            return _tool(step)
        case Parallel():
            return {"parallel": [[_step(inner) for inner in branch] for branch in step.branches]}
        case Status():
            return {"status": step.text}
        case RawEvent():
            return {"event": _known({"type": step.type, "data": dict(step.data), "text": step.text})}
        case Blob():
            return {"blob": {"type": step.type, "bytes": step.bytes}}
        case Wait():
            return {"wait_ms": step.ms}
        case Repeat():
            return {"repeat": step.times, "steps": [_step(inner) for inner in step.steps]}
        case Restart():
            return {"server": "restart"}
        case Kill():
            return {"server": "kill"}
        case NewEpoch():
            return {"server": "new_epoch"}
        case CloseStreams():
            return {"server": "close_streams"}
        case ExpireTokens():
            return {"server": "expire_tokens"}
        case Release():
            return {"server": {"release": step.release}}
        case ExpireTo():
            return {"server": {"expire_to": step.sequence}}
        case Overload():
            return {"server": {"overload_ms": step.ms, "status": step.status}}
        case Ask():
            return {
                "ask": [_action(action) for action in step.actions],
                "approved": [_step(inner) for inner in step.approved],
                "rejected": [_step(inner) for inner in step.rejected],
            }
        case End():
            problem = None if step.problem is None else _problem(step.problem)
            return _known({"end": step.status, "result": step.result, "problem": problem})
        case _:
            assert_never(step)


def _tool(tool: Tool) -> dict[str, Any]:
    return _known(
        {
            "tool": tool.tool,
            "id": tool.id,
            "operation_id": tool.operation_id,
            "arguments": dict(tool.arguments),
            "takes_ms": tool.takes_ms,
            "result": tool.result,
            "error": None if tool.error is None else _problem(tool.error),
            "reversible": tool.reversible,
            "external": tool.external,
        }
    )


def _action(action: Action) -> dict[str, Any]:
    return _known(
        {
            "id": action.id,
            "kind": action.kind,
            "tool": action.tool,
            "arguments": dict(action.arguments),
            "operation_id": action.operation_id,
            "thread": action.thread,
            "expires_in_ms": action.expires_in_ms,
            "release_in_ms": action.release_in_ms,
        }
    )


def _problem(problem: Problem) -> dict[str, Any]:
    return {"code": problem.code, "message": problem.message}


def _known(members: dict[str, Any]) -> dict[str, Any]:
    """Leave out what is None: everywhere in the format that is what an absent key means."""
    return {key: value for key, value in members.items() if value is not None}
