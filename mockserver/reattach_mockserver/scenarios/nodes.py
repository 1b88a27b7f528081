"""A file's values with their places, whichever notation they were written in.

The YAML and the JSON reader both make these nodes, the parser reads them; so every error, about
notation or about meaning, can name line and column. No step or key of a scenario is known here.
"""

import re
from dataclasses import dataclass
from typing import TypeAlias

from reattach_mockserver.scenarios.errors import ScenarioError

MAX_DEPTH = 64
"""Lists and mappings inside each other: more than any scenario needs, far below Python's own limit."""

_LINE_END = re.compile(r"\r\n|\r|\n")
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class ScalarNode:
    """A text, number, truth value or null, at character `at` of its source."""

    at: int
    value: bool | int | float | str | None


@dataclass(frozen=True, slots=True)
class ListNode:
    """A list of nodes."""

    at: int
    items: "tuple[Node, ...]"


@dataclass(frozen=True, slots=True)
class MemberNode:
    """One key of a mapping, its place and its value."""

    at: int
    key: str
    value: "Node"


@dataclass(frozen=True, slots=True)
class MappingNode:
    """Keys in the order of the file; no key comes twice."""

    at: int
    members: tuple[MemberNode, ...]


Node: TypeAlias = ScalarNode | ListNode | MappingNode


@dataclass(frozen=True, slots=True)
class Source:
    """A text and the name that its errors carry."""

    path: str
    text: str

    def error(self, at: int, what: str, expected: str) -> ScenarioError:
        """Make the error for the place `at`, a character index; the caller raises it."""
        ends = [found.end() for found in _LINE_END.finditer(self.text, 0, min(at, len(self.text)))]
        # A place between CR and LF belongs to the line that they end.
        if ends and self.text[ends[-1] - 1 : ends[-1] + 1] == "\r\n":
            ends.pop()
        return ScenarioError(self.path, len(ends) + 1, at - (ends[-1] if ends else 0) + 1, what, expected)

    def whole(self, text: str, at: int) -> str:
        """Return the text with escaped surrogate pairs joined; half a pair is an error."""
        if not _LONE_SURROGATE.search(text):
            return text
        try:
            return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
        except UnicodeDecodeError as error:
            raise self.error(at, "half a surrogate pair in a text", "expected whole characters") from error

    def mapping(self, at: int, members: list[MemberNode]) -> MappingNode:
        """Make a mapping; a key that comes twice is an error at its second place."""
        seen: set[str] = set()
        for member in members:
            if member.key in seen:
                raise self.error(member.at, f"the key {member.key!r} a second time", "expected each key once")
            seen.add(member.key)
        return MappingNode(at, tuple(members))
