"""A process beside others on one journal. Arguments: path, what, number.

commits   commit `number` events of a run of its own, one by one; print the longest commit in ms
contends  commit events of the one run "shared" for as long as it owns it, taking it when it may; until `number` are there
notes     confirm event after event and print each once it is noted, until it is killed
forks     fork, with or without an open transaction; the child opens the journal anew and commits beside the parent
holds     take the lease of "shared" and wait to be killed
"""

from __future__ import annotations

import os
import sys
import time

from reattach.stores import open_store
from reattach.stores.base import Lease, StoreFailed
from reattach.stores.leases import current_holder
from reattach.testing.stores import PROFILE, SERVER, begun, events

path, what, number = sys.argv[1], sys.argv[2], int(sys.argv[3])
store = open_store(path)
store.open()
match what:
    case "commits":
        row, lease, _ = begun(store, f"run_{current_holder('').pid}")
        longest = 0.0
        for position in range(1, number + 1):
            began = time.perf_counter()
            assert store.commit([events(lease, position, position)]) == [None]
            longest = max(longest, time.perf_counter() - began)
        print(f"{longest * 1000:.0f}")
    case "contends":
        row = store.adopt(SERVER, PROFILE, "shared")
        kept = 0
        while (position := store.row(row.run).committed.position) < number:
            found = store.lease(row.run, "", current_holder("c"), 0.0)
            if isinstance(found, Lease):
                # Its time is over at once, so any other may take it between these lines.
                kept += store.commit([events(found, position + 1, position + 1)]) == [None]
        print(kept)
    case "notes":
        row, lease, (main,) = begun(store, "shared", "main")
        store.commit([events(lease, 1, number)])
        for position in range(1, number + 1):
            store.note(main, position)
            print(position, flush=True)
    case "forks" | "forks in a transaction":
        row, lease, (main,) = begun(store, "shared", "main")
        store.commit([events(lease, 1, 1)])
        transaction = store.begin(main, expected=0) if what != "forks" else None
        if transaction is not None:
            transaction.execute("CREATE TABLE bill (event text)", ())
        pid = os.fork()
        if pid == 0:
            try:
                store.rows()
            except StoreFailed:
                print("the child could not use the parent's", flush=True)
            own = open_store(path)
            own.open()
            _, lease, _ = begun(own, "run_child")
            for position in range(1, 21):
                assert own.commit([events(lease, position, position)]) == [None]
            own.close()
            print("the child committed 20", flush=True)
            os._exit(0)
        if transaction is not None:
            transaction.commit(1)
        else:
            store.mark(main, 1)
        assert store.commit([events(lease, 2, 2)]) == [None]
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        print("the parent went on")
    case "holds":
        begun(store, "shared", "main")
        print("held", flush=True)
        sys.stdin.read()
store.close()
