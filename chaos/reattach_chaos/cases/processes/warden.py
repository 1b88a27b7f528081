"""Ends what the shell started for us, when we cannot any more: a client's command knows nothing of us, and would stay.

`python -m reattach_chaos.cases.processes.warden`. Each line of stdin is `{"ward": PID}`: a process that leads a group of its
own. When stdin ends, by an ordinary end or by kill -9 of who held it, each group whose leader still lives is killed. It is deaf
to SIGTERM, so that it ends in no other way. A process id is never taken for another's: the leader is held by a file descriptor.
"""

import contextlib
import json
import os
import select
import signal
import sys

BYTES = 1 << 16


def main() -> int:
    """Watch until stdin ends; return the exit code."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.stdout.write(json.dumps({"kind": "listening"}) + "\n")
    sys.stdout.flush()
    wards: dict[int, int] = {}  # descriptor -> process id
    heard = b""
    while True:
        ready, _, _ = select.select([0, *wards], [], [])
        for descriptor in wards.keys() & set(ready):
            del wards[descriptor]
            os.close(descriptor)  # it has ended
        if 0 not in ready:
            continue
        words = os.read(0, BYTES)
        *lines, heard = (heard + words).split(b"\n")
        for line in lines:
            pid = json.loads(line)["ward"]
            with contextlib.suppress(ProcessLookupError):
                wards[os.pidfd_open(pid)] = pid
        if not words:
            for pid in wards.values():
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(pid, signal.SIGKILL)
            return 0


if __name__ == "__main__":
    sys.exit(main())
