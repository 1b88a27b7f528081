"""Reads the steps of a scenario: which keys each kind has, of what type, in which range.

One function a kind. What concerns several steps at once (ids that come twice, too many events) is in
`bounds`.

**To add a kind of step:** a dataclass in `script`, a function and a line in `_KINDS` here, a line in
`dump`, a case in `expand` and `bounds`; mypy names each that is missing.
"""

import re
from collections.abc import Callable, Mapping

from reattach_mockserver.scenarios.fields import Fields, entries, shown
from reattach_mockserver.scenarios.nodes import MappingNode, Node, ScalarNode, Source
from reattach_mockserver.scenarios.script import (
    Action,
    Ask,
    Blob,
    CloseStreams,
    End,
    EndStatus,
    ExpireTo,
    ExpireTokens,
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
    ServerStep,
    Split,
    Status,
    Step,
    Tool,
    Wait,
)

MAX_MS = 24 * 60 * 60 * 1000
MAX_BLOB_BYTES = 16 * 1024 * 1024
MAX_TIMES = 1_000_000
MAX_BRANCHES = 64

ID = re.compile(r"[A-Za-z0-9_.:{}-]{1,128}")
_ID_EXPECTED = "letters, digits and _ . : - at most 128 ({i} in a repeat)"
_LINE = re.compile(r"[^\x00-\x1f\x7f-\x9f\u2028\u2029]{1,256}")
_LINE_EXPECTED = "one line of text, at most 256 characters"
TYPE = re.compile(r"[^\x00-\x1f\x7f-\x9f\u2028\u2029]{1,128}")
RELEASE = re.compile(r"[A-Za-z0-9._-]{1,64}")
_PLAIN_SERVER: Mapping[str, Callable[[], ServerStep]] = {
    "restart": Restart,
    "kill": Kill,
    "new_epoch": NewEpoch,
    "close_streams": CloseStreams,
    "expire_tokens": ExpireTokens,
}
_SERVER_EXPECTED = f"one of {', '.join(_PLAIN_SERVER)}, or a mapping with release, expire_to or overload_ms"


def reserved(event_type: str) -> bool:
    """Tell whether only the engine may append events of this type: they open, pause, settle or frame a log."""
    return event_type.startswith(("run.", "stream.", "action.")) or event_type == "release.changed"


def read_steps(source: Source, nodes: tuple[Node, ...], *, inside: str | None = None) -> tuple[Step, ...]:
    """Read a list of steps. `inside` names the repeat or parallel around it, where a run can neither pause nor end.

    Raises:
        ScenarioError: A step is not one of the format, or stands after an end.
    """
    steps: list[Step] = []
    for node in nodes:
        if steps and isinstance(steps[-1], End):
            raise source.error(node.at, "a step after the end", "expected 'end' to be the last of its list")
        step = _read_step(source, node)
        if inside is not None and isinstance(step, Ask | End):
            kind = "end" if isinstance(step, End) else "ask"
            raise source.error(node.at, f"'{kind}' inside a {inside}", "expected it outside of repeat and parallel")
        steps.append(step)
    return tuple(steps)


def _read_step(source: Source, node: Node) -> Step:
    if not isinstance(node, MappingNode):
        raise source.error(node.at, f"{shown(node)} as a step", f"expected a mapping with one of {', '.join(_KINDS)}")
    for member in node.members:
        if member.key in _KINDS:
            keys, read = _KINDS[member.key]
            article = "an" if member.key[0] in "aeiou" else "a"
            return read(Fields(source, node, f"{article} '{member.key}' step", keys))
    what = f"a step with {', '.join(shown(ScalarNode(0, member.key)) for member in node.members[:3]) or 'no key'}"
    raise source.error(node.at, what, f"expected one of {', '.join(_KINDS)}")


def _say(fields: Fields) -> Say:
    return Say(
        text=fields.text("say"), split=_split(fields), every_ms=_ms(fields, "every_ms") if "every_ms" in fields else 0
    )


def _split(fields: Fields) -> Split:
    if "split" not in fields:
        return "words"
    node = fields.value("split")
    match node:
        case ScalarNode(value="words" | "lines" | "whole" as how):
            return how
        case ScalarNode(value=int() as size) if not isinstance(size, bool) and 1 <= size <= MAX_TIMES:
            return size
        case _:
            raise fields.wrong("split", "words, lines, whole or a number of characters from 1")


def _tool(fields: Fields) -> Tool:
    if "result" in fields and "error" in fields:
        raise fields.source.error(fields.place("error"), "result and error in one tool", "expected one of them")
    return Tool(
        tool=fields.text("tool", _LINE, _LINE_EXPECTED),
        id=_optional_id(fields, "id"),
        operation_id=_optional_id(fields, "operation_id"),
        arguments=fields.object("arguments"),
        takes_ms=_ms(fields, "takes_ms") if "takes_ms" in fields else 0,
        result=fields.json("result"),
        error=_problem(fields, "error") if "error" in fields else None,
        reversible=fields.flag("reversible", True),
        external=fields.flag("external", False),
    )


def _parallel(fields: Fields) -> Parallel:
    branches = fields.items("parallel", 1, MAX_BRANCHES)
    return Parallel(
        branches=tuple(
            read_steps(fields.source, entries(fields.source, branch, "a branch of a parallel"), inside="parallel")
            for branch in branches
        )
    )


def _status(fields: Fields) -> Status:
    return Status(text=fields.text("status"))


def _event(fields: Fields) -> RawEvent:
    event = Fields(fields.source, fields.value("event"), "an event", ("type", "data", "text"))
    return RawEvent(
        type=_event_type(event), data=event.object("data"), text=event.text("text") if "text" in event else None
    )


def _blob(fields: Fields) -> Blob:
    blob = Fields(fields.source, fields.value("blob"), "a blob", ("type", "bytes"))
    size = blob.integer("bytes", 0, MAX_BLOB_BYTES)
    return Blob(bytes=size, type=_event_type(blob)) if "type" in blob else Blob(bytes=size)


def _wait(fields: Fields) -> Wait:
    return Wait(ms=_ms(fields, "wait_ms"))


def _repeat(fields: Fields) -> Repeat:
    return Repeat(
        times=fields.integer("repeat", 1, MAX_TIMES),
        steps=read_steps(fields.source, fields.items("steps"), inside="repeat"),
    )


def _server(fields: Fields) -> ServerStep:
    node = fields.value("server")
    match node:
        case ScalarNode(value=str() as word) if word in _PLAIN_SERVER:
            return _PLAIN_SERVER[word]()
        case MappingNode():
            server = Fields(fields.source, node, "a server step", ("release", "expire_to", "overload_ms", "status"))
            if "overload_ms" in server:
                server = Fields(fields.source, node, "an overload", ("overload_ms", "status"))
                status = server.integer("status", 429, 503) if "status" in server else 503
                if status not in (429, 503):
                    raise server.wrong("status", "429 or 503")
                return Overload(ms=server.integer("overload_ms", 1, MAX_MS), status=429 if status == 429 else 503)
            if "expire_to" in server:
                return ExpireTo(
                    sequence=Fields(fields.source, node, "an expiry", ("expire_to",)).integer("expire_to", 1)
                )
            release = Fields(fields.source, node, "a release", ("release",))
            return Release(release=release.text("release", RELEASE, "letters, digits and . _ - at most 64"))
        case _:
            raise fields.wrong("server", _SERVER_EXPECTED)


def _ask(fields: Fields) -> Ask:
    def answer(key: str) -> tuple[Step, ...]:
        return read_steps(fields.source, fields.items(key)) if key in fields else ()

    return Ask(
        actions=tuple(_action(fields.source, node) for node in fields.items("ask", 1, 100)),
        approved=answer("approved"),
        rejected=answer("rejected"),
    )


def _action(source: Source, node: Node) -> Action:
    keys = ("id", "kind", "tool", "arguments", "operation_id", "thread", "expires_in_ms", "release_in_ms")
    fields = Fields(source, node, "an action", keys)
    return Action(
        id=fields.text("id", ID, _ID_EXPECTED),
        tool=fields.text("tool", _LINE, _LINE_EXPECTED),
        kind=fields.word("kind", ("approval", "client_tool", "authorization")) if "kind" in fields else "approval",
        arguments=fields.object("arguments"),
        operation_id=_optional_id(fields, "operation_id"),
        thread=fields.text("thread", _LINE, _LINE_EXPECTED) if "thread" in fields else None,
        expires_in_ms=_ms(fields, "expires_in_ms") if "expires_in_ms" in fields else None,
        release_in_ms=_ms(fields, "release_in_ms") if "release_in_ms" in fields else None,
    )


def _end(fields: Fields) -> End:
    status: EndStatus = fields.word("end", ("completed", "failed", "cancelled"))
    if "result" in fields and status != "completed":
        raise fields.source.error(fields.place("result"), f"a result of a {status} run", "expected none")
    if "problem" in fields and status != "failed":
        raise fields.source.error(fields.place("problem"), f"a problem of a {status} run", "expected none")
    return End(
        status=status,
        result=fields.json("result"),
        problem=_problem(fields, "problem") if status == "failed" else None,
    )


def _problem(fields: Fields, key: str) -> Problem:
    problem = Fields(fields.source, fields.value(key), f"'{key}'", ("code", "message"))
    return Problem(code=problem.text("code", _LINE, _LINE_EXPECTED), message=problem.text("message"))


def _event_type(fields: Fields) -> str:
    event_type = fields.text("type", TYPE, "one line of text, at most 128 characters")
    if reserved(event_type):
        raise fields.wrong("type", "a type that is not the server's own (run., stream., action., release.changed)")
    return event_type


def _optional_id(fields: Fields, key: str) -> str | None:
    return fields.text(key, ID, _ID_EXPECTED) if key in fields else None


def _ms(fields: Fields, key: str) -> int:
    return fields.integer(key, 0, MAX_MS)


_KINDS: Mapping[str, tuple[tuple[str, ...], Callable[[Fields], Step]]] = {
    "say": (("say", "split", "every_ms"), _say),
    "tool": (
        ("tool", "id", "operation_id", "arguments", "takes_ms", "result", "error", "reversible", "external"),
        _tool,
    ),
    "parallel": (("parallel",), _parallel),
    "status": (("status",), _status),
    "event": (("event",), _event),
    "blob": (("blob",), _blob),
    "wait_ms": (("wait_ms",), _wait),
    "repeat": (("repeat", "steps"), _repeat),
    "server": (("server",), _server),
    "ask": (("ask", "approved", "rejected"), _ask),
    "end": (("end", "result", "problem"), _end),
}
