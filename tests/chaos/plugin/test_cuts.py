"""`reattach_cuts`, as a QA engineer meets it: their client, in a folder of their own, one test for each cut."""

from __future__ import annotations

import json
import pathlib
import re
import shutil

import pytest

from chaos.test_pytest_plugin import newcomer
from reattach_chaos.history import CutFired, read_history
from reattach_mockserver.live import LiveServer

EXAMPLE = pathlib.Path(__file__).parents[3] / "examples" / "16_your_own_client.py"
SMALL = "reattach: scenario/1\nname: small\nclock: virtual\nsteps:\n- {say: one two, split: words}\n"
HEAD = """
import httpx, pytest
from client import follow

def shown(case, wrong=False):
    yield ""  # what httpx-sse has for a stream.attached
    with httpx.Client(timeout=5) as client:
        for identity in follow(case.events_url, client):
            yield identity
            if wrong and identity.endswith(".2"):
                yield identity
"""

SEVERAL = """
@pytest.mark.reattach_cuts("small.yaml", faults=("fin", "rst"))
def test_right(reattach_chaos):
    reattach_chaos.check(shown(reattach_chaos))

@pytest.mark.reattach_cuts("small.yaml", faults="rst")
def test_wrong(reattach_chaos):
    reattach_chaos.check(shown(reattach_chaos, wrong=True))

@pytest.mark.reattach_cuts("small.yaml", faults="fin", positions="in-comment")
def test_unproven(reattach_chaos):
    reattach_chaos.check(shown(reattach_chaos))

@pytest.mark.reattach_cuts("small.yaml", faults="fin", positions="after-head")
def test_started_twice(reattach_chaos):
    for key in "12":
        body = {"input": reattach_chaos.input}
        run = httpx.post(reattach_chaos.runs_url, json=body, headers={"Idempotency-Key": key}).json()
    with httpx.Client() as client:
        reattach_chaos.check(follow(reattach_chaos.runs_url + "/" + run["id"] + "/events", client))

@pytest.mark.reattach_cuts("small.yaml", faults="fin", positions="after-head")
def test_that_judges_nothing(reattach_chaos):
    pass

def test_without_a_fault(reattach_chaos):
    reattach_chaos.check([{"id": each} for each in shown(reattach_chaos)])
"""


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> pathlib.Path:
    shutil.copy(EXAMPLE, tmp_path / "client.py")
    (tmp_path / "small.yaml").write_text(SMALL)
    return tmp_path


def test_right_wrong_and_unproven_are_told_apart(folder: pathlib.Path) -> None:
    """Ids (an empty one is passed over), the seed's line, a failure's text with what repeats it, the history; the repeat alone."""
    done = newcomer(folder, HEAD + SEVERAL, "--reattach-seed", "7", "-vv")
    for words in (
        "reattach seed 7 (again: --reattach-seed 7)",
        "test_right[rst-after-event-2] PASSED",
        "test_right[fin-before-blank-line-of-event-6] PASSED",
        "test_without_a_fault PASSED",
        "duplicated: event 2 (",
        'again: pytest "test_app.py::test_wrong[rst-after-event-3]" --reattach-seed 7',
        "history: .reattach/pytest/test_wrong-rst-after-event-3.jsonl",
        "  passed over: 1 shown without an id; a control event (stream.…) has none",
        "inconclusive: ",
        "second run: ",
        "nothing was judged: reattach_chaos.check(shown) was not called",
    ):
        assert words in done.stdout, done.stdout + done.stderr
    assert (folder / ".reattach" / ".gitignore").read_text() == "*\n"
    saved = folder / ".reattach" / "pytest" / "test_wrong-rst-after-event-3.jsonl"
    assert [each.fault for each in read_history(saved).of(CutFired)] == ["rst"]
    named = ("--reattach-replay", str(saved), "-k", "test_right or test_wrong")
    again = newcomer(folder, HEAD + SEVERAL, *named)
    assert "1 failed, 1 passed" in again.stdout, again.stdout + again.stderr


@pytest.mark.slow
def test_the_example_passes_side_by_side(folder: pathlib.Path) -> None:
    """Under xdist the seed is drawn once, by who hands out the tests, and told behind the run; also with respx."""
    done = newcomer(
        folder,
        EXAMPLE.read_text(),
        "-p",
        "xdist",
        "-n",
        "2",
        "-p",
        "respx.plugin",
        "-k",
        "event-1 or event-20 or blank",
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "reattach seed " in done.stdout


def test_the_workers_of_xdist_have_one_seed(folder: pathlib.Path) -> None:
    """Drawn by who hands out the tests: what a failure names is what is told behind the run."""
    tests = """
@pytest.mark.reattach_cuts("small.yaml", faults="rst")
def test_it(reattach_chaos):
    reattach_chaos.check([])
"""
    done = newcomer(folder, HEAD + tests, "-p", "xdist", "-n", "2")
    assert "reattach seed " in done.stdout, done.stdout + done.stderr
    assert len(set(re.findall("--reattach-seed ([0-9]+)", done.stdout))) == 1, done.stdout


@pytest.mark.parametrize(
    ("test", "options", "told"),
    [
        ('reattach_cuts("helo")\ndef test_it(reattach_chaos): pass', (), "scenario='helo': a path, or one of "),
        pytest.param(
            'reattach_cuts(position="x")\ndef test_it(reattach_chaos): pass',
            (),
            "'position'; there are scenario, positions, ",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            "reattach_cuts\ndef test_it(): pass",
            (),
            "a test with this marker takes the fixture reattach_chaos",
            marks=pytest.mark.slow,
        ),
        ("reattach_cuts\ndef test_it(reattach_chaos): pass", ("--reattach-target", "mine.toml"), "mine.toml: 'adress' is unknown"),
        pytest.param(
            "reattach_cuts\ndef test_it(reattach_chaos): pass",
            ("--reattach-seed", "-1"),
            "--reattach-seed -1: a number from 0 to ",
            marks=pytest.mark.slow,
        ),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_said_before_any_test(
    folder: pathlib.Path, test: str, options: tuple[str, ...], told: str
) -> None:
    (folder / "mine.toml").write_text('adress = "http://127.0.0.1:9"\n')
    done = newcomer(folder, f"import pytest\n@pytest.mark.{test}\n", *options)
    assert done.returncode != 0
    assert told in done.stdout + done.stderr, done.stdout + done.stderr
    assert "During handling of the above exception" not in done.stdout, "told twice"


@pytest.mark.slow
def test_a_server_of_ones_own_is_tested_by_its_door(folder: pathlib.Path) -> None:
    with LiveServer() as live:
        (folder / "mine.toml").write_text(f'url = "{live.url}"\nheartbeat_ms = 15000\ninput = {json.dumps("hello")}\n')
        tests = (
            HEAD
            + """
@pytest.mark.reattach_cuts(faults="rst", on="both")
def test_it(reattach_chaos):
    assert reattach_chaos.headers == {}
    reattach_chaos.check(shown(reattach_chaos))
"""
        )
        done = newcomer(folder, tests, "--reattach-target", "mine.toml", "-k", "event-1 or event-5 or blank")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_a_client_that_waits_for_ever_ends_its_test(folder: pathlib.Path) -> None:
    """When its time is up the gate closes, and what it did not show is told."""
    tests = """
from reattach_chaos.plugin import stage
stage.CLIENT_S = 1.0

@pytest.mark.reattach_cuts("small.yaml", faults="stall", positions="after-head")
def test_it(reattach_chaos):
    try:
        with httpx.Client(timeout=None) as client:
            client.get(reattach_chaos.events_url, headers={"Accept": "text/event-stream"})
    except httpx.TransportError:
        pass
    reattach_chaos.check([])
"""
    done = newcomer(folder, HEAD + tests)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "lost: event 1 (" in done.stdout, done.stdout


@pytest.mark.slow
def test_an_error_of_the_client_leaves_its_history(folder: pathlib.Path) -> None:
    """The test fails by its own error; what came before is kept, and named."""
    tests = """
@pytest.mark.reattach_cuts("small.yaml", faults="rst", positions="after-head")
def test_it(reattach_chaos):
    httpx.get(reattach_chaos.events_url)
"""
    done = newcomer(folder, HEAD + tests)
    assert done.returncode == 1
    assert "history: .reattach/pytest/rst-after-head.jsonl" in done.stdout, done.stdout
    saved = read_history(folder / ".reattach/pytest/rst-after-head.jsonl")
    assert len(saved.of(CutFired)) == 1
