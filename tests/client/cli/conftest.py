"""The stage of the command line's tests: `main` in this process, a journal of its own, and a real server where one is needed."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from reattach.cli import main
from reattach_mockserver.live import LiveServer
from reattach_mockserver.scenarios.parse import loads_script

SCRIPTS = {
    "tools": """
reattach: scenario/1
name: tools
clock: virtual
steps:
  - {say: "I look. ", split: whole}
  - {tool: charge_card, id: c1, operation_id: op_1, arguments: {cents: 999}, takes_ms: 5, result: {ok: true}}
  - {tool: mail, id: c2, arguments: {}, error: {code: bounced, message: "no such box"}}
  - {say: "Done", split: whole}
  - {end: completed, result: {refunded: true}}
""",
    "fails": """
reattach: scenario/1
name: fails
clock: virtual
steps: [{say: "hm", split: whole}, {end: failed, problem: {code: upstream_down, message: "the archive is silent"}}]
""",
    "asks": """
reattach: scenario/1
name: asks
clock: virtual
steps:
  - ask: [{id: act_1, kind: approval, tool: restart, arguments: {service: shop}}]
    approved: [{say: "Restarted.", split: whole}]
""",
    "asks-two": """
reattach: scenario/1
name: asks-two
clock: virtual
steps:
  - {say: "May I? ", split: whole}
  - ask:
      - {id: act_1, kind: approval, tool: refund, arguments: {cents: 999}, thread: billing, operation_id: op_1}
      - {id: act_2, kind: client_tool, tool: clock, arguments: {}}
    approved: [{say: "Refunded.", split: whole}, {end: completed, result: {refunded: true}}]
    rejected: [{say: "Then not.", split: whole}, {end: completed, result: {refunded: false}}]
""",
    "endless": """
reattach: scenario/1
name: endless
steps:
  - {say: "a beginning", split: whole}
  - {tool: letter, id: c1, operation_id: op_2, takes_ms: 5, reversible: false, result: {}}
  - {status: "letter sent"}
  - {wait_ms: 3600000}
""",
    "short": """
reattach: scenario/1
name: short
clock: virtual
steps: [{say: "one two three", split: words}, {end: completed, result: 3}]
""",
}


@dataclass
class Said:
    """What one command said and how it ended."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.splitlines()]

    def kinds(self, kind: str) -> list[dict[str, Any]]:
        return [line for line in self.lines if line["kind"] == kind]


@pytest.fixture(scope="session")
def server() -> Iterator[LiveServer]:
    with LiveServer(scripts={name: loads_script(text, name) for name, text in SCRIPTS.items()}) as live:
        yield live


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A data folder of this test's own; no token and no colour wish from outside."""
    monkeypatch.setenv("REATTACH_HOME", str(tmp_path / "home"))
    for name in ("REATTACH_TOKEN", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "home"


@pytest.fixture
def reattach(home, capsys) -> Callable[..., Said]:
    def command(*words: str) -> Said:
        try:
            code = main([str(word) for word in words])
        except SystemExit as end:
            code = end.code
        said = capsys.readouterr()
        return Said(code, said.out, said.err)

    return command


@pytest.fixture
def play(tmp_path):
    """Return a function that gives the `--data` of a scenario."""

    def file(name: str) -> str:
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps({"scenario": name}))
        return str(path)

    return file
