"""Takes a create to the log: drafts the run, judges a continuation, and asks again where the storage gave no answer.

It plays nothing and cancels nothing; that is the engine's. Where the rules come from: PROTOCOL, sections 2 and 5. Checked
by tests/mockserver/test_create.py and test_continue.py.
"""

from contextlib import suppress
from dataclasses import replace

from reattach_mockserver.engine.continuation import judge, not_continued
from reattach_mockserver.engine.draft import Draft, NewRun, draft_continuation, draft_run
from reattach_mockserver.engine.identity import Names
from reattach_mockserver.engine.score import limits_for
from reattach_mockserver.engine.work import is_work
from reattach_mockserver.event import EventTooLarge, json_text
from reattach_mockserver.logs.base import EventLog, LogUnavailable, NotAnswered, RunRecord
from reattach_mockserver.moment import DETERMINISTIC_START_MS, moment
from reattach_mockserver.scenarios.recording import Recording
from reattach_mockserver.settings import Settings

_ATTEMPTS = 3


class Creation:
    """Creates runs in one log, for one engine."""

    def __init__(self, log: EventLog, settings: Settings) -> None:
        self._log = log
        self._settings = settings

    async def make(self, new: NewRun, names: Names) -> tuple[RunRecord, bool]:
        """Create the run, or find the one that there is already; return it, and whether this call made it.

        Raises:
            NotContinued: It is a continuation, and its answers do not fit.
            EventTooLarge: One of its first events would be.
            SessionBusy: Its session has a run that has not settled.
            TooManyRuns: The principal is at its limit.
            LogUnavailable: The storage failed again and again.
        """
        draft = await self._draft(new, names)
        largest, most = draft.largest, limits_for(self._settings, draft.record.script).event_bytes
        if largest.size > most:
            raise EventTooLarge(f"{largest.type!r} would have {largest.size} bytes, at most {most} are allowed")
        try:
            for _ in range(_ATTEMPTS - 1):
                with suppress(LogUnavailable):
                    return await self._write(draft)
            return await self._write(draft)
        except NotAnswered as refused:
            raise not_continued(refused, await self._paused(new)) from refused

    async def _write(self, draft: Draft) -> tuple[RunRecord, bool]:
        limit = self._settings.limits.runs_per_principal
        return await self._log.create(draft.record, draft.entries, runs_limit=limit, answers=draft.answers)

    async def _draft(self, new: NewRun, names: Names) -> Draft:
        now = self._settings.now()
        created_at = moment(DETERMINISTIC_START_MS if self._settings.deterministic else now)
        if new.continues is None:
            return self._with_input(draft_run(new, names, created_at, now), new)
        paused = await self._paused(new)
        judge(paused, new.responses, new.answers(now), self._settings.scripts.get(paused.script))
        draft = draft_continuation(new, names, created_at, now, paused, self._script_after(paused))
        return self._with_input(draft, new)

    def _with_input(self, draft: Draft, new: NewRun) -> Draft:
        """Keep what a plug-in is asked for; a script or a recording asks for nothing more."""
        if new.input is None or not is_work(self._settings.scripts.get(draft.record.script)):
            return draft
        return replace(draft, record=replace(draft.record, input=json_text(new.input)))

    async def _paused(self, new: NewRun) -> RunRecord:
        paused = await self._log.run(new.continues or "")
        assert paused is not None, "a continuation is found valid only if its run is known"
        return paused

    def _script_after(self, paused: RunRecord) -> str:
        """Return what the continuation plays: the same script, or the recording that was given next."""
        scripts = self._settings.scripts
        if isinstance(scripts.get(paused.script), Recording):
            names = list(scripts)
            for name in names[names.index(paused.script) + 1 :]:
                if isinstance(scripts[name], Recording):
                    return name
        return paused.script
