"""Reads YAML into nodes with places.

Only the notation of PyYAML is used, not its types: its YAML 1.1 rules take `no` for false and
`12:30` for a number. Plain scalars are read by YAML 1.2's core rules for null, true, false and decimal
numbers; all else is text. Anchors, aliases and tags are refused, so a small file cannot stand for a
huge tree. Meaning is the parser's.
"""

import math
import re
from dataclasses import dataclass, field

import yaml

from reattach_mockserver.scenarios.errors import ScenarioError
from reattach_mockserver.scenarios.nodes import MAX_DEPTH, ListNode, MemberNode, Node, ScalarNode, Source

_INTEGER = re.compile(r"[-+]?[0-9]{1,400}")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_WORDS: dict[str, bool | None] = {
    "": None, "~": None, "null": None, "Null": None, "NULL": None,
    "true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False,
}  # fmt: skip


@dataclass(slots=True)
class _Open:
    """A list or mapping whose end has not come yet."""

    at: int
    is_mapping: bool
    nodes: list[Node] = field(default_factory=list)


def compose_yaml(source: Source) -> Node | None:
    """Return the tree of the one document in the text, None if there is none.

    Raises:
        ScenarioError: The notation is broken, or uses what a scenario may not use.
    """
    loader = None
    try:
        loader = yaml.BaseLoader(source.text)
        return _compose(source, loader)
    except yaml.reader.ReaderError as error:
        what = f"the character {chr(error.character)!a}" if isinstance(error.character, int) else str(error.reason)
        raise source.error(error.position, what, "expected only printable characters, or an escape") from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        what = error.problem or error.context or "broken notation"
        raise source.error(mark.index if mark else 0, f"not YAML ({what})", "expected well-formed YAML") from error
    except ScenarioError:
        raise
    except (ValueError, OverflowError, IndexError) as error:
        # PyYAML lets some escapes and directives fail in Python itself, as \UFFFFFFFF does.
        at = loader.get_mark().index if loader else 0
        raise source.error(at, f"not YAML ({error})", "expected well-formed YAML") from error


def _compose(source: Source, loader: yaml.BaseLoader) -> Node | None:
    stack: list[_Open] = []
    root: Node | None = None
    documents = 0
    while loader.check_event():
        event = loader.get_event()  # type: ignore[no-untyped-call]  # the stubs leave it out
        at = event.start_mark.index
        done: Node
        match event:
            case yaml.AliasEvent():
                raise source.error(at, "an alias", "expected the value itself: scenarios have no anchors and aliases")
            case yaml.NodeEvent(anchor=str()):
                raise source.error(at, "an anchor", "expected a value without: scenarios have no anchors and aliases")
            case yaml.ScalarEvent(tag=str()) | yaml.CollectionStartEvent(tag=str()):
                raise source.error(at, f"the tag {event.tag!r}", "expected a value without a tag")
            case yaml.CollectionStartEvent():
                if len(stack) >= MAX_DEPTH:
                    raise source.error(at, "values too deep inside each other", f"expected at most {MAX_DEPTH}")
                stack.append(_Open(at, isinstance(event, yaml.MappingStartEvent)))
                continue
            case yaml.DocumentStartEvent():
                documents += 1
                if documents > 1:
                    raise source.error(at, "a second document", "expected one scenario a file")
                continue
            case yaml.CollectionEndEvent():
                done = _closed(source, stack.pop())
            case yaml.ScalarEvent():
                done = _scalar(source, event, at)
            case _:
                continue
        if stack:
            stack[-1].nodes.append(done)
        else:
            root = done
    return root


def _closed(source: Source, opened: _Open) -> Node:
    if not opened.is_mapping:
        return ListNode(opened.at, tuple(opened.nodes))
    members = []
    for key, value in zip(opened.nodes[::2], opened.nodes[1::2], strict=True):
        if not isinstance(key, ScalarNode) or not isinstance(key.value, str):
            raise source.error(key.at, "a key that is not text", "expected text; put it in quotes")
        members.append(MemberNode(key.at, key.value, value))
    return source.mapping(opened.at, members)


def _scalar(source: Source, event: yaml.ScalarEvent, at: int) -> ScalarNode:
    text: str = event.value
    if not event.implicit[0]:
        return ScalarNode(at, source.whole(text, at))
    if text in _WORDS:
        return ScalarNode(at, _WORDS[text])
    if _INTEGER.fullmatch(text):
        return ScalarNode(at, int(text))
    if _FLOAT.fullmatch(text):
        number = float(text)
        if not math.isfinite(number):
            raise source.error(at, "a number too large", "expected one that fits a double")
        return ScalarNode(at, number)
    return ScalarNode(at, text)
