"""A process with the faults preloaded: it lives a journal's life in forked children, each with one fault, and looks what is left.

    LD_PRELOAD=faults.so python child_faults.py FOLDER STORE FAULT FIRST STEP [URL]

At calls FIRST, FIRST + STEP, … until a life comes to its end unharmed. With a URL the life is a client's that follows a run there,
else the store's. Prints how many calls were faulty; an AssertionError names the call.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

import following
import scenario

from disk_faults import FAULTS, Fault, Faults

faults = Faults()


def main() -> None:
    folder, kind, named, first, step, *url = sys.argv[1:]
    fault = FAULTS[named]
    for count, number in enumerate(range(int(first), 100_000, int(step))):
        place = Path(folder) / f"{number}"
        place.mkdir()
        if url:
            life, look = following.life(url[0], kind, place), following.look(url[0], kind, place)
        else:
            life, look = store_life(kind, place), store_look(kind, place)
        code, told, fired = lived(place, number, fault, life)
        try:
            assert code in ((-9,) if fault.kills and fired else (0,)), f"it ended with {code}"
            look(told, fault)
        except AssertionError as error:
            print(f"{kind}, {named} at call {number}, told {told}: {error}", file=sys.stderr)
            traceback.print_exc()
            sys.exit(1)
        if not fired:
            print(count)
            return
    sys.exit("the life never came to its end")


def lived(
    place: Path, number: int, fault: Fault, life: Callable[[Callable[[str], None], Callable[[], bool]], None]
) -> tuple[int, list[str], bool]:
    """Live in a child; return how it ended, what it told, and whether the fault came."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.close(reading)
            pipe = os.fdopen(writing, "w", buffering=1)

            def told(line: str) -> None:
                print(json.dumps(line), file=pipe, flush=True)

            lasting = fault.mode == FAULTS["full for good"].mode
            faults.arm(place, number, fault)
            try:
                life(told, lambda: not lasting)
            except scenario.StoreFailed:
                if not lasting:
                    raise
            told(f"fired {int(faults.fired)}")
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        told = [json.loads(line) for line in pipe if line.endswith("\n")]
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    fired = code == -9 or "fired 1" in told
    return code, [line for line in told if not line.startswith("fired")], fired


def store_life(kind: str, place: Path):
    return lambda told, again: scenario.live(scenario.journal(kind, place), told, again)


def store_look(kind: str, place: Path):
    return lambda told, fault: scenario.is_whole(scenario.journal(kind, place), told)


if __name__ == "__main__":
    main()
