"""Putting a damaged journal aside: whole, under a name that says when, never over one that is there already."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path


def renamed(path: Path, beside: Sequence[str], when: str) -> Path:
    """Rename a file and what lies beside it to FILE.damaged-WHEN and return that name.

    Args:
        path: The file.
        beside: What follows the file's name in the names of what belongs to it, such as "-marks".
        when: A time as `stamp` writes it.

    Raises:
        OSError: It could not be renamed; what was renamed before it stays so.
    """
    day = when.partition(".")[0].replace("-", "").replace(":", "") + "Z"
    aside = path.with_name(f"{path.name}.damaged-{day}")
    count = 1
    while any(_beside(aside, end).exists() for end in ("", *beside)):
        count += 1
        aside = path.with_name(f"{path.name}.damaged-{day}-{count}")
    # The file first: with it gone, nobody takes what lies beside it for a living journal's.
    for end in ("", *beside):
        with suppress(FileNotFoundError):
            os.rename(_beside(path, end), _beside(aside, end))
    return aside


def _beside(path: Path, end: str) -> Path:
    return path.with_name(path.name + end)
