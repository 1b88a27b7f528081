"""Reads JSON into nodes with places.

Python's own decoder forgets where a value stood, and YAML is no superset of JSON in practice (tabs,
surrogate pairs, numbers like 1e5). So lists and objects are walked here and only single strings and
numbers are left to the decoder. Meaning is the parser's.
"""

import json
import math
import re
from typing import NoReturn

from reattach_mockserver.scenarios.nodes import (
    MAX_DEPTH,
    ListNode,
    MappingNode,
    MemberNode,
    Node,
    ScalarNode,
    Source,
)

_SPACE = re.compile(r"[ \t\r\n]*")


class NotJson(ValueError):
    """The text is not JSON; it may still be YAML."""

    def __init__(self, at: int, what: str) -> None:
        super().__init__(what)
        self.at = at
        self.what = what


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number of JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)


def compose_json(source: Source) -> Node:
    """Return the tree of the one JSON value in the text.

    Raises:
        NotJson: The notation is broken.
        ScenarioError: It is JSON that a scenario may not have: a key twice, half a surrogate pair, too deep.
    """
    reader = _Reader(source)
    node = reader.value(0)
    if reader.skip() != len(source.text):
        raise NotJson(reader.at, "more text after the value")
    return node


class _Reader:
    """A place in the text that moves on."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.at = 0

    def skip(self) -> int:
        found = _SPACE.match(self.source.text, self.at)
        self.at = found.end() if found else self.at
        return self.at

    def peek(self) -> str:
        return self.source.text[self.skip() : self.at + 1]

    def expect(self, char: str) -> None:
        if self.peek() != char:
            raise NotJson(self.at, f"expected {char!r}")
        self.at += 1

    def value(self, depth: int) -> Node:
        match self.peek():
            case "[" | "{" if depth >= MAX_DEPTH:
                raise self.source.error(self.at, "values too deep inside each other", f"expected at most {MAX_DEPTH}")
            case "[":
                return self.items(depth)
            case "{":
                return self.members(depth)
            case _:
                return self.scalar()

    def items(self, depth: int) -> ListNode:
        start, found = self.at, list[Node]()
        self.at += 1
        while self.peek() != "]":
            if found:
                self.expect(",")
            found.append(self.value(depth + 1))
        self.at += 1
        return ListNode(start, tuple(found))

    def members(self, depth: int) -> MappingNode:
        start, found = self.at, list[MemberNode]()
        self.at += 1
        while self.peek() != "}":
            if found:
                self.expect(",")
            if self.peek() != '"':
                raise NotJson(self.at, "expected a key in double quotes")
            key = self.scalar()
            self.expect(":")
            found.append(MemberNode(key.at, str(key.value), self.value(depth + 1)))
        self.at += 1
        return self.source.mapping(start, found)

    def scalar(self) -> ScalarNode:
        start = self.at
        try:
            value, self.at = _DECODER.raw_decode(self.source.text, start)
        except json.JSONDecodeError as error:
            raise NotJson(error.pos, error.msg) from error
        except ValueError as error:  # a constant outside JSON, or a number of thousands of digits
            raise NotJson(start, str(error)) from error
        if isinstance(value, str):
            value = self.source.whole(value, start)
        elif isinstance(value, float) and not math.isfinite(value):
            raise self.source.error(start, "a number too large", "expected one that fits a double")
        return ScalarNode(start, value)
