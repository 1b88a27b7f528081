"""The control reader: the server's own record of the run, read past the gate and without the client.

JSON pages over a plain HTTP connection while the server runs; the ledger of side effects and the number of runs from the log's file
when it has ended. An event's text is cut out of the page as it stands there, so that its bytes can be compared.

Checked by tests/chaos/demo/test_server_log.py.
"""

import http.client
import json
import sqlite3
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, urlsplit

from reattach_chaos.demo.showing import Logged

TIMEOUT_S = 10.0
PAGE = 1000


class LogUnreadable(Exception):
    """The server's log could not be read: nothing can be judged."""


@dataclass(frozen=True, slots=True)
class Ledger:
    """What the server did in all: its runs, and (run id, operation id) of each side effect."""

    runs: int
    effects: tuple[tuple[str, str], ...]

    def effects_of(self, run_id: str) -> tuple[str, ...]:
        """Return the operation ids of one run's side effects."""
        return tuple(operation for run, operation in self.effects if run == run_id)


def read_log(url: str, run_id: str) -> list[Logged]:
    """Return all events of the run, in order.

    Raises:
        LogUnreadable: No answer, a refusal, or pages with a hole.
    """
    path = f"/v1/runs/{quote(run_id, safe='')}/events?limit={PAGE}"
    events: list[Logged] = []
    target = path
    try:
        while texts := raw_events(body := _get(url, target)):
            events += map(Logged.read, texts)
            target = f"{path}&after={quote(json.loads(body)['next'], safe='')}"
    except (ValueError, KeyError) as error:
        raise LogUnreadable(f"the server's log could not be read: {error!r}") from error
    if [event.sequence for event in events] != list(range(1, len(events) + 1)):
        raise LogUnreadable("the server's own log has a hole")
    return events


def read_status(url: str, run_id: str) -> str:
    """Return the run's status word.

    Raises:
        LogUnreadable: No answer, or a refusal.
    """
    try:
        return str(json.loads(_get(url, f"/v1/runs/{quote(run_id, safe='')}"))["status"])
    except (ValueError, KeyError) as error:
        raise LogUnreadable(f"the run's status could not be read: {error!r}") from error


def _get(url: str, target: str) -> str:
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=TIMEOUT_S)
    try:
        connection.request("GET", target, headers={"Accept": "application/json"})
        answer = connection.getresponse()
        body = answer.read().decode()
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise LogUnreadable(f"the server did not answer to {target}: {error!r}") from error
    finally:
        connection.close()
    if answer.status != 200:
        raise LogUnreadable(f"HTTP {answer.status} to {target} ({body[:120]})")
    return body


def raw_events(page: str) -> list[str]:
    """Return the JSON texts of a page's events, each exactly as it stands there.

    Raises:
        ValueError: Not a page.
    """
    try:
        return _cut_out(page)
    except (json.JSONDecodeError, IndexError) as error:
        raise ValueError(f"not a page: {error}") from error


def _cut_out(page: str) -> list[str]:
    decoder = json.JSONDecoder()
    at = _skip(page, 0, "{")
    while True:
        name, at = decoder.raw_decode(page, _skip(page, at))
        at = _skip(page, _skip(page, at, ":"))
        if name == "events":
            break
        _, at = decoder.raw_decode(page, at)
        at = _skip(page, at, ",")
    texts: list[str] = []
    at = _skip(page, at, "[")
    while page[_skip(page, at)] != "]":
        start = _skip(page, at)
        _, at = decoder.raw_decode(page, start)
        texts.append(page[start:at])
        at = _skip(page, at)
        if page[at] == ",":
            at += 1
    return texts


def _skip(page: str, at: int, wanted: str = "") -> int:
    """Return the place after white space, and after `wanted`, which must be there."""
    while page[at : at + 1] in (" ", "\t", "\r", "\n"):
        at += 1
    if page[at : at + len(wanted)] != wanted or at >= len(page):
        raise ValueError(f"not a page: {wanted!r} was expected at {at}")
    return at + len(wanted)


def read_ledger(path: Path) -> Ledger:
    """Return what the log's file holds, after the server's end.

    Raises:
        LogUnreadable: The file is no log.
    """
    try:
        connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=TIMEOUT_S)
        try:
            (runs,) = connection.execute("SELECT count(*) FROM runs").fetchone()
            rows = connection.execute("SELECT run_id, operation_id FROM effects ORDER BY rowid").fetchall()
        finally:
            connection.close()
    except sqlite3.Error as error:
        raise LogUnreadable(f"the server's ledger could not be read: {error}") from error
    return Ledger(runs, tuple(rows))
