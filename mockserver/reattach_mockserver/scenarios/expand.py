"""What an engine plays: a script as a row of planned steps, each with a path that never changes.

A pure function of the script. The same script gives the same plan in every process, so an engine
can make an event's id from (run, path) and go on after a crash at the first path that its log does
not hold. A plan is made while it is read, never held as a whole: a script may stand for a million
events. Nothing here waits, appends, or knows the run; ids that must be unique among runs
(operations without a name) are the engine's.

Paths: `3` is the fourth step of the script; `3.0.2` in a repeat is round 0, step 2; in a parallel,
branch 0, step 2. A say's pieces are `3.0`, `3.1`, ... and its completion `3.done`; a tool's call is
`3.call`, its result `3.result`; what an answer leads to is `3.approved.0` or `3.rejected.0`.

Checked by tests/mockserver/scenarios/test_expand.py.
"""

import random
import string
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias, assert_never

from reattach_mockserver.scenarios.pieces import split_text
from reattach_mockserver.scenarios.script import (
    Action,
    Ask,
    Blob,
    CloseStreams,
    End,
    EndStatus,
    ExpireTo,
    ExpireTokens,
    Json,
    JsonObject,
    Kill,
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
    ServerStep,
    Status,
    Step,
    Tool,
    Wait,
)

Decision: TypeAlias = Literal["approved", "rejected"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Emit:
    """Append one event. `text` is what it adds to the visible text, where its type does not say so."""

    path: str
    type: str
    data: JsonObject
    text: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rest:
    """Let `ms` milliseconds pass, of real or virtual time."""

    path: str
    ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedCall:
    """A tool call with its outcome; what a CallTool and its SettleTool share.

    `operation_id` None: the engine names the operation.
    """

    call_id: str
    operation_id: str | None
    tool: str
    arguments: JsonObject
    result: Json
    error: Problem | None
    reversible: bool
    external: bool = False

    def call_data(self, operation_id: str) -> dict[str, Json]:
        """Return the data of the event `tool.call`."""
        return {
            "call_id": self.call_id,
            "operation_id": operation_id,
            "tool": self.tool,
            "arguments": dict(self.arguments),
        }

    def result_data(self, operation_id: str) -> dict[str, Json]:
        """Return the data of the event `tool.result`: a result or an error, never both."""
        data: dict[str, Json] = {"call_id": self.call_id, "operation_id": operation_id}
        if self.error is None:
            data["result"] = self.result
        else:
            data["error"] = {"code": self.error.code, "message": self.error.message}
        return data


@dataclass(frozen=True, slots=True, kw_only=True)
class CallTool:
    """Append `tool.call`; from here on the effect may happen."""

    path: str
    call: PlannedCall


@dataclass(frozen=True, slots=True, kw_only=True)
class SettleTool:
    """Let the effect happen, once whatever happened before, and append `tool.result`."""

    path: str
    call: PlannedCall


@dataclass(frozen=True, slots=True, kw_only=True)
class Branches:
    """Play several plans at once; go on when all are played. None of them ends or pauses the run."""

    path: str
    branches: "tuple[Plan, ...]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Operate:
    """Do something to the server."""

    path: str
    step: ServerStep


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """Settle the run with required actions: always the last of its plan. See `plan_continuation`."""

    path: str
    actions: tuple[Action, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finish:
    """Settle the run: always the last of its plan."""

    path: str
    status: EndStatus
    result: Json = None
    problem: Problem | None = None


Planned: TypeAlias = Emit | Rest | CallTool | SettleTool | Branches | Operate | Pause | Finish


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Steps of one list from the index `first` on; the list's path, with its last dot, is `prefix`."""

    steps: tuple[Step, ...]
    prefix: str = ""
    first: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Planned steps in order; iterate it, as often as you like.

    `closing`: the plan of a run, whose last step is a Finish or a Pause. Else a branch, which has neither.
    """

    parts: tuple[Part, ...]
    seed: int
    round: int | None = None
    closing: bool = True

    def __iter__(self) -> Iterator[Planned]:
        """Make the planned steps one after the other."""
        for part in self.parts:
            for index, step in enumerate(part.steps[part.first :], part.first):
                yield from _planned(step, f"{part.prefix}{index}", self.seed, self.round)
                if isinstance(step, Ask | End):
                    return
        if self.closing:
            yield Finish(path="end", status="completed")


def plan(script: Script, seed: int | None = None) -> Plan:
    """Plan a run of the script from its beginning. `seed` takes the place of the script's own."""
    return Plan(parts=(Part(steps=script.steps),), seed=script.seed if seed is None else seed)


def plan_continuation(script: Script, path: str, decision: Decision, seed: int | None = None) -> Plan:
    """Plan the run that follows the pause at `path`, as a Pause of this script gave it.

    It plays the decision's list, then the rest of the list that holds the ask, and so outwards.

    Raises:
        KeyError: The script has no ask at this path.
    """
    *outer, (last, _) = _pairs(path)
    prefix, parts = "", [Part(steps=script.steps)]
    for ask, steps, (index, decided) in _asks(script, [*outer, (last, decision)], path):
        parts[0] = Part(steps=steps, prefix=prefix, first=index + 1)
        prefix = f"{prefix}{index}.{decided}."
        parts.insert(0, Part(steps=ask.approved if decided == "approved" else ask.rejected, prefix=prefix))
    return Plan(parts=tuple(parts), seed=script.seed if seed is None else seed)


def ask_at(script: Script, path: str) -> Ask:
    """Return the ask at `path`, as a Pause of this script gave it.

    Raises:
        KeyError: The script has none there.
    """
    *_, (ask, _, _) = _asks(script, _pairs(path), path)
    return ask


def _asks(
    script: Script, places: list[tuple[int, str]], path: str
) -> Iterator[tuple[Ask, tuple[Step, ...], tuple[int, str]]]:
    """Go from the outermost ask to the innermost: each with the list that holds it, and its place there."""
    steps = script.steps
    for index, decided in places:
        ask = steps[index] if index < len(steps) else None
        if not isinstance(ask, Ask):
            raise KeyError(path)
        yield ask, steps, (index, decided)
        steps = ask.approved if decided == "approved" else ask.rejected


def _pairs(path: str) -> list[tuple[int, str]]:
    """Read `5.approved.1` as (5, approved), (1, "")."""
    names = [*path.split("."), ""]
    if any(not name.isdecimal() for name in names[::2]) or any(
        name not in ("approved", "rejected") for name in names[1:-1:2]
    ):
        raise KeyError(path)
    return [(int(index), decided) for index, decided in zip(names[::2], names[1::2], strict=True)]


def _planned(step: Step, path: str, seed: int, round_: int | None) -> Iterator[Planned]:
    match step:
        case Say():
            yield from _said(replace(step, text=_filled(step.text, round_)), path)
        case Tool():
            yield from _called(step, path, round_)
        case Parallel():
            branches = tuple(
                Plan(parts=(Part(steps=branch, prefix=f"{path}.{index}."),), seed=seed, round=round_, closing=False)
                for index, branch in enumerate(step.branches)
            )
            yield Branches(path=path, branches=branches)
        case Status():
            yield Emit(path=path, type="status", data={"text": _filled(step.text, round_)})
        case RawEvent():
            text = None if step.text is None else _filled(step.text, round_)
            yield Emit(path=path, type=step.type, data=_filled_object(step.data, round_), text=text)
        case Blob():
            yield Emit(path=path, type=step.type, data={"text": blob_text(step.bytes, f"{seed}:{path}")})
        case Wait():
            yield Rest(path=path, ms=step.ms)
        case Repeat():
            for number in range(step.times):
                for index, inner in enumerate(step.steps):
                    yield from _planned(inner, f"{path}.{number}.{index}", seed, number)
        case Ask():
            yield Pause(path=path, actions=step.actions)
        case End():
            yield Finish(path=path, status=step.status, result=step.result, problem=step.problem)
        case Restart() | Kill() | NewEpoch() | Release() | CloseStreams() | ExpireTokens() | ExpireTo() | Overload():
            yield Operate(path=path, step=step)
        case _:
            assert_never(step)


def _said(say: Say, path: str) -> Iterator[Planned]:
    message_id = f"msg_{path}"
    for index, piece in enumerate(split_text(say.text, say.split)):
        if say.every_ms:
            yield Rest(path=f"{path}.{index}.rest", ms=say.every_ms)
        yield Emit(
            path=f"{path}.{index}",
            type="message.delta",
            data={"message_id": message_id, "index": index, "text": piece},
        )
    yield Emit(
        path=f"{path}.done",
        type="message.completed",
        data={"message_id": message_id, "role": "assistant", "text": say.text},
    )


def _called(tool: Tool, path: str, round_: int | None) -> Iterator[Planned]:
    call = PlannedCall(
        # "@" is in no id of a file, so this one is nobody else's.
        call_id=f"call@{path}" if tool.id is None else _filled(tool.id, round_),
        operation_id=None if tool.operation_id is None else _filled(tool.operation_id, round_),
        tool=tool.tool,
        arguments=_filled_object(tool.arguments, round_),
        result=_filled_json(tool.result, round_),
        error=tool.error,
        reversible=tool.reversible,
        external=tool.external,
    )
    yield CallTool(path=f"{path}.call", call=call)
    if tool.takes_ms:
        yield Rest(path=f"{path}.rest", ms=tool.takes_ms)
    yield SettleTool(path=f"{path}.result", call=call)


def blob_text(size: int, seed: str) -> str:
    """Return `size` ASCII letters and digits, always the same for the same seed."""
    alphabet = list(string.ascii_letters + string.digits)
    # A string seeds a Random the same way in every process and version; a hash would not.
    random.Random(seed).shuffle(alphabet)
    row = "".join(alphabet)
    return (row * (size // len(row) + 1))[:size]


def _filled(text: str, round_: int | None) -> str:
    return text if round_ is None else text.replace("{i}", str(round_))


def _filled_object(value: JsonObject, round_: int | None) -> JsonObject:
    return value if round_ is None else {key: _filled_json(member, round_) for key, member in value.items()}


def _filled_json(value: Json, round_: int | None) -> Json:
    match value:
        case str():
            return _filled(value, round_)
        case list():
            return [_filled_json(member, round_) for member in value]
        case dict():
            return {key: _filled_json(member, round_) for key, member in value.items()}
        case _:
            return value
