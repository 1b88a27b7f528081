"""PROTOCOL.md says what the code does: every path, code, member, event type and word of it is on the page, and no other code."""

import re
from pathlib import Path

import pytest

from mockserver_stage import QUICK
from reattach_mockserver import app
from reattach_mockserver.event import SETTLING
from reattach_mockserver.faces.problem import CODES
from reattach_mockserver.scenarios.ready import load_ready

pytestmark = pytest.mark.anyio

PAGE = (Path(__file__).parents[2] / "mockserver" / "PROTOCOL.md").read_text(encoding="utf-8")
WORDS = set(re.findall(r"[A-Za-z_][A-Za-z0-9_.-]*[A-Za-z0-9]", PAGE))


def test_every_refusal_is_on_the_page_with_its_status():
    """RS-37: the stable words, each near the number that it is sent with."""
    for code, status in CODES.items():
        near = [PAGE[found.start() - 400 : found.end() + 40] for found in re.finditer(rf"\b{code}\b", PAGE)]
        assert near, code
        assert any(str(status) in part for part in near), (code, status)


def test_every_code_of_the_page_is_one_of_ours():
    """In a table of refusals, or behind a status."""
    named = set(re.findall(r"\b[45]\d\d\b,? `([a-z_]+)`", PAGE))
    assert named
    assert named <= set(CODES)


def test_every_path_is_on_the_page():
    for path, faces in app._PATHS.items():
        short = path.removeprefix("/v1").replace("{run_id}", "{id}").replace("{session_id}", "{id}")
        short = short.replace("{operation_id}", "{id}")
        for method in faces:
            assert f"{method} {short}" in PAGE, (method, path)


def test_every_settling_type_and_status_is_on_the_page():
    assert set(SETTLING) | set(SETTLING.values()) <= WORDS


async def test_every_member_that_is_sent_is_on_the_page(sites):
    """Of a run, a session, a page, a snapshot, an operation, a required action, an event and what discovery says."""
    site = await sites(load_ready("approvals"), load_ready("tools"), QUICK)
    run = await site.settled({"input": "x", "session_id": "s"})
    operation = run["required_actions"][0]["operation_id"]
    answers = [
        await site.get(path)
        for path in (
            f"/v1/runs/{run['id']}",
            f"/v1/runs/{run['id']}/snapshot",
            f"/v1/runs/{run['id']}/events?limit=1000",
            "/v1/sessions/s",
            "/v1/sessions/s/runs",
            f"/v1/operations/{operation}",
            "/.well-known/reattach",
        )
    ]
    members = set().union(*(_members(answer.json) for answer in answers))
    page = answers[2].json
    assert members <= WORDS, members - WORDS
    assert {event["type"] for event in page["events"]} <= WORDS


def _members(value):
    match value:
        case dict():
            inner = (_members(each) for name, each in value.items() if name not in ("arguments", "result", "metadata"))
            return set(value).union(*inner)
        case list():
            return set().union(*map(_members, value))
        case _:
            return set()
