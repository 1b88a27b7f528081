"""PROTOCOL.md and the code say the same: each path, code, event type, reason, limit, header and word of one is in the other."""

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from mockserver_stage import QUICK
from reattach_mockserver import app
from reattach_mockserver.event import SETTLING
from reattach_mockserver.faces import cors, discovery, socket_messages
from reattach_mockserver.faces.problem import CODES
from reattach_mockserver.scenarios.ready import load_ready
from reattach_mockserver.settings import Limits

pytestmark = pytest.mark.anyio

ROOT = Path(__file__).parents[2]
CODE = ROOT / "mockserver" / "reattach_mockserver"
PAGE = (ROOT / "mockserver" / "PROTOCOL.md").read_text(encoding="utf-8")
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


def section(title: str) -> str:
    """Return the part of the page under a heading."""
    return PAGE.split(f"\n## {title}", 1)[1].split("\n## ", 1)[0]


def trees(*folders: str) -> Iterator[ast.AST]:
    for folder in folders:
        for path in sorted((CODE / folder).rglob("*.py")):
            yield ast.parse(path.read_text(encoding="utf-8"))


def texts(*folders: str) -> set[str]:
    """Return every text that stands in the code of these folders."""
    nodes = (node for tree in trees(*folders) for node in ast.walk(tree))
    return {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}


def said(name: str, *folders: str, argument: int = 0) -> set[str]:
    """Return the texts that calls of a function or method are given in this place."""
    nodes = (node for tree in trees(*folders) for node in ast.walk(tree))
    calls = [node for node in nodes if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] == name]
    given = [call.args[argument] for call in calls if len(call.args) > argument]
    return {node.value for node in given if isinstance(node, ast.Constant) and isinstance(node.value, str)}


def test_every_path_of_the_page_is_one_of_ours():
    ours = {(method, path) for path, faces in app._PATHS.items() for method in faces} | {("GET", app._SOCKET)}
    plain = {(method, re.sub(r"\{[a-z_]+\}", "{id}", path).removeprefix("/v1")) for method, path in ours}
    named = set(re.findall(r"(GET|POST|PUT|DELETE|PATCH) (/[a-z{}/.-]*)", PAGE))
    assert named == plain


def test_the_event_types_of_the_page_are_those_of_the_engine():
    table = section("1. Objects").split("| type | data | |")[1].split("\n\n")[0]
    page = {
        word for line in table.splitlines() for word in re.findall(r"`([a-z.]+)`", line.split("|")[1] if line else "")
    }
    form = re.compile(r"(run|message|tool|action|release)\.[a-z]+")
    code = {text for text in texts("engine", "agent", "scenarios") | set(SETTLING) if form.fullmatch(text)} | {"status"}
    assert page == code


def test_the_reasons_to_close_are_those_of_the_code():
    """But for one of another kind of server, which is sent only where a test asks for it."""
    page = set(re.findall(r"`([a-z_]+)` \(", section("4. Streaming").split("last block")[1].split("Then it ends")[0]))
    reading = next(
        node for tree in trees("faces") for node in ast.walk(tree) if getattr(node, "name", "") == "_reason_to_close"
    )
    returned = {
        node.value.value
        for node in ast.walk(reading)
        if isinstance(node, ast.Return) and isinstance(node.value, ast.Constant)
    } - {None}
    assert page == returned | said("close", "engine", "faces", "admin") | {"draining"}
    assert "slow_consumer" not in texts("engine", "faces"), (
        "the page says that it is sent only when somebody asks for it"
    )


def test_the_limits_and_their_defaults_are_those_of_the_code():
    table = section("7. Discovery").split("| limit |")[1]
    found: dict[str, str] = {}
    for line in table.splitlines()[2:]:
        if line.startswith("|"):
            names, values = (part.strip() for part in line.split("|")[1:3])
            found |= dict(zip(re.findall(r"`([a-z_]+)`", names), values.split(", "), strict=True))
    limits = Limits()
    assert found == {name: str(getattr(limits, name) or "null") for name in discovery._LIMITS}
    assert f"headers above {limits.header_bytes // 1024} KiB" in PAGE


def test_the_headers_of_the_page_are_those_of_the_code():
    """What a browser may send and read, and every other header that is named in the one or the other."""
    last = section("8. Limits and security")
    for names, stands in ((cors._ALLOWED, "allows"), (cors._EXPOSED, "can be read")):
        assert stands in last
        assert set(names.split(", ")) <= set(re.findall(r"`([A-Za-z-]+)`", last))
    named = {
        name.lower()
        for name in re.findall(r"`((?:[A-Z][A-Za-z]*-)+[A-Za-z]+|ETag|Location|Allow|Accept|Origin)[`:]", PAGE)
    }
    code = {text.lower() for text in texts("faces", ".")}
    assert not {name for name in named if name not in code and not any(name in text.split(", ") for text in code)}
    sent = {
        text for text in texts("faces") if re.fullmatch(r"(?:[A-Z][a-z]+-)+[A-Z][A-Za-z]+|ETag|Location|Allow", text)
    }
    about_browsers = {text for text in sent if text.startswith("Access-Control-")}
    assert {text for text in sent - about_browsers - {"Content-Type", "Content-Length"} if text not in PAGE} == set()


def test_the_parameters_of_the_page_are_those_of_the_code():
    code = said("parameter", "faces") | said("parameters", "faces") | said("number", "faces")
    assert code == {"after", "limit", "wait_ms", "names", "idempotency_key"}
    assert code <= WORDS


def test_the_close_codes_of_the_page_are_those_of_the_code():
    code = {
        socket_messages.NORMAL,
        socket_messages.GOING,
        socket_messages.BAD_MESSAGE,
        *socket_messages._CLOSE_CODES.values(),
    }
    page = {int(number) for number in re.findall(r"\b(1[01]\d\d|4\d\d\d)\b(?! s)", section("6. WebSocket"))}
    assert page == code
    assert set(socket_messages._CLOSE_CODES) | {"invalid_request"} <= set(CODES)


def test_the_messages_of_a_socket_are_on_the_page():
    sent = said("told", "faces") | said("refused_text", "faces") | {"started", "event"}
    assert sent <= {"closing", "heartbeat", "resume_ok", "resume_rejected", "error", "started", "event"}
    taken = {"start", "resume", "auth", "cancel", "applied"}
    assert taken <= texts("faces")
    for word in sent | taken | {"resume_rejected"}:
        assert re.search(rf"`{word}\b", section("6. WebSocket")), word


async def test_the_example_of_a_stream_is_what_is_sent(sites):
    """The same fields in the same order, and the same members; only what a run brings is another."""
    site = await sites(QUICK)
    run = await site.settled()
    body = (await site.attach(run["id"]).rest()).decode().split("\n\n")
    example = section("4. Streaming").split("```")[1].strip("\n").split("\n\n")
    sent = [body[0], next(block for block in body if "message.delta" in block)]
    assert len(example) == 2
    for shown, real in zip(example, sent, strict=True):
        assert _form(shown.replace("{…}", "{}")) == _form(real)


def _form(block: str) -> list[object]:
    fields = [line.partition(": ") for line in block.split("\n")]
    return [
        list(json.loads(value)) if name == "data" else (name, value if name != "id" else "")
        for name, _, value in fields
    ]


def test_every_section_that_the_code_refers_to_is_there():
    headings = set(re.findall(r"^## (\d)\.", PAGE, re.MULTILINE))
    assert headings == set("12345678")
    for path in (*CODE.rglob("*.py"), *(ROOT / "client" / "reattach").rglob("*.py"), ROOT / "mockserver" / "README.md"):
        for found in re.findall(r"PROTOCOL(?:\.md)?`?,? sections? ([\d, and]+)", path.read_text(encoding="utf-8")):
            assert set(re.findall(r"\d", found)) <= headings, path


def _members(value):
    match value:
        case dict():
            inner = (_members(each) for name, each in value.items() if name not in ("arguments", "result", "metadata"))
            return set(value).union(*inner)
        case list():
            return set().union(*map(_members, value))
        case _:
            return set()
