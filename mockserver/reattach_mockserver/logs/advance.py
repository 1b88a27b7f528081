"""What an append, a trim or a renewal makes of a run's record: the arithmetic that all logs share.

Pure: a record and what is asked go in, the new record and the stored events come out. So two logs cannot
disagree about a sequence, and a log is only about keeping. Rules: `base.py`; retention, PROTOCOL, section 3.

Checked by tests/contracts/test_event_logs.py, on every log.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

from reattach_mockserver.event import SETTLED, Entry, Stored, body_of
from reattach_mockserver.logs.base import RunRecord, RunSettled, WriterLost


def advance(
    run: RunRecord, writer: int, entries: Sequence[Entry], known: Mapping[str, Stored], keep: int | None
) -> tuple[RunRecord, tuple[Stored, ...], tuple[tuple[Entry, Stored], ...]]:
    """Append entries to a record.

    Args:
        run: The run as the log holds it, inside the transaction.
        writer: The writer's token.
        entries: What to append.
        known: The stored form of those whose ids the run holds already.
        keep: How many events the run's retention wants kept.

    Returns:
        The new record; the stored form of every entry; and the new ones with their entries, to be kept.

    Raises:
        WriterLost: The token is not the run's.
        RunSettled: The run has settled, and an entry is new.
    """
    if writer != run.writer:
        raise WriterLost(run.id)
    stored: list[Stored] = []
    new: list[tuple[Entry, Stored]] = []
    status, time, at, last_id = run.status, run.last_time, run.last_at, run.last_id
    for entry in entries:
        if entry.id in known:
            stored.append(known[entry.id])
            continue
        if status in SETTLED:
            raise RunSettled(run.id)
        status, time = entry.status or status, max(entry.time, time)
        if entry.at < at:
            entry = replace(entry, at=at)  # a clock that was set back must not make retention's search miss
        at = entry.at
        sequence = run.last_sequence + len(new) + 1
        body = body_of(entry, run_id=run.id, sequence=sequence, prev_id=last_id, time=time)
        event = Stored(sequence, entry.id, entry.type, status in SETTLED, body)
        last_id = entry.id
        stored.append(event)
        new.append((entry, event))
    if new:
        last = new[-1][0]
        settled = status in SETTLED
        run = replace(
            run,
            last_sequence=run.last_sequence + len(new),
            last_id=last_id,
            last_time=time,
            last_at=at,
            status=status,
            ended_at=time if settled else None,
            outcome=last.outcome if settled else None,
            pause=last.pause if settled else None,
            release=next((entry.release for entry, _ in reversed(new) if entry.release is not None), run.release),
        )
    if keep is not None and new:
        run = trimmed(run, run.last_sequence - keep + 1, run.last_at)
    return run, tuple(stored), tuple(new)


def trimmed(run: RunRecord, first: int, at: int) -> RunRecord:
    """Move the first sequence kept towards `first`, at most past the last event, not past a pin that holds at `at`."""
    trim_to = min(max(run.trim_to, first), run.last_sequence + 1)
    pins = [pin for pin in _pins(run) if pin[1] > at]
    allowed = min([trim_to, *(sequence + 1 for sequence, _ in pins)])
    return replace(
        run,
        trim_to=trim_to,
        first_sequence=max(run.first_sequence, allowed),
        pins=json.dumps(pins) if pins else None,
    )


def pinned(run: RunRecord, sequence: int, at: int, until: int) -> RunRecord:
    """Add a pin, at the end of the log at most; those that have run out go."""
    sequence = min(sequence, run.last_sequence)
    pins = [pin for pin in _pins(run) if pin[1] > at and pin[0] != sequence]
    return replace(run, pins=json.dumps([*pins, [sequence, until]]))


def renewed(run: RunRecord, last: Stored | None, last_time: str) -> RunRecord:
    """Begin the next incarnation, whose last event is `last` (None: as before)."""
    run = replace(run, incarnation=run.incarnation + 1, writer=run.writer + 1)
    if last is None or last.sequence == run.last_sequence:
        return run
    first = min(run.first_sequence, last.sequence + 1)
    return replace(
        run,
        last_sequence=last.sequence,
        last_id=last.id,
        last_time=last_time,
        first_sequence=first,
        trim_to=first,
        pins=None,
        status="running",
        ended_at=None,
        outcome=None,
        pause=None,
        resolution=None,
        resolved_at=None,
    )


def _pins(run: RunRecord) -> list[list[int]]:
    pins: list[list[int]] = json.loads(run.pins) if run.pins else []
    return pins
