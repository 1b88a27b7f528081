"""Each requirement on a resumable server has a test here that names it, and so has each report that is about the server."""

import re

from requirements_table import GROUPS, PAGE, PLACES, ROOT, observations, render, requirements

REPORTS = {"B04", "B13", "B18", "B20", "B42", "B43", "B47", "B50", "B51", "B56", "B57", "B65", "B87"}
"""Public reports of faults of this kind of server (the client's tests name those of clients)."""


def test_every_requirement_has_a_test_that_names_it():
    assert len(requirements()) == sum(len(texts) for texts in GROUPS.values()) == 93
    without = set(requirements()) - set(observations())
    assert not without, f"no test observes {sorted(without)}"


def test_no_test_names_a_requirement_that_there_is_not():
    assert not set(observations()) - set(requirements())


def test_the_page_says_what_the_docstrings_say():
    """`python tests/requirements_table.py` writes it anew."""
    assert PAGE.read_text(encoding="utf-8") == render()


def test_the_page_is_linked_from_the_rooms_readme():
    assert "](REQUIREMENTS.md)" in (ROOT / "mockserver" / "README.md").read_text(encoding="utf-8")


def test_every_report_about_a_server_has_a_test_that_names_it():
    named: set[str] = set()
    for place in PLACES:
        for path in (ROOT / place).rglob("test_*.py"):
            if path.name != "test_requirements.py":
                named |= set(re.findall(r"\bB[0-9]{2}\b", path.read_text(encoding="utf-8")))
    assert named >= REPORTS, sorted(REPORTS - named)
