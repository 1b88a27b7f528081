"""`WrongCursor`: a wrong server that begins a stream elsewhere than it was asked to; a mutant says where."""

from starlette.types import Scope

from reattach_mockserver.cursor import Cursor, parse_cursor
from reattach_mockserver.logs.base import RunRecord
from reattach_mockserver.mutants.wrong import WrongServer, asking, is_attach, run_of, word_of


class WrongCursor(WrongServer):
    """See the module."""

    async def asked(self, scope: Scope) -> Scope:
        """Return an attach with the cursor that the mutant makes of the one that came."""
        run = await self.engine.log.run(run_of(scope)) if is_attach(scope) else None
        if run is None:
            return scope
        word = word_of(scope)
        return asking(scope, self.taken(run, word, parse_cursor(word or "")))

    def taken(self, run: RunRecord, word: str | None, cursor: Cursor | None) -> str | None:
        """Return where to begin: a cursor's text, or None for the beginning. `cursor`: what `word` is, None if it is none."""
        raise NotImplementedError
