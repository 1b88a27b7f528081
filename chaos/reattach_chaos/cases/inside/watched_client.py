"""Our own client where a case is about its own instants: `main([ORDER, MODULE, *WORDS])` is MODULE's main with faults inside.

ORDER is a word of `instants.py`. The clocks that were ordered are given by the client's own seam. For the rest names are patched,
while `main` runs: where `reattach`'s command line opens its journal and shows a run, it gets ones that are watched; the small
client gets a watched world. Where a fault waits for an acknowledgement, the display acknowledges itself, since no command does. All
else is what everybody runs.

Lines beyond the client's own: `committed`, `applied` and `acked`, so that the order of the marks is judged, and `struck`.
"""

import importlib
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

from reattach import Client, Run
from reattach.cli import following, journals, options
from reattach.testing import Seams
from reattach_chaos.cases.inside.instants import WOKE, read_word
from reattach_chaos.cases.inside.stepped_clock import SteppedClock
from reattach_chaos.cases.inside.striker import Striker
from reattach_chaos.cases.inside.watched_store import WatchedStore
from reattach_chaos.cases.inside.watched_world import WatchedWorld
from reattach_chaos.mutants import __main__ as small
from reattach_chaos.schedules import Place


def main(argv: Sequence[str]) -> int:
    """Be the client; return its exit code."""
    order, module, *words = argv
    instants = read_word(order)
    striker = Striker(instants.faults)
    opened, show = vars(journals)["open_store"], following.show

    def watched(run: Run, display: Any, profile: str) -> Any:
        return show(run, WatchedDisplay(display, run, striker), profile)

    with ExitStack() as seams:
        seams.enter_context(patch.object(journals, "open_store", lambda path: WatchedStore(opened(path), striker)))
        seams.enter_context(patch.object(following, "show", watched))
        seams.enter_context(patch.object(small, "HttpWorld", partial(WatchedWorld, striker=striker)))
        if instants.clock:
            clock: Callable[[], Any] = partial(SteppedClock, Path(instants.clock), partial(striker.say, WOKE))
            seams.enter_context(patch.object(options, "Client", partial(Client, _seams=Seams(clock=clock))))
        code: int = importlib.import_module(module).main(words)
        return code


class WatchedDisplay:
    """A display at which it is seen that an event is out; all else is the display's inside.

    Args:
        inner: The display.
        run: What is shown; its events are confirmed aloud where a fault waits for that.
        striker: The faults.
    """

    def __init__(self, inner: Any, run: Run, striker: Striker) -> None:
        self._inner = inner
        self._run = run
        self._striker = striker

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def event(self, event: Any, changes: Any) -> None:
        """See `Display.event`."""
        self._inner.event(event, changes)
        if event.gap is not None:
            return
        self._striker.meet(Place.DELIVERED, event.sequence or 0)
        if self._striker.waits_at(Place.ACKNOWLEDGED):
            self._run.ack(event)
            self._striker.say("acked", id=event.id)
            self._striker.meet(Place.ACKNOWLEDGED, event.sequence or 0)
