"""Reads a scenario file: text to Script, or an error that names file, line and column.

Every key, type and range of the format is here and in `steps`; what the notation allows is in
`yaml_nodes` and `json_nodes`, what a script as a whole may not be in `bounds`. Nothing is guessed: a key
that is not known, a number out of range, a step that could never be played is an error.

A file that begins with a brace is tried as JSON first; whatever is not JSON is read as YAML.

Checked by tests/mockserver/scenarios/test_parse.py and test_parse_laws.py.
"""

import re
from pathlib import Path

from reattach_mockserver.scenarios.bounds import check_whole
from reattach_mockserver.scenarios.errors import ScenarioError
from reattach_mockserver.scenarios.fields import Fields
from reattach_mockserver.scenarios.json_nodes import NotJson, compose_json
from reattach_mockserver.scenarios.nodes import Node, Source
from reattach_mockserver.scenarios.script import Limits, LineEnd, Script
from reattach_mockserver.scenarios.steps import MAX_MS, read_steps
from reattach_mockserver.scenarios.yaml_nodes import compose_yaml

MAX_FILE_BYTES = 16 * 1024 * 1024
"""Large content is a blob or a repeat, not a large file."""

MAX_YAML_CHARACTERS = 1024 * 1024
"""YAML is read at about 1 MB a second; larger scripts are written by programs, which write JSON."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_LINE_ENDS: tuple[LineEnd, ...] = ("lf", "crlf", "cr")
_KEYS = ("reattach", "name", "seed", "clock", "limits", "steps")


def load_script(path: str | Path) -> Script:
    """Read a scenario file, UTF-8, with or without a byte order mark.

    A script without a name has the file's, without its ending.

    Raises:
        ScenarioError: The file cannot be read, or does not say what a scenario may say.
    """
    path = Path(path)
    try:
        with path.open("rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        reason = error.strerror or str(error)
        raise ScenarioError(str(path), 0, 0, f"cannot be read ({reason})", "expected a scenario file") from error
    if len(content) > MAX_FILE_BYTES:
        raise ScenarioError(str(path), 0, 0, "too large", f"expected at most {MAX_FILE_BYTES} bytes")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        good = content[: error.start].decode("utf-8-sig")
        raise Source(str(path), good).error(len(good), "a byte that is not UTF-8", "expected UTF-8") from error
    return _read(Source(str(path), text), default_name=path.stem)


def loads_script(text: str, name: str = "scenario") -> Script:
    """Read a scenario from text; `name` stands for the file in errors, and for the script's name where it has none.

    Raises:
        ScenarioError: The text does not say what a scenario may say.
    """
    if len(text) > MAX_FILE_BYTES:
        raise ScenarioError(name, 0, 0, "too large", f"expected at most {MAX_FILE_BYTES} characters")
    return _read(Source(name, text), default_name=Path(name).stem)


def _read(source: Source, default_name: str) -> Script:
    root = _compose(source)
    if root is None:
        raise source.error(0, "an empty file", "expected 'reattach: scenario/1' and steps")
    fields = Fields(source, root, "a scenario", _KEYS)
    fields.word("reattach", ("scenario/1",))
    nodes = fields.items("steps")
    script = Script(
        name=_name(fields, default_name),
        seed=fields.integer("seed", 0) if "seed" in fields else 0,
        clock=fields.word("clock", ("real", "virtual")) if "clock" in fields else "real",
        limits=_limits(fields) if "limits" in fields else Limits(),
        steps=read_steps(source, nodes),
    )
    check_whole(source, script, nodes)
    return script


def _compose(source: Source) -> Node | None:
    if source.text.lstrip().startswith("{"):
        try:
            return compose_json(source)
        except NotJson as error:
            if source.path.endswith(".json"):
                raise source.error(error.at, f"not JSON ({error.what})", "expected well-formed JSON") from error
    if len(source.text) > MAX_YAML_CHARACTERS:
        what = f"YAML of {len(source.text)} characters"
        raise source.error(0, what, f"expected at most {MAX_YAML_CHARACTERS}; write large scripts as JSON")
    return compose_yaml(source)


def _name(fields: Fields, default_name: str) -> str:
    expected = "a name of letters, digits, dots, dashes and underscores, at most 64"
    if "name" in fields:
        return fields.text("name", _NAME, expected)
    # A file may be called anything; a run's input names the script, so its name has to be plain.
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", default_name).lstrip("._-")[:64]
    return plain or "scenario"


def _limits(fields: Fields) -> Limits:
    limits = Fields(
        fields.source,
        fields.value("limits"),
        "limits",
        ("heartbeat_ms", "stream_age_ms", "retention_events", "retention_ms", "line_end"),
    )

    def number(key: str, low: int, high: int = MAX_MS) -> int | None:
        return limits.integer(key, low, high) if key in limits else None

    return Limits(
        heartbeat_ms=number("heartbeat_ms", 10),
        stream_age_ms=number("stream_age_ms", 10),
        retention_events=number("retention_events", 1, 1_000_000_000),
        retention_ms=number("retention_ms", 1, 366 * MAX_MS),
        line_end=limits.word("line_end", _LINE_ENDS) if "line_end" in limits else None,
    )
