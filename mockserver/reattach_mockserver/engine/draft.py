"""A run that is to be created: its record and its first events, before the log has taken them.

Pure. What a create asks for is a `NewRun`, found valid; what the log is given is a `Draft`. Where the rules come from:
PROTOCOL, sections 2 and 5. Checked by tests/mockserver/test_create.py and test_continue.py.
"""

from dataclasses import dataclass, replace
from typing import Any, Literal

from reattach_mockserver.engine.continuation import Opening, Response, openings
from reattach_mockserver.engine.identity import Names
from reattach_mockserver.engine.publisher import entry
from reattach_mockserver.event import Entry, json_text
from reattach_mockserver.logs.base import Answers, RunRecord
from reattach_mockserver.logs.pause import answered, release_of


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRun:
    """A create that was found valid. `digest` stands for its body, `token` for the token that brought it.

    `input` is what a plug-in is asked for. With `continues` it is a continuation: of that run of the same principal, with
    these `responses`, for which `responses_digest` stands; `script` and `session_id` are that run's then.
    """

    principal: str
    key: str
    digest: str
    token: str
    script: str
    session_id: str | None = None
    on_active: Literal["reject", "cancel"] = "reject"
    input: Any = None
    metadata: dict[str, Any] | None = None
    continues: str | None = None
    responses: tuple[Response, ...] = ()
    responses_digest: str = ""

    def answers(self, at: int) -> Answers:
        """Return what the paused run is continued with, at `at` ms."""
        return Answers(json_text(list(self.responses)), self.responses_digest, at)


@dataclass(frozen=True, slots=True)
class Draft:
    """What a log is asked to create."""

    record: RunRecord
    entries: tuple[Entry, ...]
    answers: Answers | None = None

    @property
    def largest(self) -> Entry:
        """The largest of the first events."""
        return max(self.entries, key=lambda entry: entry.size)


def draft_run(new: NewRun, names: Names, created_at: str, at: int) -> Draft:
    """Draft an ordinary run."""
    record = _record(new, names, created_at, new.session_id or names.session(), new.script)
    return Draft(record, _entries(record, (), new.metadata, at))


def draft_continuation(new: NewRun, names: Names, created_at: str, at: int, paused: RunRecord, script: str) -> Draft:
    """Draft the run that continues `paused` by playing `script`.

    Raises:
        NotAnswered: The paused run does not take these answers.
    """
    answers = new.answers(at)
    record = replace(
        _record(new, names, created_at, paused.session_id, script), continues=paused.id, release=release_of(paused, at)
    )
    # Answered so before: the log will find the continuation that there is, and none of this is written.
    after = answered(paused, record.id, answers) or paused
    return Draft(record, _entries(record, openings(after), new.metadata, at), answers)


def _record(new: NewRun, names: Names, created_at: str, session_id: str, script: str) -> RunRecord:
    return RunRecord(
        id=names.run(),
        number=0,
        principal=new.principal,
        key=new.key,
        digest=new.digest,
        session_id=session_id,
        script=script,
        created_at=created_at,
        metadata=None if new.metadata is None else json_text(new.metadata),
        token=new.token,
    )


def _entries(
    record: RunRecord, opening: tuple[Opening, ...], metadata: dict[str, Any] | None, at: int
) -> tuple[Entry, ...]:
    data = {"session_id": record.session_id, "continues": record.continues, "metadata": metadata}
    return tuple(
        entry(record, event.step, event.type, event.data, time=record.created_at, at=at, release=event.release)
        for event in (Opening("created", "run.created", data), *opening)
    )
