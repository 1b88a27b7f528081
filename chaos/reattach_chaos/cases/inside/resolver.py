"""A client of ours to which a name can be unknown: `main([FOLDER, MODULE, WORD, …])` is MODULE's `main` with these words.

Each file in FOLDER is one failure to come: whoever asks for an address of `localhost` takes one, and is told what a resolver tells
that does not know the name. Where there is none, the name is this machine's, as everywhere.
"""

import importlib
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any

NAME = "localhost"


def main(argv: Sequence[str]) -> int:
    """Be the client; return its exit code."""
    folder, module, *words = argv
    known = socket.getaddrinfo

    def asked(host: Any, port: Any, *args: Any, **options: Any) -> Any:
        if host not in (NAME, NAME.encode()):
            return known(host, port, *args, **options)
        if _lost(Path(folder)):
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return known("127.0.0.1", port, *args, **options)

    socket.getaddrinfo = asked
    try:
        code: int = importlib.import_module(module).main(words)
    finally:
        socket.getaddrinfo = known
    return code


def _lost(folder: Path) -> bool:
    """Take one failure, if there is one. Of two who ask at once for the last, one gets it."""
    for each in sorted(folder.iterdir()):
        try:
            each.unlink()
        except FileNotFoundError:
            continue
        return True
    return False
