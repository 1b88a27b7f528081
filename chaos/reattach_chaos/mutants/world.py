"""`World`: all that the small client touches, so that it runs on sockets and in a simulation without knowing which.

Blocking, one thing at a time. Times are seconds. What breaks is one of three exceptions.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol


class Lost(Exception):
    """The connection broke, or could not be made."""


class Silent(Exception):
    """Nothing came within the time that the client gave it."""


class Fenced(Exception):
    """Another process has taken the store over: nothing was written."""


class StoreBroken(Exception):
    """The store could not be written: nothing was."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a finite request."""

    status: int
    body: Mapping[str, Any] = field(default_factory=dict)


class Stream(Protocol):
    """An answer to a request for a stream.

    Attributes:
        status: Of HTTP.
        code: Of a refusal's problem; "" for none.
        retry_after: Seconds that the server asks for, None for no wish.
    """

    status: int
    code: str
    retry_after: float | None

    def read(self, timeout: float) -> bytes:
        """Return what comes next; b"" at the end of the stream.

        Raises:
            Silent: Nothing came.
            Lost: The connection broke.
        """
        ...

    def close(self) -> None:
        """Hang up."""
        ...


class World(Protocol):
    """The client's surroundings."""

    def now(self) -> float:
        """Return the time."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait."""
        ...

    def draw(self, low: float, high: float) -> float:
        """Return a number by chance."""
        ...

    def say(self, line: Mapping[str, Any]) -> None:
        """Show a line to the application."""
        ...

    def load(self) -> dict[str, Any]:
        """Return what was saved; empty at first."""
        ...

    def lease(self) -> int:
        """Take the store over; return the token under which to write."""
        ...

    def save(self, state: Mapping[str, Any], token: int | None) -> None:
        """Make this durable. A token of None is not looked at.

        Raises:
            Fenced: The token is not the newest.
            StoreBroken: It was not written.
        """
        ...

    def create(self, key: str) -> Answer:
        """Ask for a run.

        Raises:
            Lost: No answer came; it may exist.
        """
        ...

    def status(self, run: str) -> Answer:
        """Ask for the run's status.

        Raises:
            Lost: No answer came.
        """
        ...

    def attach(self, run: str, after: str | None) -> Stream:
        """Ask for the run's events after a cursor.

        Raises:
            Lost: No head came.
        """
        ...
