"""What a script as a whole may not be: too much, or with ids that come twice.

Repeats multiply, so a short file could stand for more than any machine holds; what a script comes to
is reckoned here before anything is made of it, from above and without expanding it. Single values are
`steps`' business.
"""

import json

from reattach_mockserver.scenarios.nodes import ListNode, MappingNode, Node, Source
from reattach_mockserver.scenarios.script import (
    Ask,
    Blob,
    Json,
    JsonObject,
    Parallel,
    RawEvent,
    Repeat,
    Say,
    Script,
    Status,
    Step,
    Tool,
)

MAX_PLANNED = 2_000_000
"""Planned steps of a script, waits between pieces and all."""

MAX_CONTENT_BYTES = 1024 * 1024 * 1024
"""Bytes of text and JSON that a script puts into its log."""


def check_whole(source: Source, script: Script, nodes: tuple[Node, ...]) -> None:
    """Check the script; `nodes` are those its steps were read from.

    Raises:
        ScenarioError: It stands for too many events or bytes, or a tool's or action's id comes twice.
    """
    planned = content = 0
    for step, node in zip(script.steps, nodes, strict=True):
        steps, size = _cost(step)
        planned, content = planned + steps, content + size
        if planned > MAX_PLANNED:
            raise source.error(node.at, f"a script of {planned} planned steps", f"expected at most {MAX_PLANNED}")
        if content > MAX_CONTENT_BYTES:
            raise source.error(node.at, f"a script of {content} bytes", f"expected at most {MAX_CONTENT_BYTES}")
    _Ids(source).walk(script.steps, nodes, times=(), seen=set())


def _cost(step: Step) -> tuple[int, int]:
    """Return the most planned steps and bytes of content that a step comes to."""
    match step:
        case Say(text=text, split=split):
            pieces = {"whole": 1, "words": len(text.split()) + 1, "lines": text.count("\n") + text.count("\r") + 1}
            most = -(-len(text) // split) if isinstance(split, int) else pieces[split]
            return most * (2 if step.every_ms else 1) + 1, 2 * len(text.encode())
        case Tool():
            return 3, _size(step.arguments) + _size(step.result)
        case Parallel(branches=branches):
            return _sum(tuple(inner for branch in branches for inner in branch), first=1 + len(branches))
        case Status(text=text):
            return 1, len(text.encode())
        case RawEvent():
            return 1, _size(step.data) + len((step.text or "").encode())
        case Blob(bytes=size):
            return 1, size
        case Repeat(times=times, steps=steps):
            planned, content = _sum(steps)
            # A round without a step costs a round all the same.
            return times * max(planned, 1), times * content
        case Ask():
            return _sum((*step.approved, *step.rejected), first=1 + len(step.actions))
        case _:
            return 1, 0


def _sum(steps: tuple[Step, ...], first: int = 0) -> tuple[int, int]:
    costs = [_cost(step) for step in steps]
    return first + sum(planned for planned, _ in costs), sum(content for _, content in costs)


def _size(value: "Json | JsonObject") -> int:
    return len(json.dumps(value))


class _Ids:
    """Ids of tools and actions, each once in whatever may be one run or follow another."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.actions: set[str] = set()

    def walk(self, steps: tuple[Step, ...], nodes: tuple[Node, ...], *, times: tuple[int, ...], seen: set[str]) -> None:
        """Add the tool ids of these steps to `seen`; `times` are the repeats around them, outermost first."""
        for step, node in zip(steps, nodes, strict=True):
            match step:
                case Tool(id=str() as template):
                    self._tool(template, _member(node, "id").at, times, seen)
                case Repeat():
                    self.walk(step.steps, _items(_member(node, "steps")), times=(*times, step.times), seen=seen)
                case Parallel():
                    for branch, inner in zip(step.branches, _items(_member(node, "parallel")), strict=True):
                        self.walk(branch, _items(inner), times=times, seen=seen)
                case Ask():
                    for action, inner in zip(step.actions, _items(_member(node, "ask")), strict=True):
                        if action.id in self.actions:
                            at = _member(inner, "id").at
                            raise self.source.error(at, f"the action {action.id!r} a second time", "expected a new id")
                        self.actions.add(action.id)
                    # Only one of the two is ever played, so they may share ids with each other.
                    either = [set(seen), set(seen)]
                    for answer, key, ids in zip(
                        (step.approved, step.rejected), ("approved", "rejected"), either, strict=True
                    ):
                        if answer:
                            self.walk(answer, _items(_member(node, key)), times=times, seen=ids)
                    seen.update(*either)
                case _:
                    pass

    def _tool(self, template: str, at: int, times: tuple[int, ...], seen: set[str]) -> None:
        rounds = times[-1] if times else 1
        if max(times[:-1], default=1) > 1:
            raise self.source.error(at, "an id in a repeat inside a repeat", "expected none: it is made from the place")
        if rounds > 1 and "{i}" not in template:
            raise self.source.error(at, f"the id {template!r} in each round", "expected {i} in it, or no id")
        for number in range(rounds):
            call_id = template.replace("{i}", str(number)) if times else template
            if call_id in seen:
                raise self.source.error(at, f"the tool id {call_id!r} a second time", "expected a new id, or none")
            seen.add(call_id)


def _member(node: Node, key: str) -> Node:
    """Return a member that the steps were read from, so it is there."""
    assert isinstance(node, MappingNode)
    return next(member.value for member in node.members if member.key == key)


def _items(node: Node) -> tuple[Node, ...]:
    assert isinstance(node, ListNode)
    return node.items
