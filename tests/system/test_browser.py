"""A browser, and nothing of ours in it: its own EventSource over a bad connection, its own fetch from another origin."""

import json
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

import httpx
import pytest

from browser_stage import SHOP, CuttingRelay, launched, open_page
from reattach_mockserver.bearer import parse_tokens
from reattach_mockserver.library import Library
from reattach_mockserver.live import LiveServer
from reattach_mockserver.scenarios.script import Say, Script, Status, Tool
from reattach_mockserver.settings import Settings

if TYPE_CHECKING:
    from playwright.sync_api import Browser

PATIENCE = 60.0

TALK = Script(
    name="talk",
    steps=(
        Say(text="Grüße 🙂 aus\u2028Köln, und noch ein paar Worte", every_ms=5),
        Tool(tool="t", result=1),
        Status(text="fertig"),
    ),
)

FOLLOW = """url => {
  window.seen = []; window.attached = 0; window.errors = 0;
  const source = window.source = new EventSource(url);
  source.addEventListener("stream.attached", () => attached++);
  source.onmessage = ({lastEventId, data}) => seen.push({id: lastEventId, data});
  source.onerror = () => errors++;
}"""

FETCH = """async ({base, token}) => {
  const call = (path, init = {}) => fetch(base + path, {...init, headers: {Authorization: `Bearer ${token}`, ...init.headers}});
  const streamed = async (path, cursor, most) => {
    const ending = new AbortController();
    const headers = {Accept: "text/event-stream", ...(cursor ? {"Last-Event-ID": cursor} : {})};
    const answer = await call(path, {headers, signal: ending.signal});
    const ids = [];
    let text = "";
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let part; ids.length < most && !(part = await reader.read()).done;) {
      text += part.value;
      const blocks = text.split("\\n\\n");
      text = blocks.pop();
      for (const block of blocks) {
        const id = /^id: (.*)$/m.exec(block);
        if (id && ids.length < most) ids.push(id[1]);
      }
    }
    ending.abort();
    return ids;
  };
  const made = await call("/v1/runs", {
    method: "POST", body: JSON.stringify({input: "x"}),
    headers: {"Content-Type": "application/json", "Idempotency-Key": "from-a-page"},
  });
  const place = made.headers.get("Location");
  const first = await streamed(place + "/events", null, 3);
  const rest = await streamed(place + "/events", first[2], 1000);
  const run = await call(place);
  const known = await call(place, {cache: "no-store", headers: {"If-None-Match": run.headers.get("ETag")}});
  const again = await call("/v1/runs", {
    method: "POST", body: JSON.stringify({input: "x"}),
    headers: {"Content-Type": "application/json", "Idempotency-Key": "from-a-page"},
  });
  const refused = await fetch(base + place);
  return {
    status: made.status, place, tag: run.headers.get("ETag"), ids: [...first, ...rest], known: known.status,
    replayed: again.headers.get("Idempotency-Replayed"), refused: (await refused.json()).code,
  };
}"""


SOCKET = """({url, token, run_id}) => new Promise((done) => {
  const told = [];
  const socket = new WebSocket(url, "reattach.v1");
  socket.onopen = () => {
    if (token) socket.send(JSON.stringify({type: "auth", token}));
    socket.send(JSON.stringify({type: "resume", run_id, cursor: null}));
  };
  socket.onmessage = ({data}) => told.push(data);
  socket.onclose = ({code}) => done({code, told, protocol: socket.protocol});
})"""


@pytest.fixture(scope="module")
def browser() -> Iterator["Browser"]:
    with launched() as running:
        yield running


@pytest.fixture
def server() -> Iterator[LiveServer]:
    with LiveServer(scripts={"talk": TALK}) as running:
        yield running


def test_its_event_source_follows_a_run_through_cuts_and_ends_by_itself(server: LiveServer, browser: "Browser") -> None:
    """RS-12, RS-16, RS-82, B49: cut in the first block, before an id, inside an event: it comes back with the last id that it has.

    Every event once, in order; a cut is an error to it and no end, and what ends it is the 204 at the end of the settled run.
    """
    key = {"Idempotency-Key": "k"}
    run = httpx.post(f"{server.url}/v1/runs", json={"input": "x"}, headers=key, trust_env=False).json()
    shown = threading.Event()
    relaying = CuttingRelay(server.url, cuts=[330, 1_100, 620], held={1: shown})
    with relaying as relay, open_page(browser, PATIENCE) as page:
        page.goto(f"{relay.url}/.well-known/reattach")  # a page of this machine: without tokens no other may read
        page.evaluate(FOLLOW, f"{relay.url}/v1/runs/{run['id']}/events?names=off")
        page.wait_for_function("seen.length > 0")
        shown.set()
        page.wait_for_function("source.readyState === EventSource.CLOSED")
        seen, errors = page.evaluate("[seen, errors]")
        asked = list(relay.asked)
    log = [text.decode() for text in server.log(run["id"])]
    assert [each["data"] for each in seen] == log
    assert [each["id"] for each in seen] == [f"{run['epoch']}.{number}" for number in range(1, len(log) + 1)]
    assert json.loads(log[-1])["type"] == "run.completed"
    assert [each.path for each in asked] == [f"/v1/runs/{run['id']}/events?names=off"] * 5
    assert asked[0].cursor is None
    assert asked[-1].cursor == f"{run['epoch']}.{len(log)}", (
        "it asked once more after the end, and was answered with 204"
    )
    cursors = [int(each.cursor.rpartition(".")[2]) for each in asked if each.cursor]
    assert cursors == sorted(cursors)
    assert 1 < len(set(cursors)) <= 4
    assert errors == 5
    assert server.counts.runs == 1


def test_a_page_of_another_origin_creates_follows_and_resumes_by_fetch_with_a_token(browser: "Browser") -> None:
    """RS-82: preflights pass without the token, headers that a client needs can be read, a refusal too; without a token nothing."""
    settings = Settings(scripts=Library({"talk": TALK}), default="talk", tokens=parse_tokens(["alice secret"]))
    with LiveServer(settings) as server, open_page(browser, PATIENCE) as page:
        told = page.evaluate(FETCH, {"base": server.url, "token": "secret"})
        run_id = told["place"].rpartition("/")[2]
        log = server.log(run_id)
    assert page.url == f"{SHOP}/"
    assert told["status"] == 201
    assert [int(each.rpartition(".")[2]) for each in told["ids"]] == list(range(1, len(log) + 1))
    assert (told["known"], told["replayed"], told["refused"]) == (304, "true", "unauthenticated")
    assert told["tag"]


def test_without_tokens_a_page_of_another_origin_reads_nothing_and_makes_nothing(
    server: LiveServer, browser: "Browser"
) -> None:
    """B56: a developer's server is not to be read by whatever page is open beside it; not by its EventSource either."""
    key = {"Idempotency-Key": "k"}
    run = httpx.post(f"{server.url}/v1/runs", json={"input": "x"}, headers=key, trust_env=False).json()
    with open_page(browser, PATIENCE) as page:
        refused = page.evaluate(
            """async base => {
              const failed = async (...args) => { try { await fetch(...args); return false; } catch { return true; } };
              const headers = {"Content-Type": "application/json", "Idempotency-Key": "evil"};
              return [await failed(base), await failed(base, {method: "POST", body: '{"input":"x"}', headers})];
            }""",
            f"{server.url}/v1/runs",
        )
        page.evaluate(FOLLOW, f"{server.url}/v1/runs/{run['id']}/events?names=off")
        page.wait_for_function("source.readyState === EventSource.CLOSED")
        seen = page.evaluate("seen")
    assert refused == [True, True]
    assert seen == []
    assert server.counts.runs == 1


def test_its_own_web_socket_follows_a_run_with_a_token_in_its_first_message(browser: "Browser") -> None:
    """A browser can set no header there; from another origin, to the settling event and the close that means the end."""
    settings = Settings(scripts=Library({"talk": TALK}), default="talk", tokens=parse_tokens(["alice secret"]))
    with LiveServer(settings) as server, open_page(browser, PATIENCE) as page:
        key = {"Idempotency-Key": "k", "Authorization": "Bearer secret"}
        run = httpx.post(f"{server.url}/v1/runs", json={"input": "x"}, headers=key, trust_env=False).json()
        url = f"ws{server.url.removeprefix('http')}/v1/socket"
        found = page.evaluate(SOCKET, {"url": url, "token": "secret", "run_id": run["id"]})
        refused = page.evaluate(SOCKET, {"url": url, "token": "wrong", "run_id": run["id"]})
        log = [text.decode() for text in server.log(run["id"])]
    first, *events = found["told"]
    assert (json.loads(first)["type"], found["code"], found["protocol"]) == ("resume_ok", 1000, "reattach.v1")
    assert events == [
        f'{{"type":"event","cursor":"{run["epoch"]}.{number}","event":{text}}}' for number, text in enumerate(log, 1)
    ]
    assert (refused["code"], [json.loads(text)["code"] for text in refused["told"]]) == (1008, ["unauthenticated"])


def test_without_tokens_its_web_socket_opens_for_pages_of_this_machine_only(
    server: LiveServer, browser: "Browser"
) -> None:
    """No preflight guards a socket: the server refuses the upgrade itself."""
    key = {"Idempotency-Key": "k"}
    run = httpx.post(f"{server.url}/v1/runs", json={"input": "x"}, headers=key, trust_env=False).json()
    asked = {"url": f"ws{server.url.removeprefix('http')}/v1/socket", "token": None, "run_id": run["id"]}
    with open_page(browser, PATIENCE) as page:
        stranger = page.evaluate(SOCKET, asked)
        page.goto(f"{server.url}/.well-known/reattach")
        ours = page.evaluate(SOCKET, asked)
    assert (stranger["code"], stranger["told"]) == (1006, [])
    assert (ours["code"], len(ours["told"])) == (1000, 1 + len(server.log(run["id"])))
