"""What a `MemoryServer` does with pauses, sessions and operations, as protocol.md, 2 and 5 describe it.

Written from the protocol, not from the client. It knows no connection and no time; the server performs what it decides.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Literal

from reattach.testing.answers import CallAnswer, refused, told
from reattach.testing.model_run import ModelRun

PAGE = 100


class Acting:
    """The runs of a server as sessions and continuations connect them.

    Args:
        runs: The server's runs by their ids, oldest first.
        keys: Whether the key of a create is honoured, or taken and ignored, as a bad server does it.
    """

    def __init__(self, runs: dict[str, ModelRun], keys: Literal["honoured", "ignored"]) -> None:
        self.operations: dict[str, Mapping[str, Any]] = {}
        """What the authority knows, by operation id."""
        self.stale: set[str] = set()
        """Actions whose approval is stale: what it was asked for has changed."""
        self._runs = runs
        self._keys = keys
        self._answered: dict[str, ModelRun] = {}

    def known(self, key: str, body: bytes) -> CallAnswer | None:
        """Return the answer to a create whose key is known, None where it is not."""
        for run in self._runs.values() if self._keys == "honoured" else ():
            if run.key == key:
                return refused(422, "idempotency_conflict") if run.request != body else replayed(run)
        return replayed(self._answered[key]) if key in self._answered else None

    def active(self, session_id: str | None) -> ModelRun | None:
        """Return the session's run that has not settled."""
        runs = [run for run in self._runs.values() if run.session_id == session_id and not run.settled]
        return runs[0] if runs else None

    def answers(self, key: str, body: Mapping[str, Any]) -> CallAnswer | ModelRun:
        """Return the paused run that a create goes on from, or what answers the create instead."""
        run = self._runs.get(str(body.get("continues")))
        if run is None:
            return refused(404, "run_not_found")
        if run.status != "requires_action":
            return refused(409, "not_paused")
        given = {each["action_id"]: each for each in body.get("responses", [])}
        if set(given) - set(run.actions):
            return refused(422, "action_unknown")
        if missing := sorted(set(run.actions) - set(given)):
            return refused(422, "actions_unanswered", actions=missing)
        if run.continued_by is not None:
            if given != run.responses:
                return refused(409, "action_resolved", run_id=run.continued_by)
            self._answered[key] = self._runs[run.continued_by]
            return replayed(self._runs[run.continued_by])
        resolutions = {action.get("resolution") for action in run.actions.values()}
        if "expired" in resolutions:
            return refused(409, "action_expired")
        if resolutions != {None}:
            return refused(409, "action_resolved")
        if any(each.get("decision") == "approve" and name in self.stale for name, each in given.items()):
            return refused(409, "approval_stale")
        return run

    def operation(self, operation_id: str) -> CallAnswer:
        """Answer what is known of an operation."""
        known = self.operations.get(operation_id)
        return refused(404, "operation_not_found") if known is None else told({"id": operation_id, **known})

    def session(self, session_id: str, after: str | None) -> CallAnswer:
        """Answer one page of a session's runs."""
        runs = [run for run in self._runs.values() if run.session_id == session_id]
        if not runs:
            return refused(404, "session_not_found")
        names = [run.id for run in runs]
        begin = names.index(after) + 1 if after in names else 0
        page = runs[begin : begin + PAGE]
        more = begin + PAGE < len(runs)
        return told({"runs": [run.told() for run in page], "next": page[-1].id if more else None})


def resolve(run: ModelRun, made: ModelRun, body: Mapping[str, Any]) -> None:
    """Connect a pause and the run that goes on from it: its first events are the answers."""
    made.continues, made.session_id, run.continued_by = run.id, run.session_id, made.id
    run.responses = {each["action_id"]: each for each in body["responses"]}
    for name, response in run.responses.items():
        words = {"approve": "approved", "reject": "rejected"}
        run.actions[name]["resolution"] = words.get(str(response.get("decision")), "answered")
        made.append("action.resolved", {"action_id": name, "source_run_id": run.id, "response": response})


def settle_pauses(runs: Mapping[str, ModelRun], session_id: str | None, resolution: str) -> None:
    """Give what is still pending in a session's pauses a resolution."""
    for run in runs.values():
        if run.session_id == session_id and run.continued_by is None:
            for action in run.actions.values():
                action["resolution"] = action.get("resolution") or resolution


def replayed(run: ModelRun) -> CallAnswer:
    """Return the answer of a create whose run exists."""
    answer = told(run.told())
    return CallAnswer(body=answer.body, headers={**answer.headers, "idempotency-replayed": "true"})


def body_of(body: bytes) -> dict[str, Any]:
    """Return a create's body as an object; an odd one is empty."""
    try:
        value = json.loads(body or b"{}")
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
