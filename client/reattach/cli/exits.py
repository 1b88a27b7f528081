"""Exit codes, signals, and what is said of an error. The numbers are the surface's (section 2); nothing else decides one."""

from __future__ import annotations

import signal
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

from reattach import errors
from reattach.model import Status

GOOD = 0
BAD = 1
NOT_KNOWN = 3
WAITS = 4
USAGE = 64
OUR_BUG = 70
INTERRUPTED = 130
TERMINATED = 143


class Terminated(BaseException):
    """SIGTERM came. Like KeyboardInterrupt no Exception, so that only who means it catches it."""


class Declined(Exception):
    """The command cannot be done as it was given; the text says what to do instead. No error of the library's."""

    def __init__(self, text: str, code: int = USAGE) -> None:
        super().__init__(text)
        self.code = code


def of_error(error: BaseException) -> int:
    """Return the exit code of an error."""
    match error:
        case Declined():
            return error.code
        case errors.RunBusy():
            return NOT_KNOWN
        case errors.UsageError():
            return USAGE
        case errors.ActionRequired() | errors.AmbiguousOutcome() | errors.ActionsUnanswered() | errors.ApprovalStale():
            return WAITS
        case errors.RunNotCompleted():
            return BAD
        case errors.ReattachError() if type(error) is not errors.ReattachError:
            return NOT_KNOWN
        case _:
            return OUR_BUG  # the root itself is what the runtime raises for a fault of ours


def of_status(status: Status) -> int:
    """Return the exit code of a run's end."""
    match status:
        case Status.COMPLETED:
            return GOOD
        case Status.FAILED | Status.CANCELLED:
            return BAD
        case Status.REQUIRES_ACTION:
            return WAITS
        case _:
            return NOT_KNOWN


def of_signal(raised: BaseException) -> int:
    """Return the exit code of an interruption."""
    return TERMINATED if isinstance(raised, Terminated) else INTERRUPTED


def words_of(error: BaseException) -> str:
    """Return what is printed of an error: `Class: text`; a fault of ours with how to report it."""
    match error:
        case Declined():
            return f"reattach: {error}"
        case errors.ReattachError():
            return f"{type(error).__name__}: {error}"
        case _:
            return (
                f"reattach: a fault of reattach itself ({type(error).__name__}: {error}). Nothing that is in the journal is "
                "lost. Please report it with what the same command prints with -v."
            )


def tell(error: Exception, *, verbose: bool) -> int:
    """Print an error that no command spoke of, and return its exit code."""
    if verbose:
        traceback.print_exception(error)
    print(words_of(error), file=sys.stderr)
    return of_error(error)


@contextmanager
def signals() -> Iterator[None]:
    """Let SIGTERM be raised as `Terminated` inside; only the main thread can be told."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, _terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _terminate(number: int, frame: object) -> NoReturn:
    raise Terminated
