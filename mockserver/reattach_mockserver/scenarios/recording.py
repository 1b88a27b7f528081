"""A recorded stream of a real service, as a value; read from JSON lines.

Nothing of an event is changed: `data` is the object of the line, in the order of the file. Beside it
stand what its family found: the visible text, and how the run settles. Nothing here plays, waits or
writes; `replay` plans a recording, so that an engine plays it as it plays a script.

Rules: the project's surface page, "Files", Recording.
    * A first line with the key `reattach` is a header, and each line after it names its time, type
      and data. Else the file is bare: a line is an event as the service sent it, 10 ms apart.
    * The run fails after an error; pauses where approvals are pending; fails as truncated where the
      family is known and no end was found; else it completes.

Checked by tests/mockserver/scenarios/test_recording.py, and on real streams by test_real_recordings.py.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from reattach_mockserver.scenarios.errors import RecordingError
from reattach_mockserver.scenarios.families.anthropic_messages import AnthropicMessages
from reattach_mockserver.scenarios.families.base import Answered, Asked, Ended, Erred, Family
from reattach_mockserver.scenarios.families.gemini_interactions import GeminiInteractions
from reattach_mockserver.scenarios.families.native import Native
from reattach_mockserver.scenarios.families.openai_chat import OpenAIChat
from reattach_mockserver.scenarios.families.openai_responses import OpenAIResponses
from reattach_mockserver.scenarios.script import Action, EndStatus, Json, JsonObject, Problem
from reattach_mockserver.scenarios.steps import RELEASE, TYPE, reserved

FAMILIES: tuple[Family, ...] = (OpenAIResponses(), GeminiInteractions(), AnthropicMessages(), OpenAIChat(), Native())

MAX_FILE_BYTES = 256 * 1024 * 1024
BARE_GAP_MS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedEvent:
    """One event: when it came, counted from the first, and what it was. `data` is as it was recorded."""

    at_ms: int
    type: str
    data: JsonObject
    text: str | None = None
    id: str | None = None


def release_of(event: RecordedEvent) -> str | None:
    """Return the release that takes over with this event of our own protocol, None if none does."""
    release = event.data.get("release") if event.type == "release.changed" else None
    return release if isinstance(release, str) and RELEASE.fullmatch(release) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How the run settles: paused where there are actions, else as the status says."""

    status: EndStatus = "completed"
    result: Json = None
    problem: Problem | None = None
    actions: tuple[Action, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """A stream to be served as a run. `profile` names the family, None where it is not known."""

    name: str
    profile: str | None
    events: tuple[RecordedEvent, ...]
    ending: Ending

    @property
    def text(self) -> str:
        """The visible text that the family found, of all events."""
        return "".join(event.text or "" for event in self.events)


def load_recording(path: str | Path, profile: str | None = None) -> Recording:
    """Read a recording. `profile` says whose stream it is, whatever header and content say.

    Raises:
        RecordingError: The file cannot be read, or a line is not an event.
        ValueError: No family has the name `profile`.
    """
    path = Path(path)
    if profile is not None and profile not in {family.name for family in FAMILIES}:
        names = ", ".join(family.name for family in FAMILIES)
        raise ValueError(f"no recording can be read as {profile!r}; expected one of {names}")
    try:
        with path.open("rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        reason = error.strerror or str(error)
        raise RecordingError(str(path), 0, f"cannot be read ({reason})", "expected a file of JSON lines") from error
    if len(content) > MAX_FILE_BYTES:
        raise RecordingError(str(path), 0, "too large", f"expected at most {MAX_FILE_BYTES} bytes")
    if not content.strip() and path.with_name(f"{path.name}.recording").exists():
        # Played, it would look like a run that was recorded and said nothing.
        raise RecordingError(str(path), 0, "not whole yet", "go on with `reattach record` until it says that it is")
    return _Reader(str(path)).recording(content, path.stem, profile)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")


class _Reader:
    """Reads the lines of one file; its errors carry the file's name."""

    def __init__(self, path: str) -> None:
        self.path = path

    def wrong(self, number: int, what: str, expected: str) -> NoReturn:
        raise RecordingError(self.path, number, what, expected)

    def recording(self, content: bytes, name: str, profile: str | None) -> Recording:
        lines = list(self.objects(content))
        if lines and "reattach" in lines[0][1]:
            number, header = lines.pop(0)
            if header["reattach"] != "recording/1":
                self.wrong(number, f"the header {header['reattach']!r:.60}", "expected 'recording/1'")
            written = header.get("profile")
            profile = profile or (written if isinstance(written, str) else None)
            family = _named(profile)
            events = self.timed(lines)
        else:
            family = _named(profile) or _recognised([data for _, data in lines])
            events = self.bare(lines)
        return self.settled(name, profile or (family.name if family else None), family, events)

    def objects(self, content: bytes) -> Iterator[tuple[int, dict[str, Json]]]:
        # Only LF ends a line: U+2028 and its like may stand in a text, and the CR of CR LF is space to JSON.
        for number, line in enumerate(content.removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
            if not line.strip():
                continue
            try:
                value = json.loads(line.decode(), parse_constant=_refuse_constant)
                # What cannot be sent again, as half a surrogate pair or 1e999, is found here and not in a running run.
                json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
            except UnicodeDecodeError:
                self.wrong(number, "a byte that is not UTF-8", "expected UTF-8")
            except UnicodeEncodeError:
                self.wrong(number, "half a surrogate pair in a text", "expected whole characters")
            except json.JSONDecodeError as error:
                self.wrong(number, f"not JSON ({error.msg} at column {error.colno})", "expected an object a line")
            except (ValueError, RecursionError) as error:
                self.wrong(number, f"JSON that cannot be kept ({error})", "expected an event")
            if not isinstance(value, dict):
                self.wrong(number, f"JSON that is no object ({line.decode()[:40]})", "expected an object a line")
            yield number, value

    def bare(self, lines: Sequence[tuple[int, dict[str, Json]]]) -> list[tuple[int, RecordedEvent]]:
        return [
            (number, RecordedEvent(at_ms=index * BARE_GAP_MS, type=_type_of(data), data=data))
            for index, (number, data) in enumerate(lines)
        ]

    def timed(self, lines: Sequence[tuple[int, dict[str, Json]]]) -> list[tuple[int, RecordedEvent]]:
        events: list[tuple[int, RecordedEvent]] = []
        last = 0
        for number, line in lines:
            # Without timing a recorder leaves the time out; then events come as fast as bare ones.
            at_ms = line.get("at_ms", last + BARE_GAP_MS if events else 0)
            if isinstance(at_ms, bool) or not isinstance(at_ms, int) or at_ms < last:
                self.wrong(number, f"at_ms {at_ms!r:.40}", f"expected a whole number from {last}, the line's before")
            event_type, data, event_id = line.get("type"), line.get("data"), line.get("id")
            text = line.get("text")
            if not isinstance(event_type, str):
                self.wrong(number, "an event without a type", "expected 'type', a text")
            if not isinstance(data, dict):
                self.wrong(number, "an event without data", "expected 'data', an object")
            if text is not None and not isinstance(text, str):
                self.wrong(
                    number, f"the text {text!r:.40}", "expected 'text', what it adds to the visible text, or none"
                )
            event_id = event_id if isinstance(event_id, str) else None
            event = RecordedEvent(at_ms=at_ms, type=event_type, data=data, text=text, id=event_id)
            events.append((number, event))
            last = at_ms
        return events

    def settled(
        self, name: str, profile: str | None, family: Family | None, events: list[tuple[int, RecordedEvent]]
    ) -> Recording:
        kept: list[RecordedEvent] = []
        signs = _Signs()
        for number, event in events:
            native = isinstance(family, Native)
            if family is not None:
                signs.take(family, {"type": event.type, "data": dict(event.data)} if native else event.data)
            if reserved(event.type) and not (native and release_of(event) is not None):
                if native:
                    continue
                self.wrong(number, f"the type {event.type!r:.60}", "expected one that is not the server's own")
            if not TYPE.fullmatch(event.type):
                self.wrong(number, f"the type {event.type!r:.60}", "expected one line of at most 128 characters")
            kept.append(
                RecordedEvent(
                    at_ms=event.at_ms,
                    type=event.type,
                    data=event.data,
                    text=event.text if event.text is not None or family is None else family.text(event.data),
                    id=event.id,
                )
            )
        return Recording(name=name, profile=profile, events=tuple(kept), ending=signs.ending(family is not None))


class _Signs:
    """What the events so far say of the run's way."""

    def __init__(self) -> None:
        self.problem: Problem | None = None
        self.end: Ended | None = None
        self.pending: dict[str, Action] = {}

    def take(self, family: Family, event: JsonObject) -> None:
        match family.sign(event):
            case Ended() as end:
                self.end = end
            case Erred(problem=problem):
                # The first is the cause; what follows are its consequences.
                self.problem = self.problem or problem
            case Asked(action=action):
                self.pending[action.id] = action
            case Answered(action_id=action_id):
                self.pending.pop(action_id, None)

    def ending(self, known: bool) -> Ending:
        if self.problem is not None:
            return Ending(status="failed", problem=self.problem)
        if self.end is not None and self.end.status != "completed":
            return Ending(status=self.end.status, problem=self.end.problem)
        if self.pending:
            return Ending(actions=tuple(self.pending.values()))
        if self.end is None and known:
            message = "the recording ends before the service's own end"
            return Ending(status="failed", problem=Problem(code="recording_truncated", message=message))
        return Ending(result=self.end.result if self.end else None)


def _named(profile: str | None) -> Family | None:
    return next((family for family in FAMILIES if family.name == profile), None)


def _recognised(events: Sequence[JsonObject]) -> Family | None:
    """Return the family of the first event that only one can have sent."""
    return next((family for event in events for family in FAMILIES if family.recognises(event)), None)


def _type_of(data: JsonObject) -> str:
    for key in ("type", "event_type", "object"):
        value = data.get(key)
        if isinstance(value, str) and value:
            return value
    return "message"
