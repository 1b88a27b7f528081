"""The native profile: the reattach protocol, version 1 (mockserver/PROTOCOL.md).

Capabilities: integer sequences per run, contiguous from 1, comparable inside an epoch; exclusive cursors `<epoch>.<sequence>`;
a predecessor's id on each event; 410 for what is gone; idempotent create; snapshots at a stated boundary. Position and identity
come from the event's JSON; the frame's id is only a hint, but one that contradicts its event is no event of this protocol.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote, unquote

from reattach.core.fold import (
    ActionDone,
    ActionNeeded,
    ActionsPending,
    Became,
    Change,
    MessageDone,
    MessageGrew,
    Released,
    ToolAnswered,
    ToolCalled,
)
from reattach.core.messages import By, Mark, Refusal
from reattach.core.pause import Pair
from reattach.core.payload import instant, run_id_good
from reattach.model import Event, Operation, Outcome, Status
from reattach.profiles import native_acting
from reattach.profiles.base import Call, Created, Listed, Page, Reading, Unreadable
from reattach.profiles.native_pages import page_of
from reattach.profiles.native_reader import NativeReader
from reattach.profiles.native_refusals import refusal_of
from reattach.profiles.native_socket import NativeSocket
from reattach.profiles.native_values import (
    CURSOR,
    SETTLING,
    action,
    actions,
    json_object,
    maybe,
    outcome,
    quoted,
    replaced,
    required_text,
    status_word,
    stored_text,
)

PAGE = 1_000  # events; the most that the protocol allows
LARGEST = 2**63  # what a journal can keep as a whole number lies below


class Native:
    """The reattach protocol, version 1.

    Args:
        keyed: False for a server that takes the key of a create and ignores it: a create whose answer is lost is then never
            repeated, it becomes `AmbiguousOutcome`.
    """

    name = "native"
    contiguous = True
    key_hours = 24.0
    sockets = NativeSocket()
    ways: tuple[By, ...] = ("stream", "longpoll", "poll")
    replays = True

    def __init__(self, *, keyed: bool = True) -> None:
        self.keyed = keyed

    # requests ------------------------------------------------------------------------------------------------

    def create(self, request: Mapping[str, Any], key: str) -> Call:
        """Return the create with its key."""
        return Call("POST", "/v1/runs", {"Idempotency-Key": key}, request)

    def lookup(self, key: str) -> Call | None:
        """Return the search for a run by the key of its create."""
        return None if not self.keyed else Call("GET", f"/v1/runs?idempotency_key={quote(key, safe='')}")

    def retention(self) -> Call:
        """Return the read of what the server declares."""
        return Call("GET", "/.well-known/reattach")

    def place(self, cursor: str) -> tuple[str, int] | None:
        """Return a cursor's epoch and sequence."""
        match = CURSOR.match(cursor)
        return (match[1], int(match[2])) if match else None

    def attach(self, run_id: str, after: str | None) -> Call:
        """Return the stream request; a cursor goes into the header, `earliest` into the query as the protocol wants it."""
        headers = {"Accept": "text/event-stream", "Cache-Control": "no-store"}
        path = f"/v1/runs/{quote(run_id, safe='')}/events"
        if after == "earliest":
            return Call("GET", f"{path}?after=earliest", headers)
        return Call("GET", path, headers if after is None else {**headers, "Last-Event-ID": after})

    def page(self, run_id: str, after: str | None, wait: float) -> Call:
        """Return the request for the next page."""
        asked = "" if after is None else f"&after={quote(after, safe='')}"
        path = f"/v1/runs/{quote(run_id, safe='')}/events?limit={PAGE}&wait_ms={round(wait * 1000)}{asked}"
        return Call("GET", path, {"Cache-Control": "no-store"})

    def paged(self, run_id: str, after: str | None, body: bytes, *, first: bool) -> Page:
        """Read a page."""
        return page_of(after, body, first=first)

    def status(self, run_id: str) -> Call:
        """Return the status read."""
        return Call("GET", f"/v1/runs/{quote(run_id, safe='')}")

    def snapshot(self, run_id: str) -> Call:
        """Return the snapshot read."""
        return Call("GET", f"/v1/runs/{quote(run_id, safe='')}/snapshot")

    def cancel(self, run_id: str) -> Call:
        """Return the request to cancel."""
        return Call("POST", f"/v1/runs/{quote(run_id, safe='')}/cancel")

    def continuation(self, run_id: str, answers: Sequence[Pair]) -> Mapping[str, Any]:
        """Return the body of the create that answers a paused run."""
        return native_acting.continuation(run_id, answers)

    def operation(self, operation_id: str) -> Call:
        """Return the question what the authority knows of an effect."""
        return Call("GET", f"/v1/operations/{quote(operation_id, safe='')}")

    def session_runs(self, session_id: str, after: str | None) -> Call:
        """Return the read of one page of a session's runs."""
        query = "" if after is None else f"?after={quote(after, safe='')}"
        return Call("GET", f"/v1/sessions/{quote(session_id, safe='')}/runs{query}")

    # answers -------------------------------------------------------------------------------------------------

    def retention_told(self, body: bytes) -> float | None:
        """Read for how many hours keys are remembered. No limit is no promise: it may be a server that forgets all at once."""
        return native_acting.retention_told(body)

    def operation_told(self, operation_id: str, body: bytes) -> Operation:
        """Read an operation."""
        return native_acting.operation_told(operation_id, body)

    def session_told(self, body: bytes) -> tuple[tuple[Listed, ...], str | None]:
        """Read a page of a session's runs."""
        return native_acting.session_told(body)

    def created(self, status: int, headers: Mapping[str, str], body: bytes) -> Created:
        """Read the run of a create's answer; its id is in `Location` already, should the body be cut or odd."""
        replayed = headers.get("idempotency-replayed", "").lower() == "true"
        try:
            run = json_object(body.decode("utf-8", "replace"))
            if not run_id_good(run.get("id")):
                raise ValueError("no id")  # or one that neither a journal nor a path could carry
            return Created(run["id"], stored_text(run, "session_id"), status_word(run.get("status")), replayed)
        except ValueError as error:
            match = re.search(r"/runs/([^/?#]+)$", headers.get("location", ""))
            if match and run_id_good(unquote(match[1])):
                return Created(unquote(match[1]), None, Status.UNKNOWN, replayed)
            raise Unreadable(f"a create's answer without a run ({quoted(body)})") from error

    def found(self, body: bytes) -> Created | None:
        """Read the answer of `lookup`."""
        try:
            runs = json_object(body.decode("utf-8", "replace")).get("runs")
            if not isinstance(runs, list):
                raise ValueError("no runs")
            return self.created(200, {}, json.dumps(runs[0]).encode()) if runs else None
        except ValueError as error:
            raise Unreadable(f"an answer without runs ({quoted(body)})") from error

    def reading(self, run_id: str, body: bytes) -> Reading:
        """Read a run. An unknown status word is `unknown`, never an end."""
        try:
            run = json_object(body.decode("utf-8", "replace"))
            if run.get("id") != run_id:
                raise ValueError("another run")
        except ValueError as error:
            raise Unreadable(f"a status that is no run ({quoted(body)})") from error
        status = status_word(run.get("status"))
        head = run.get("last_sequence")
        epoch = run.get("epoch")
        settled = outcome(run_id, status, run, "status") if status.settled else None
        created = run.get("created_at")
        return Reading(
            status,
            epoch if isinstance(epoch, str) else None,
            head if type(head) is int else None,
            settled,
            stored_text(run, "session_id"),
            instant(created) if isinstance(created, str) else None,
            stored_text(run, "continued_by"),
        )

    def boundary(self, run_id: str, body: bytes) -> tuple[Mark, Any]:
        """Read a snapshot and the cursor that it is valid at."""
        try:
            state = json_object(body.decode("utf-8", "replace"))
            sequence, epoch, cursor = (
                state.get("sequence"),
                required_text(state, "epoch"),
                required_text(state, "cursor"),
            )
            if type(sequence) is not int or not 0 <= sequence < LARGEST:
                raise ValueError("no sequence")
            if self.place(cursor) != (epoch, sequence):
                raise ValueError("a cursor of another place")  # it would be sent back for ever
            mark = Mark(0, epoch, sequence, stored_text(state, "cursor_id"), cursor)
        except ValueError as error:
            raise Unreadable(f"a snapshot without its boundary ({quoted(body)})") from error
        return mark, state

    def refusal(self, status: int, headers: Mapping[str, str], body: bytes) -> Refusal:
        """Sort by the problem's code where there is one, else by the status."""
        return refusal_of(status, headers, body)

    def reader(self, run_id: str) -> NativeReader:
        """Return a reader for one subscription."""
        return NativeReader(run_id)

    # meaning -------------------------------------------------------------------------------------------------

    def changes(self, event: Event) -> tuple[Change, ...]:
        """Return what an event does to the view. Members that are missing or odd change nothing."""
        if event.gap is not None:
            return (replaced(event.gap.snapshot),) if isinstance(event.gap.snapshot, dict) else ()
        data = event.data
        if not isinstance(data, dict):
            return ()
        match event.type:
            case "message.delta":
                return (MessageGrew(str(data.get("message_id")), str(data.get("text") or "")),)
            case "message.completed":
                text = str(data.get("text") or "")
                return (MessageDone(str(data.get("message_id")), str(data.get("role") or "assistant"), text),)
            case "tool.call":
                called = str(data.get("call_id"))
                return (
                    ToolCalled(called, str(data.get("tool") or ""), data.get("arguments"), maybe(data, "operation_id")),
                )
            case "tool.result":
                result = {"error": data["error"]} if "error" in data else data.get("result")
                return (ToolAnswered(str(data.get("call_id")), result),)
            case "action.required" if isinstance(data.get("action"), dict):
                return (ActionNeeded(action(data["action"])),)
            case "action.resolved":
                return (ActionDone(str(data.get("action_id"))),)
            case "release.changed" if isinstance(data.get("release"), str):
                return (Released(data["release"]),)
            case "run.started":
                return (Became(Status.RUNNING),)
            case "run.created":
                return (Became(Status.QUEUED),)
            case "run.paused":
                return (ActionsPending(actions(data.get("required_actions"))), Became(Status.REQUIRES_ACTION))
            case "run.completed" | "run.failed" | "run.cancelled":
                return (Became(SETTLING[event.type]),)
            case _:
                return ()

    def settled(self, run_id: str, event: Event) -> Outcome | None:
        """Return the outcome that a settling event tells."""
        status = SETTLING.get(event.type)
        return None if status is None else outcome(run_id, status, event.data, "event")
