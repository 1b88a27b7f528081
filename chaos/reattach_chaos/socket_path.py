"""A Unix socket in a folder with a long name: its address may have 107 bytes, whatever the file system takes.

Needs Linux, as the nurseries do.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def short(path: str | os.PathLike[str]) -> Iterator[str]:
    """Give a short name for a path while it is bound or connected to: it goes through the open folder."""
    whole = Path(path)
    folder = os.open(whole.parent, os.O_PATH | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{folder}/{whole.name}"
    finally:
        os.close(folder)
