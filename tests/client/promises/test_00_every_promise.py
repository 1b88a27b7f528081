"""Every promise of the contract has tests, and README.md says where."""

import ast
import re
from pathlib import Path

import pytest

HERE = Path(__file__).parent
PROMISES = range(1, 13)


def table() -> dict[str, set[Path]]:
    """The files of each row of README.md, by its first word; those that have the promise's number in their name are in its row."""
    rows = {}
    for line in (HERE / "README.md").read_text("utf-8").splitlines():
        if row := re.fullmatch(r"\| (\w+) [^|]*\| (.+) \|", line):
            patterns = re.findall(r"`([^`]+)`", row[2])
            if patterns:
                rows[row[1]] = {path for pattern in patterns for path in list(HERE.glob(pattern)) or [HERE / pattern]}
    for number in PROMISES:
        rows[str(number)] |= set(HERE.glob(f"test_{number:02}_*.py"))
    return rows


def named(path: Path) -> set[int]:
    """The promises that docstrings of a file name."""
    tree = ast.parse(path.read_text("utf-8"))
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.Module | ast.FunctionDef | ast.AsyncFunctionDef)]
    found = set()
    for node in nodes:
        for numbers in re.findall(r"[Pp]romises? ((?:\d+(?:, | and )?)+)", ast.get_docstring(node) or ""):
            found |= {int(number) for number in re.findall(r"\d+", numbers)}
    return found


@pytest.mark.parametrize("promise", PROMISES)
def test_a_promise_has_tests_that_name_it(promise: int) -> None:
    """A file of its row that is there, and says so."""
    files = table()[str(promise)]
    assert [path.name for path in files if not path.exists()] == []
    assert [path.name for path in files if promise in named(path)], f"no docstring names promise {promise}"


def test_every_file_is_in_the_table() -> None:
    """Nobody has to guess which promise a file is about."""
    told = set().union(*table().values()) | {Path(__file__)}
    assert {path.name for path in HERE.glob("test_*.py")} - {path.name for path in told} == set()
    assert set(table()) == {*map(str, PROMISES), "all"}
