"""Following a run to its end on a display: the loop, what is said meanwhile, and the exit code.

An event is confirmed by asking for the next one, so only after it was written and flushed. Ctrl-C, SIGTERM, a reader that left
and our own time limit end the looking, never the run.
"""

from __future__ import annotations

import argparse
import queue
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from reattach import Client, Run, errors
from reattach.cli import exits
from reattach.cli.display import Display
from reattach.core.fold import Fold
from reattach.model import Connection, Outcome
from reattach.profiles import named
from reattach.runtime import outcomes
from reattach.stores.base import RunRow, Store

TICK = 0.1


def show(run: Run, display: Display, profile: str) -> Outcome:
    """Show the events of a run, each confirmed once it is out, and return how it ended.

    Raises:
        ReattachError: It cannot be followed further.
        OSError: What is shown could not be written; the event in hand was not confirmed.
    """
    changes = named(profile).changes
    with watched(display) as told:
        run._watch(told)
        with run:
            for event in run:
                display.event(event, changes(event))
    return run.wait()


def began(run_id: str, row: RunRow | None, store: Store, display: Display) -> None:
    """Say which run it is, and show what its consumer confirmed before: the text up to its mark."""
    display.began(run_id, None if row is None else row.key, None if row is None else row.committed.cursor)
    if row is not None and row.committed.position:
        applied = store.applied(row.run, "main")
        fold = Fold(run_id)
        outcomes.catch_up(fold, store, row.run, named(row.profile), applied)
        display.confirmed(fold.text, applied)


def handle(client: Client, which: str, row: RunRow | None, display: Display) -> Run:
    """Return the run: the journal's, or the one that the server knows by this id."""
    if row is None or row.run_id is not None:
        return client.attach(which if row is None else row.run_id or "")
    # Its start was never answered: the same key is sent again, now, so that the run has an id to show.
    (unanswered,) = [run for run in client.runs() if (known := run._known(client._host)) and known.run == row.run]
    with watched(display):
        display.waiting(f"starting again: waiting for {row.server}")
        unanswered.status()
    return unanswered


@contextmanager
def watched(display: Display) -> Iterator[Callable[[Connection], None]]:
    """Have a thread that shows connection changes and lets time go by on the display. The function given is quick."""
    changes: queue.SimpleQueue[Connection | None] = queue.SimpleQueue()

    def watch() -> None:
        try:
            while True:
                try:
                    change = changes.get(timeout=TICK)
                except queue.Empty:
                    display.tick()
                    continue
                if change is None:
                    return
                display.connection(change)
                display.tick()
        except OSError:
            return  # the loop will find the same when it writes, and say so

    thread = threading.Thread(target=watch, name="reattach-display", daemon=True)
    thread.start()
    try:
        yield changes.put
    finally:
        changes.put(None)
        thread.join()


@contextmanager
def limited(client: Client, seconds: float | None) -> Iterator[None]:
    """Close the client after so many seconds.

    Raises:
        WaitTimeout: In place of the Closed that comes of it.
    """
    over = threading.Event()

    def close() -> None:
        over.set()
        client.close()

    timer = None if seconds is None else threading.Timer(seconds, close)
    if timer is not None:
        timer.daemon = True
        timer.start()
    try:
        yield
    except errors.Closed as error:
        if not over.is_set():
            raise
        raise errors.WaitTimeout(f"the run has not ended within {seconds:g} s. It goes on.") from error
    finally:
        if timer is not None:
            timer.cancel()


def guarded(
    args: argparse.Namespace,
    display: Display,
    again: Callable[[], str],
    work: Callable[[], int],
    *,
    asking: Callable[[], bool] = lambda: False,
) -> int:
    """Do the work of a command that looks at a run; say what stopped it, and what to type now.

    Args:
        args: The flags.
        display: Where it is said.
        again: Returns RUN for the command to type, "" while it is not known.
        work: Returns the exit code.
        asking: Returns whether a person is being asked, so that nothing was sent yet.
    """
    try:
        return work()
    except (KeyboardInterrupt, exits.Terminated) as signal:
        run = again()
        if asking():
            print(file=sys.stderr)  # the question stands in this line
            display.note(f"interrupted; nothing was sent, the run waits. Again: reattach respond {run}")
        else:
            display.note("interrupted; the run goes on." + (f" Again: reattach follow {run}" if run else ""))
        return exits.of_signal(signal)
    except BrokenPipeError:
        raise
    except Exception as error:
        if isinstance(error, OSError) and not isinstance(error, errors.ReattachError):
            # Not a network's: those have names of their own. What was being shown is not confirmed.
            error = exits.Declined(f"the output cannot be written ({error.strerror}); the run goes on", exits.NOT_KNOWN)
        if args.verbose:
            traceback.print_exception(error, file=sys.stderr)
        display.failed(error, advice(error, again()))
        return exits.of_error(error)
    finally:
        display.close()


def advice(error: Exception, run: str) -> str:
    """Return the command to type after an error, "" where the message says it all."""
    if not run:
        return ""
    match error:
        case errors.RunBusy():
            return f"To look on here: reattach follow {run} --from beginning"
        case errors.ResumeRejected():
            return f"To go on nevertheless: reattach follow {run} --on-gap snapshot (or continue)"
        case errors.NotAuthorized():
            return f"Set REATTACH_TOKEN or name a variable with --token-env, then: reattach follow {run}"
        case errors.ActionsUnanswered() | errors.ApprovalStale():
            return f"To be asked for each: reattach respond {run}"
        case errors.AmbiguousOutcome():
            return f"To say what became of it: reattach reconcile {run} --run ID (or --not-created)"
        case errors.ReconnectExhausted() | errors.WaitTimeout() | errors.StoreError():
            return f"Again: reattach follow {run}"
        case _:
            return ""
