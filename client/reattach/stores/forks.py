"""Stores across a fork: no call is in flight while the process is doubled, and the child lets go of what the parent has.

A JSONL journal is one process's, and the child is another. SQLite's locks belong to a process, but its memory of them is copied: a
child that went on, or opened the same file anew beside the inherited connections, would believe to hold locks that it has not
(sqlite.org/howtocorrupt, section 2.6).
"""

from __future__ import annotations

import os
import weakref
from typing import Protocol


class Forked(Protocol):
    """What a store does around a fork."""

    def pause(self) -> None:
        """Let no call begin, when those in flight have ended."""
        ...

    def resume(self) -> None:
        """Let calls begin again."""
        ...

    def abandon(self) -> None:
        """Be closed, in the child, without touching what is shared with the parent."""
        ...


_open: weakref.WeakSet[Forked] = weakref.WeakSet()
_paused: list[Forked] = []


def watch(store: Forked) -> None:
    """Take care of an open store until `forget` or its end."""
    _open.add(store)


def forget(store: Forked) -> None:
    """Take care of it no more; of one that is not watched nothing happens."""
    _open.discard(store)


def _before() -> None:
    _paused[:] = _open
    for store in _paused:
        store.pause()


def _in_parent() -> None:
    for store in _paused:
        store.resume()
    _paused.clear()


def _in_child() -> None:
    for store in _paused:
        store.abandon()
    _in_parent()


if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
