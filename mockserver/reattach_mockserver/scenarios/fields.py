"""Typed reading of nodes: this key, of that type, in this range, or an error that says so.

What a scenario's keys are and mean is the parser's; here is only how one value is checked and how the
error is worded.
"""

import difflib
import re
from collections.abc import Collection
from typing import TypeVar

from reattach_mockserver.scenarios.nodes import ListNode, MappingNode, Node, ScalarNode, Source
from reattach_mockserver.scenarios.script import Json

MAX_INTEGER = 2**63 - 1
"""What logs and other languages hold without loss."""

_Word = TypeVar("_Word", bound=str)


def shown(node: Node) -> str:
    """Say what stands in the file, short enough for one line."""
    match node:
        case ListNode():
            return "a list"
        case MappingNode():
            return "a mapping"
        case ScalarNode(value=None):
            return "nothing"
        case ScalarNode(value=bool() as value):
            return "true" if value else "false"
        case ScalarNode(value=value):
            text = ascii(value)
            return text if len(text) <= 60 else f"{text[:57]}..."


class Fields:
    """One mapping of the file: its members by name, each read with its type."""

    def __init__(self, source: Source, node: Node, noun: str, allowed: Collection[str]) -> None:
        """Take a mapping that has only `allowed` keys; `noun` names it in errors ("a say")."""
        if not isinstance(node, MappingNode):
            raise source.error(node.at, f"{shown(node)} as {noun}", f"expected a mapping with {', '.join(allowed)}")
        self.source = source
        self.node = node
        self.noun = noun
        self._members = {member.key: member.value for member in node.members}
        for member in node.members:
            if member.key not in allowed:
                near = difflib.get_close_matches(member.key[:60], list(allowed), n=1)
                expected = f"did you mean {near[0]!r}?" if near else f"expected one of {', '.join(allowed)}"
                raise source.error(member.at, f"unknown key {shown(ScalarNode(0, member.key))} in {noun}", expected)

    def __contains__(self, key: str) -> bool:
        return key in self._members

    def place(self, key: str) -> int:
        """Return where the value of a key stands."""
        return self._members[key].at

    def value(self, key: str) -> Node:
        """Return a member that must be there."""
        try:
            return self._members[key]
        except KeyError:
            raise self.source.error(self.node.at, f"{self.noun} without {key!r}", f"expected the key {key!r}") from None

    def wrong(self, key: str, expected: str) -> Exception:
        """Make the error for a member whose value is not what was expected; the caller raises it."""
        node = self.value(key)
        return self.source.error(node.at, f"{shown(node)} as {key!r} of {self.noun}", f"expected {expected}")

    def text(self, key: str, pattern: re.Pattern[str] | None = None, expected: str = "text") -> str:
        """Read a text that must be there and match the pattern wholly."""
        node = self.value(key)
        if not isinstance(node, ScalarNode) or not isinstance(node.value, str):
            hint = "; put it in quotes" if isinstance(node, ScalarNode) and node.value is not None else ""
            raise self.wrong(key, f"{expected}{hint}")
        if pattern is not None and not pattern.fullmatch(node.value):
            raise self.wrong(key, expected)
        return node.value

    def integer(self, key: str, low: int, high: int = MAX_INTEGER) -> int:
        """Read a whole number that must be there and in range, both ends included."""
        node = self.value(key)
        value = node.value if isinstance(node, ScalarNode) else None
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise self.wrong(key, f"a whole number from {low} to {high}")
        return value

    def flag(self, key: str, default: bool) -> bool:
        """Read true or false."""
        if key not in self:
            return default
        node = self.value(key)
        if not isinstance(node, ScalarNode) or not isinstance(node.value, bool):
            raise self.wrong(key, "true or false")
        return node.value

    def word(self, key: str, words: tuple[_Word, ...]) -> _Word:
        """Read one of a few words; it must be there."""
        node = self.value(key)
        for word in words:
            if isinstance(node, ScalarNode) and node.value == word:
                return word
        raise self.wrong(key, f"one of {', '.join(words)}")

    def items(self, key: str, least: int = 0, most: int = MAX_INTEGER) -> tuple[Node, ...]:
        """Read a list that must be there, with so many entries."""
        return entries(self.source, self.value(key), f"{key!r} of {self.noun}", least, most)

    def object(self, key: str) -> dict[str, Json]:
        """Read a JSON object; {} if it is not there."""
        if key not in self:
            return {}
        node = self.value(key)
        if not isinstance(node, MappingNode):
            raise self.wrong(key, "a mapping")
        return {member.key: json_value(self.source, member.value) for member in node.members}

    def json(self, key: str) -> Json:
        """Read any JSON value; None if it is not there."""
        return json_value(self.source, self.value(key)) if key in self else None


def entries(source: Source, node: Node, noun: str, least: int = 0, most: int = MAX_INTEGER) -> tuple[Node, ...]:
    """Read a list with so many entries."""
    if not isinstance(node, ListNode):
        raise source.error(node.at, f"{shown(node)} as {noun}", "expected a list")
    if not least <= len(node.items) <= most:
        raise source.error(node.at, f"{len(node.items)} entries in {noun}", f"expected {least} to {most}")
    return node.items


def json_value(source: Source, node: Node) -> Json:
    """Return the plain value of a node; nodes are never deep, so neither is this."""
    match node:
        case MappingNode():
            return {member.key: json_value(source, member.value) for member in node.members}
        case ListNode():
            return [json_value(source, item) for item in node.items]
        case ScalarNode(value=bool() as flag):
            return flag
        case ScalarNode(value=int() as number) if abs(number) > MAX_INTEGER:
            raise source.error(node.at, "a number too large", f"expected at most {MAX_INTEGER}; put it in quotes")
        case ScalarNode():
            return node.value
