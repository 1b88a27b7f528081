"""A model that says what it was told to: for tests, examples, and for seeing what a loop does without a vendor.

Deterministic: which turn comes depends on the conversation alone, so it may be asked by any process. Each time that it is
asked can be counted in a file that outlives its process; a turn that was asked for again is seen there.
"""

import os
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from reattach_mockserver.agent.model import ModelError, ModelTurn, Piece, Said, Turn
from reattach_mockserver.agent.tool import Tool


class ScriptedModel:
    """Says one list of pieces a turn, in their order over a whole session.

    Args:
        turns: The turns. Texts are said a word at a time.
        counted: A file that gets a line, on disk before the first piece, each time a turn is asked for: its number from 0.
    """

    def __init__(self, turns: Sequence[Sequence[Piece]], *, counted: Path | None = None) -> None:
        self._turns = turns
        self._counted = counted

    async def turn(self, conversation: Sequence[Turn], tools: Sequence[Tool]) -> AsyncIterator[Piece]:
        """Yield the pieces of the turn that comes next."""
        number = sum(isinstance(turn, ModelTurn) for turn in conversation)
        if self._counted is not None:
            _append(self._counted, f"{number}\n")
        if number >= len(self._turns):
            raise ModelError(f"the script has {len(self._turns)} turns", permanent=True)
        for piece in self._turns[number]:
            if not isinstance(piece, Said):
                yield piece
                continue
            for word in _words(piece.text):
                yield Said(word)


def _words(text: str) -> list[str]:
    """Split a text so that its words keep the space after them."""
    words = text.split(" ")
    return [word + " " for word in words[:-1]] + words[-1:]


def _append(path: Path, line: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.write(descriptor, line.encode())
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
