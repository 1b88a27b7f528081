"""The command `reattach`: words in, words and exit codes out. Runs are started and followed by the library's public door.

One file a command, each with `add(subparsers)` and `run(args)`. Nothing heavy is imported before a command is chosen, and a
command of another package is loaded only when it is asked for (`commands`), so that a broken one breaks no other. Never here:
a decision about events, retries or the journal. What is listed and shown of a journal is read by its seam (`stores`).

Where the words come from: the surface page, section 2. Checked by tests/client/cli and tests/system/test_command_line.py.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from reattach.cli import exits
from reattach.cli.commands import parse


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    Args:
        argv: The words after `reattach`; by default the process's own.

    Raises:
        SystemExit: Wrong arguments (64), `--help` and `--version` (0), as argparse does it.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        with exits.signals():
            args = parse(words)
            code: int = args.run(args)
            sys.stdout.flush()
            return code
    except (KeyboardInterrupt, exits.Terminated) as signal:
        print("reattach: interrupted", file=sys.stderr)
        return exits.of_signal(signal)
    except BrokenPipeError:
        # Who read our output left. What is still buffered must not be tried again at exit, with a traceback.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return exits.NOT_KNOWN
    except Exception as error:
        return exits.tell(error, verbose="-v" in words or "--verbose" in words)
