"""Continuing a paused run: whether the answers fit, and what the new run begins with.

Pure: the paused run as the log holds it, the answers, and what the run plays go in. The log judges the state of the pause
once more, inside the transaction that creates the continuation. Never here: the form of a request, storage.

Where the rules come from: PROTOCOL, section 5. Checked by tests/mockserver/test_continue.py.
"""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from reattach_mockserver.engine.work import Asking, Work, is_work, release_of_work
from reattach_mockserver.logs.base import Answers, NotAnswered, RunRecord
from reattach_mockserver.logs.pause import answered, pause_of, release_of, resolution_by, responses_of
from reattach_mockserver.scenarios.expand import Decision, ask_at
from reattach_mockserver.scenarios.recording import Recording
from reattach_mockserver.scenarios.script import Action, Script
from reattach_mockserver.settings import Playable

Response: TypeAlias = dict[str, Any]
"""One answer as it was sent: `action_id`, and `decision`, `result` or `error`."""

_WHY = {
    "not_paused": "the run does not wait for anything",
    "action_resolved": "what the run waited for has been resolved otherwise",
    "action_expired": "the pause has expired; a new run in its session leaves it",
}
_NUMBERED = re.compile(r"(.*?)([0-9]{1,9})", re.DOTALL)


class NotContinued(Exception):
    """A continuation was refused; `code` is the protocol's word for why, `members` what the problem also carries."""

    def __init__(self, code: str, detail: str, **members: Any) -> None:
        super().__init__(f"{code}: {detail}")
        self.code = code
        self.detail = detail
        self.members = members


@dataclass(frozen=True, slots=True)
class Opening:
    """An event that a run begins with, under its step; `release`: the run's from then on."""

    step: str
    type: str
    data: dict[str, Any]
    release: str | None = None


@dataclass(frozen=True, slots=True)
class Approved:
    """A call that was approved, under the operation id that it was asked for with."""

    tool: str
    arguments: dict[str, Any]
    operation_id: str


def judge(paused: RunRecord, responses: Sequence[Response], answers: Answers, playable: Playable | None) -> None:
    """Find out that the responses continue the run, or are those that it was continued with.

    `playable` is what the paused run played, as it is now; None if it is there no more.

    Raises:
        NotContinued: They do not.
    """
    if paused.status != "requires_action":
        raise _not_answered("not_paused", paused)
    actions = {action["id"]: action for action in _actions(paused)}
    given = {response["action_id"]: response for response in responses}
    for action_id in actions.keys() & given.keys():
        if ("decision" in given[action_id]) == (actions[action_id]["kind"] == "client_tool"):
            kind = actions[action_id]["kind"]
            raise NotContinued("invalid_request", f"the response to {action_id!r} is not one to {kind!r}")
    rest = [action_id for action_id in actions if action_id not in given]
    if rest:
        raise NotContinued("actions_unanswered", f"{len(rest)} actions have no answer", action_ids=rest)
    unknown = [action_id for action_id in given if action_id not in actions]
    if unknown:
        raise NotContinued("action_unknown", f"the run waits for no {unknown[0]!r}", action_ids=unknown)
    try:
        after = answered(paused, "", answers)
    except NotAnswered as refused:
        raise not_continued(refused, paused) from refused
    if after is not None:
        _check_fresh(paused, given, answers.at, playable)


def not_continued(refused: NotAnswered, paused: RunRecord) -> NotContinued:
    """Say what the log found."""
    return _not_answered(refused.code, paused)


def _not_answered(code: str, paused: RunRecord) -> NotContinued:
    members = {} if paused.continued_by is None else {"continued_by": paused.continued_by}
    return NotContinued(code, _WHY[code], **members)


def _check_fresh(paused: RunRecord, given: dict[str, Response], at: int, playable: Playable | None) -> None:
    """Find out that what was approved is still what would be done, by the release that asked for it."""
    approved = [action for action in _actions(paused) if given[action["id"]].get("decision") == "approve"]
    asked = _actions_of_work(paused, playable) if is_work(playable) else _asked(paused, playable)
    if asked is None:
        every = [action["id"] for action in _actions(paused)]
        raise NotContinued("approval_stale", "what the run asked for is part of its scenario no more", action_ids=every)
    release = (release_of_work(playable) if is_work(playable) else None) or release_of(paused, at)
    if release != paused.release:
        stale, why = approved, f"release {release!r} has taken over since the approval was asked for"
    else:
        stale = [action for action in approved if not _is_asked(action, asked)]
        why = "what was asked for is not what would be done now"
    if stale:
        ids = [action["id"] for action in stale]
        raise NotContinued("approval_stale", why, action_ids=ids, release=release)


def _actions_of_work(paused: RunRecord, work: Work) -> Sequence[Action]:
    """Return what a plug-in paused for, as far as it would still do it."""
    still = work.asks if isinstance(work, Asking) else lambda action: True
    return tuple(
        Action(id=action["id"], tool=action["tool"], kind=action["kind"], arguments=action["arguments"])
        for action in _actions(paused)
        if still(action)
    )


def _asked(paused: RunRecord, playable: Playable | None) -> Sequence[Action] | None:
    pause = pause_of(paused)
    if isinstance(playable, Recording):
        return playable.ending.actions or None
    if not isinstance(playable, Script) or pause is None:
        return None
    try:
        return ask_at(playable, pause.path).actions
    except KeyError:
        return None


def _is_asked(action: dict[str, Any], asked: Iterable[Action]) -> bool:
    return any(
        (now.id, now.kind, now.tool, dict(now.arguments))
        == (action["id"], action["kind"], action["tool"], action["arguments"])
        for now in asked
    )


def _actions(paused: RunRecord) -> list[dict[str, Any]]:
    actions: list[dict[str, Any]] = json.loads(paused.outcome or "{}").get("required_actions", [])
    return actions


def openings(paused: RunRecord) -> tuple[Opening, ...]:
    """Return what the continuation of an answered run begins with, after its `run.created`."""
    given = {response["action_id"]: response for response in responses_of(paused)}
    found = [
        Opening(
            f"resolved.{index}",
            "action.resolved",
            {"action_id": action["id"], "source_run_id": paused.id, "response": given[action["id"]]},
        )
        for index, action in enumerate(_actions(paused))
        if action["id"] in given
    ]
    release = release_of(paused, paused.resolved_at or 0)
    if release is not None and release != paused.release:
        found.append(Opening("release", "release.changed", {"release": release}, release))
    return tuple(found)


def approvals(paused: RunRecord) -> tuple[Approved, ...]:
    """Return the calls that were approved."""
    said = {response["action_id"]: resolution_by(response) for response in responses_of(paused)}
    return tuple(
        Approved(action["tool"], action["arguments"], action["operation_id"])
        for action in _actions(paused)
        if said.get(action["id"]) == "approved"
    )


def decision_of(paused: RunRecord) -> Decision:
    """Return which of an ask's lists the continuation plays: `rejected` if one action was."""
    words = [resolution_by(response) for response in responses_of(paused)]
    return "rejected" if "rejected" in words else "approved"


def next_release(release: str | None) -> str:
    """Name the release that takes over from this one: `r2` after none, `r3` after it."""
    numbered = _NUMBERED.fullmatch(release or "r1")
    return f"{release}.2" if numbered is None else f"{numbered[1]}{int(numbered[2]) + 1}"
