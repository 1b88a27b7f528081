"""`Control`: our own hand at the server, past every fault: makes runs, answers what they wait for, and reads what is true.

Plain JSON over HTTP, with nothing of the client's. What it reads becomes the records that all others are compared with. A server of
ours is asked by its admin interface, too: how many runs this case made, and what its tools did.

Checked by tests/chaos/cases/servers/test_control.py.
"""

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import httpx

from reattach_chaos.cases.servers.server import principal_of
from reattach_chaos.demo.server_log import raw_events
from reattach_chaos.history import Logged, bytes_sha256, content_sha256, is_number, is_plain, json_of

SETTLED = frozenset({"completed", "failed", "cancelled", "requires_action"})
SETTLING = {
    "run.completed": "completed",
    "run.failed": "failed",
    "run.cancelled": "cancelled",
    "run.paused": "requires_action",
}
PAGE = 1000
MOST_HEARTBEAT_MS = 86_400_000
"""A day; who promises less often promises nothing."""
_FIRST_POLL_S, _LAST_POLL_S = 0.005, 0.25


class ServerTrouble(Exception):
    """The server did not do what only a broken one would not do: nothing can be judged. Says what was asked, and the answer."""


@dataclass(frozen=True, slots=True)
class Event:
    """One event of the log as the control reader has it; `bytes`: of its JSON text; `widths`: of its characters, above one byte."""

    logged: Logged
    bytes: int
    widths: frozenset[int] = frozenset()


class Control:
    """One case's hand.

    Args:
        http: Shared by all cases.
        url: The server.
        token: Of the case; "" where none is needed.
        admin_url: Of a server of ours.
    """

    def __init__(self, http: httpx.AsyncClient, url: str, token: str, admin_url: str | None = None) -> None:
        self._http = http
        self._url = url.rstrip("/")
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._principal = principal_of(token)
        self._admin_url = admin_url

    @property
    def counts_effects(self) -> bool:
        """Whether it can be asked what the server's tools did."""
        return self._admin_url is not None

    async def create(self, given: Any, key: str) -> dict[str, Any]:
        """Start a run; return it.

        Raises:
            ServerTrouble: It was not started.
        """
        return await self._run("POST", "/v1/runs", {"input": given}, key)

    async def answer(self, paused: Mapping[str, Any], key: str) -> dict[str, Any]:
        """Say yes to all that a paused run waits for; return the run that goes on from it.

        Raises:
            ServerTrouble: The answer was not taken.
        """
        responses = [_yes(action) for action in paused.get("required_actions") or ()]
        return await self._run("POST", "/v1/runs", {"continues": paused["id"], "responses": responses}, key)

    async def status(self, run: str) -> dict[str, Any]:
        """Return a run.

        Raises:
            ServerTrouble: There is no answer, or no such run.
        """
        return await self._run("GET", f"/v1/runs/{quote(run, safe='')}")

    async def settled(self, run: str, limit_s: float) -> dict[str, Any]:
        """Wait until a run has settled; return it.

        Raises:
            ServerTrouble: It has not within so many seconds.
        """
        wait = _FIRST_POLL_S
        try:
            async with asyncio.timeout(limit_s):
                while (told := await self.status(run))["status"] not in SETTLED:
                    await asyncio.sleep(wait)
                    wait = min(2 * wait, _LAST_POLL_S)
                return told
        except TimeoutError:
            raise ServerTrouble(f"run {run} did not settle within {limit_s:g} s") from None

    async def log(self, run: str) -> list[Event]:
        """Return all events of a run, in order.

        Raises:
            ServerTrouble: The log cannot be read.
        """
        path = f"/v1/runs/{quote(run, safe='')}/events?limit={PAGE}"
        target, events = path, list[Event]()
        while True:
            page = await self._get(target)
            try:
                told = json_of(page)
                texts = raw_events(page)
                epoch = str(told.get("epoch") or "")
                events += [_event(text, epoch, run) for text in texts]
                if not texts or events[-1].logged.sequence == told.get("last_sequence"):
                    return events  # the run has settled before: nothing follows
                following = f"{path}&after={quote(told['next'], safe='')}"
            except (ValueError, KeyError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
                raise ServerTrouble(f"the log of run {run} cannot be read: {error!r}") from error
            if following == target:
                raise ServerTrouble(f"the log of run {run} has no end: the page behind {told['next']} leads to itself")
            target = following

    async def effects(self, run: str) -> list[str] | None:
        """Return the operation ids of a run's side effects, one for each time that it was done; None: nobody can be asked."""
        if self._admin_url is None:
            return None
        told = json.loads(await self._fetch("GET", f"{self._admin_url}/runs/{quote(run, safe='')}/effects"))
        return [effect["operation_id"] for effect in told["effects"]]

    async def runs_since(self, number: int) -> tuple[list[tuple[str, str | None]], int] | None:
        """Return (id, key) of the case's runs that have a higher number on the server, and the server's last one."""
        if self._admin_url is None:
            return None
        found: list[tuple[str, str | None]] = []
        last: int | None = number
        while last is not None:
            number = last
            told = json.loads(await self._fetch("GET", f"{self._admin_url}/runs?after={number}"))
            found += [(run["id"], run["key"]) for run in told["runs"] if run["principal"] == self._principal]
            last = told["next"]
            number = max([number, *(run["number"] for run in told["runs"])])
        return found, number

    async def expire(self, run: str, first: int) -> int:
        """Let a server of ours let go of a run's events before `first`; return the first that it still has.

        Raises:
            ServerTrouble: It is none of ours, or did not.
        """
        return int((await self._changed(run, "expire", {"first": first}))["first_sequence"])

    async def new_epoch(self, run: str, keep: int) -> str:
        """Let a server of ours replace a run's log by one that begins with its first `keep` events; return the epoch.

        Raises:
            ServerTrouble: It is none of ours, or did not.
        """
        return str((await self._changed(run, "epoch", {"keep": keep}))["epoch"])

    async def _changed(self, run: str, how: str, body: Mapping[str, Any]) -> dict[str, Any]:
        if self._admin_url is None:
            raise ServerTrouble(f"the log of run {run} cannot be changed on this server")
        told: dict[str, Any] = json.loads(
            await self._fetch("POST", f"{self._admin_url}/runs/{quote(run, safe='')}/{how}", body)
        )
        return told

    async def heartbeat_ms(self) -> float | None:
        """Return what the server promises in its discovery document; None where it has none."""
        try:
            found = json_of(await self._get("/.well-known/reattach"))["limits"]["heartbeat_ms"]
        except (ServerTrouble, ValueError, KeyError, TypeError):
            return None
        return float(found) if type(found) in (int, float) and 0 < found < MOST_HEARTBEAT_MS else None

    async def _run(self, method: str, path: str, body: Any = None, key: str = "") -> dict[str, Any]:
        """Return a run: what others read of it is there."""
        told = await self._call(method, path, body, key)
        texts = [told.get("id"), told.get("status")]
        actions = told.get("required_actions") or []
        if isinstance(actions, list):
            texts += [action.get("id") if isinstance(action, dict) else None for action in actions]
        if not isinstance(actions, list) or not all(isinstance(text, str) and is_plain(text) for text in texts):
            raise ServerTrouble(f"{method} {path} was answered with no run: {json.dumps(told)[:200]}")
        return told

    async def _call(self, method: str, path: str, body: Any = None, key: str = "") -> dict[str, Any]:
        try:
            told = json_of(await self._fetch(method, self._url + path, body, key))
        except ValueError as error:
            raise ServerTrouble(f"{method} {path} was answered with no JSON") from error
        if not isinstance(told, dict):
            raise ServerTrouble(f"{method} {path} was answered with {type(told).__name__}, not an object")
        return told

    async def _get(self, path: str) -> str:
        return await self._fetch("GET", self._url + path)

    async def _fetch(self, method: str, url: str, body: Any = None, key: str = "") -> str:
        headers = {"Accept": "application/json", **(self._headers if url.startswith(self._url) else {})}
        if key:
            headers["Idempotency-Key"] = key
        try:
            answer = await self._http.request(method, url, json=body, headers=headers)
        except httpx.HTTPError as error:
            raise ServerTrouble(f"{method} {url}: {type(error).__name__}: {error}") from error
        if answer.status_code >= 300:
            raise ServerTrouble(f"{method} {url}: HTTP {answer.status_code} {answer.text[:200]}")
        return answer.text


def operations(events: Sequence[Event]) -> set[str]:
    """Return the operations that a log calls for."""
    return {event.logged.operation_id for event in events if event.logged.operation_id is not None}


def _yes(action: Mapping[str, Any]) -> dict[str, Any]:
    if action.get("kind") == "client_tool":
        return {"action_id": action["id"], "result": {"ok": True}}
    return {"action_id": action["id"], "decision": "approve"}


def _event(text: str, epoch: str, run: str) -> Event:
    told = json_of(text)
    type_, data, sequence = str(told["type"]), told.get("data"), int(told["sequence"])
    id_, cursor = str(told["id"]), str(told.get("cursor") or f"{epoch}.{sequence}")
    if not (is_number(sequence) and all(map(is_plain, (type_, id_, cursor, epoch)))):
        raise ValueError(f"event {ascii(id_)[:100]} has a name or a number that cannot be one")
    raw = text.encode()
    calls = type_ == "tool.call" and isinstance(data, dict) and isinstance(data.get("operation_id"), str)
    logged = Logged(
        who="control",
        run=run,
        id=id_,
        cursor=cursor,
        sequence=sequence,
        epoch=epoch,
        type=type_,
        sha256=content_sha256(data),
        wire_sha256=bytes_sha256(raw),
        settles=SETTLING.get(type_),
        operation_id=data["operation_id"] if calls else None,
    )
    return Event(logged, len(raw), frozenset(len(each.encode()) for each in set(text)) - {1})
