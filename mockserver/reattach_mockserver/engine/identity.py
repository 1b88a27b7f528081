# ruff: noqa: D102 (the methods are documented once, in the protocol)
"""Names for new runs and sessions: not to be guessed, or in deterministic mode always the same.

Checked by tests/mockserver/test_deterministic.py.
"""

import hashlib
import secrets
from typing import Protocol


class Names(Protocol):
    """Gives out ids; a run's without its prefix is the tag of its epochs."""

    def run(self) -> str:
        """Return a new run id."""

    def session(self) -> str:
        """Return a new session id."""


class RandomNames:
    """Ids of 80 random bits."""

    def run(self) -> str:
        return f"run_{secrets.token_hex(10)}"

    def session(self) -> str:
        return f"ses_{secrets.token_hex(10)}"


class SeededNames:
    """Ids made from a seed and a count: the same sequence of creates gets the same ids."""

    def __init__(self, seed: int, count: int) -> None:
        self._seed = seed
        self._runs = count
        self._sessions = count

    def run(self) -> str:
        self._runs += 1
        return f"run_{self._name('run', self._runs)}"

    def session(self) -> str:
        self._sessions += 1
        return f"ses_{self._name('session', self._sessions)}"

    def _name(self, kind: str, number: int) -> str:
        return hashlib.sha256(f"{self._seed}:{kind}:{number}".encode()).hexdigest()[:20]
