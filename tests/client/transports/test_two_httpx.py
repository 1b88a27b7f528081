"""httpx and its continuation httpx2, both installed: ours works beside either, and takes a client or a transport of either.

What the client decides must not depend on a library's classes: the same scripted faults are told as the same facts whoever
carries the bytes. The two share names and not classes; this file alone imports both.
"""

from __future__ import annotations

import ast
import json
import pathlib
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from types import ModuleType
from typing import Any

import anyio
import httpx
import httpx2
import pytest

import reattach
from client_stage import WORDS, Facts
from reattach import errors
from reattach.testing import InlineWriter, Seams, frames
from reattach_mockserver.live import LiveServer

pytestmark = pytest.mark.anyio

HASTY = reattach.Policy(
    give_up_after=20.0, retry_floor=0.01, retry_base=0.01, retry_ceiling=0.02, connect_timeout=10.0, poll_interval=5.0
)
LIBRARIES = pytest.mark.parametrize("library", [httpx, httpx2], ids=["httpx", "httpx2"])


@pytest.fixture(scope="module")
def live() -> Any:
    with LiveServer(scripts={"words": WORDS}) as server:
        yield server


async def followed(client: reattach.AsyncClient, key: str) -> list[str]:
    run = await client.start({"scenario": "words"}, key=key)
    return [event.id async for event in run]


# a caller's client ----------------------------------------------------------------------------------------------------


@LIBRARIES
async def test_a_callers_client_carries_everything_and_stays_the_callers(
    library: ModuleType, live: Any, tmp_path: pathlib.Path, anyio_backend: str
) -> None:
    """Calls and streams go through its hooks and with its headers; closing ours leaves it open and its pool empty."""
    sent: list[Any] = []

    async def hook(request: Any) -> None:
        sent.append(request)

    mine = library.AsyncClient(headers={"X-Team": "billing"}, event_hooks={"request": [hook]}, trust_env=False)
    async with mine:
        async with reattach.AsyncClient(live.url, tmp_path / "runs.db", http_client=mine) as client:
            shown = await followed(client, f"mine-{library.__name__}-{anyio_backend}")
        assert not mine.is_closed
        assert (await mine.get(f"{live.url}/.well-known/reattach")).status_code == 200
    assert [json.loads(body)["id"] for body in live.log(_run_of(sent))] == shown
    kinds = [(request.method, request.headers["accept"]) for request in sent[:3]]
    assert ("POST", "application/json") in kinds
    assert any(accept == "text/event-stream" for _, accept in kinds)
    assert {request.headers["x-team"] for request in sent} == {"billing"}


def _run_of(sent: list[Any]) -> str:
    return next(request.url.path.split("/")[3] for request in sent if request.headers["accept"] == "text/event-stream")


class Cut:
    """A body that breaks after its parts with the library's own error, or ends cleanly."""

    def __init__(self, parts: list[bytes], error: Exception | None) -> None:
        self.parts, self.error = parts, error

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for part in self.parts:
            yield part
        if self.error is not None:
            raise self.error


def transport_of(library: ModuleType, plan: list[str], seen: list[str]) -> Any:
    """Return a transport of the library that answers attaches by a plan, and everything else well."""

    async def answer(request: Any) -> Any:
        seen.append(request.headers.get("last-event-id", "-"))
        if request.headers["accept"] != "text/event-stream":
            seen.pop()
            status = 201 if request.method == "POST" else 200
            return library.Response(status, json=frames.run_json(last=0, status="running"))
        what = plan.pop(0) if plan else "whole"
        if what == "refused":
            raise library.ConnectError("All connection attempts failed")
        if what == "silent":
            raise library.RemoteProtocolError("Server disconnected without sending a response.")
        if what.isdigit():
            return library.Response(int(what), headers={"retry-after": "0"})
        after = int(request.headers.get("last-event-id", "e1.0").partition(".")[2])
        blocks = [frames.attached(after), *[frames.event(number) for number in range(after + 1, 4)]]
        errors_of = {
            "reset": library.ReadError("Connection reset by peer"),
            "short": library.RemoteProtocolError(
                "peer closed connection without sending complete message body (incomplete chunked read)"
            ),
            "fin": None,
        }
        parts, error = (blocks[:2], errors_of[what]) if what in errors_of else ([*blocks, frames.end(4)], None)
        body = Cut(parts, error)
        return library.Response(200, headers={"content-type": "text/event-stream"}, content=aiter(body))

    return library.MockTransport(answer)


PLANS = [
    ["refused", "reset"],
    ["reset", "reset", "short"],
    ["503", "fin", "silent"],
    ["502", "429", "short"],
    ["401"],
    ["fin", "fin"],
]


@pytest.mark.parametrize("plan", PLANS, ids=" ".join)
async def test_no_decision_depends_on_the_librarys_classes(plan: list[str], tmp_path: pathlib.Path) -> None:
    """The same faults, raised as each library's own errors: the same events, attaches, facts and reasons, word for word."""
    told = []
    for library in (httpx, httpx2):
        seen: list[str] = []
        facts = Facts()
        mine = library.AsyncClient(transport=transport_of(library, list(plan), seen))
        async with (
            mine,
            reattach.AsyncClient(
                "http://server.test",
                tmp_path / f"{library.__name__}.db",
                http_client=mine,
                policy=HASTY,
                observer=facts,
                _seams=Seams(writer=InlineWriter),  # each commit has settled before the next read
            ) as client,
        ):
            with anyio.fail_after(30):
                run = await client.start("work", key="k")
                shown = [event.id async for event in run]
        # The loop and the connection are tasks beside each other: which of them is first is the event loop's (trio draws it).
        of_the_loop = [(fact.name, fact.detail, fact.cursor) for fact in facts.told if fact.name == "applied"]
        of_the_run = [
            (fact.name, fact.detail, fact.cursor) for fact in facts.told if fact.name not in ("applied", "stall")
        ]
        told.append((shown, seen, of_the_loop, of_the_run))
    assert len(told[0][0]) == 4
    assert told[0] == told[1]


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (httpx.Client, "blocks"),
        (httpx2.Client, "blocks"),
        (lambda: httpx.AsyncHTTPTransport(), "a transport goes into a client"),
        (lambda: httpx2.MockTransport(lambda request: httpx2.Response(200)), "a transport goes into a client"),
        (object, "is no client"),
    ],
    ids=["httpx.Client", "httpx2.Client", "httpx transport", "httpx2 transport", "object"],
)
def test_what_is_no_asynchronous_client_is_refused_with_the_line_to_write(
    make: Callable[[], Any], says: str, tmp_path: pathlib.Path
) -> None:
    """Before anything is opened; a blocking client would block the loop, a transport alone has nobody to build its requests."""
    with pytest.raises(errors.UsageError, match=says) as caught:
        reattach.AsyncClient("http://127.0.0.1:1", tmp_path / "runs.db", http_client=make())
    assert "AsyncClient(transport=" in str(caught.value)


# beside each other -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "before", ["import httpx2", "import httpx2; httpx2.alias_httpx()"], ids=["beside", "in its place"]
)
def test_our_own_connections_work_beside_httpx2_and_where_it_took_httpxs_name(
    before: str, live: Any, tmp_path: pathlib.Path
) -> None:
    """`alias_httpx()` makes `import httpx` mean httpx2 for the whole process: an application may call it before us."""
    code = f"""{before}
import sys, reattach
with reattach.Client(sys.argv[1], sys.argv[2]) as client:
    run = client.start({{"scenario": "words"}}, key=sys.argv[3])
    print(len(list(run)), run.result(), sys.modules["httpx"].__name__)
"""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code, live.url, str(tmp_path / "runs.db"), f"alias-{len(before)}"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "{'ok': True} " + ("httpx2" if "alias" in before else "httpx") in done.stdout


def test_only_our_own_connections_name_a_library() -> None:
    """What a caller's client passes through, and everything that decides, imports neither: it knows shapes and names."""
    package = pathlib.Path(reattach.__file__).parent
    named = set()
    for path in package.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            if {name.partition(".")[0] for name in names} & {"httpx", "httpx2", "httpcore", "httpcore2"}:
                named.add(path.relative_to(package).as_posix())
    assert named <= {"transports/http.py", "transports/link.py", "transports/proxies.py", "transports/tunnel.py"}, named
    assert not {name for name in named if "2" in name}
