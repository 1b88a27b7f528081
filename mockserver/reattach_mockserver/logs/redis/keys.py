"""The names of what a log keeps in Redis, all under one prefix.

What a client chose (a principal, a key, a session) is preceded by its length in bytes, so that no two places have one name.
The scripts make the names of operations and runs by the same rule. Pure.
"""

from functools import lru_cache

PREFIX = "reattach:"

COUNTS = f"{PREFIX}counts"
"""Hash: `runs` (also the number of the newest), `events`, `effects`, `attempts`."""
RUNS = f"{PREFIX}runs"
"""Sorted set of all runs, by number."""
ACTIVE = f"{PREFIX}active"
"""Sorted set of the runs that have not settled, by number."""
REVOKED = f"{PREFIX}revoked"
"""Set of the digests of tokens."""
REPLICAS = f"{PREFIX}replicas"
"""Sorted set of the replicas, by when each one's lease ends: ms of Redis's own clock."""
WAKES = f"{PREFIX}wakes"
"""Channel on which replicas tell each other that something has changed."""
NOBODY = ""
"""The replica that owns what nobody owns."""


def run_key(run_id: str) -> str:
    """Return the run's hash: `record`, `number`, `version`, `owner`, and what scripts ask of the record."""
    return f"{PREFIX}run:{run_id}"


def events_key(run_id: str) -> str:
    """Return the run's stream; the event of sequence n is at the id `n-0`."""
    return f"{PREFIX}run:{run_id}:events"


def base_key(run_id: str) -> str:
    """Return the hash of what is kept in place of the run's first events: `sequence`, `fold`."""
    return f"{PREFIX}run:{run_id}:base"


def ids_key(run_id: str) -> str:
    """Return the hash of the sequences of the run's events by id."""
    return f"{PREFIX}run:{run_id}:ids"


def steps_key(run_id: str) -> str:
    """Return the set of the run's steps, those of events and those that were marked."""
    return f"{PREFIX}run:{run_id}:steps"


def effects_key(run_id: str) -> str:
    """Return the hash of the run's effects by operation."""
    return f"{PREFIX}run:{run_id}:effects"


def claims_key(run_id: str) -> str:
    """Return the hash of the numbers of the last claims by operation."""
    return f"{PREFIX}run:{run_id}:claims"


def owned_key(replica: str) -> str:
    """Return the set of the runs that a replica plays."""
    return f"{PREFIX}owned:{replica}"


def active_key(principal: str) -> str:
    """Return the sorted set of the principal's runs that have not settled."""
    return f"{PREFIX}active:{principal}"


def create_key(principal: str, key: str) -> str:
    """Return the text `[run, digest]` of an idempotency key."""
    return f"{PREFIX}key:{_named(principal)}{key}"


def operation_key(principal: str, operation_id: str) -> str:
    """Return the hash of what each run knows of an operation."""
    return f"{PREFIX}operation:{_named(principal)}{operation_id}"


def session_key(principal: str, session_id: str) -> str:
    """Return the session's hash: `created_at`, `last`, `version`."""
    return f"{PREFIX}session:{_named(principal)}{session_id}"


def session_runs_key(principal: str, session_id: str) -> str:
    """Return the sorted set of the session's runs by number."""
    return f"{PREFIX}session-runs:{_named(principal)}{session_id}"


def session_active_key(principal: str, session_id: str) -> str:
    """Return the set of the session's runs that have not settled."""
    return f"{PREFIX}session-active:{_named(principal)}{session_id}"


def session_waiting_key(principal: str, session_id: str) -> str:
    """Return the set of the session's paused runs whose actions came to nothing yet."""
    return f"{PREFIX}session-waiting:{_named(principal)}{session_id}"


@lru_cache(maxsize=1024)
def _named(text: str) -> str:
    return f"{len(text.encode())}:{text}:"
