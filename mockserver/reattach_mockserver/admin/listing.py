"""What the admin interface tells of a server: its runs, their events and effects, who reads them, how much there was.

Nothing here changes anything. A run is told as its owner reads it, with what only the server knows beside: whose it is, under
which key, how many read it. No token and no digest of one is told.

Checked by tests/mockserver/admin/test_counting.py.
"""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from reattach_mockserver.app import Application
from reattach_mockserver.faces.call import Call
from reattach_mockserver.faces.describe import run_json
from reattach_mockserver.faces.problem import run_not_found
from reattach_mockserver.logs.base import RunRecord

_PAGE = 100
_MOST = 1_000
_PAGE_BYTES = 1 << 24


async def run_of(app: Application, call: Call, run_id: str | None = None) -> RunRecord:
    """Return the run of the path, or of this id, whoever's it is.

    Raises:
        Refusal: There is none.
    """
    wanted: str = call.scope["path_params"]["run_id"] if run_id is None else run_id
    run = await app.engine.run(wanted)
    if run is None:
        raise run_not_found(wanted)
    return run


def told(app: Application, run: RunRecord) -> dict[str, Any]:
    """Return a run as JSON."""
    return {
        **run_json(run, app.engine.now()),
        "principal": run.principal,
        "key": run.key,
        "scenario": run.script,
        "number": run.number,
        "subscribers": app.engine.hub.readers(run.id),
    }


async def list_runs(app: Application, call: Call) -> Any:
    """List the runs of everybody, oldest first; `?after=` the last one's number, `?limit=`; `next` is null at the end."""
    after, limit = call.number("after", 0, 0, None), call.number("limit", _PAGE, 1, _MOST)
    page = await app.engine.log.runs(after, limit + 1)
    return {
        "runs": [told(app, run) for run in page[:limit]],
        "next": page[limit - 1].number if len(page) > limit else None,
    }


async def read_run(app: Application, call: Call) -> Any:
    """Tell of one run."""
    return told(app, await run_of(app, call))


async def list_events(app: Application, call: Call) -> Any:
    """List a run's events, those too that are handed out no more; `?after=` a sequence, `?limit=`."""
    run = await run_of(app, call)
    after, limit = call.number("after", 0, 0, None), call.number("limit", _PAGE, 1, _MOST)
    page = await app.engine.log.read(run.id, min(after, run.last_sequence), limit, _PAGE_BYTES)
    last = page[-1].sequence if page else run.last_sequence
    return {
        "events": [json.loads(event.body) for event in page],
        "next": last if last < run.last_sequence else None,
    }


async def list_effects(app: Application, call: Call) -> Any:
    """List the side effects of a run, each with how often the engine came to do it."""
    run = await run_of(app, call)
    effects = [
        {**asdict(effect), "result": json.loads(effect.result)} for effect in await app.engine.log.effects(run.id)
    ]
    return {"effects": effects}


async def list_subscribers(app: Application, call: Call) -> Any:
    """List who reads which run at the moment, and whether by a stream or by a poll."""
    found = Counter((run_id, watcher.principal, watcher.stream) for run_id, watcher in app.engine.hub.all() if run_id)
    return {
        "subscribers": [
            {"run_id": run_id, "principal": principal, "stream": stream, "count": count}
            for (run_id, principal, stream), count in sorted(found.items())
        ]
    }


def read_counts(app: Application) -> dict[str, Any]:
    """Return what is counted beside the log's own counts."""
    return {
        "subscribers": sum(bool(run_id) for run_id, _ in app.engine.hub.all()),
        "calls": dict(sorted(app.calls.items())),
    }


def list_calls(calls: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return each call with the sentence of its function."""
    return {
        "calls": {f"{method} {path}": act.__doc__ for path, methods in calls.items() for method, act in methods.items()}
    }
