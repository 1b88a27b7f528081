"""What a case was played with, written into its schedule, and read from it again: the one place for both directions. Pure."""

import json
from dataclasses import replace
from importlib.metadata import version
from typing import Any

from reattach_chaos.cases.simulated import SIMULATED
from reattach_chaos.cases.terms import HEARTBEAT_MS
from reattach_chaos.cases.theatre import Bill
from reattach_chaos.schedules import Schedule, ScheduleError
from reattach_mockserver.scenarios.parse import loads_script

SESSION = "session"
"""What a schedule calls the session of three runs that is played where no scenario is named."""
HEARTBEAT = "heartbeat_ms"
BACKEND = "backend"
"""Among the versions: on which Toxiproxy it was played."""
CLIENT_SETTINGS, SERVER_SETTINGS = (
    {"client", "mode", "on_gap"},
    {"target", "mutant", "scenario", "line_end", "heartbeat_ms"},
)
_WORDS = {"on_gap": ("raise", "snapshot", "continue"), "line_end": ("lf", "crlf")}


def played_with(schedule: Schedule, client_name: str, bill: Bill, backend: str) -> Schedule:
    """Return the schedule with all that plays it again; `backend`: on which Toxiproxy, as it turned out."""
    settings = {"target": bill.target, "mutant": bill.wrong, "scenario": bill.scenario}
    server: dict[str, Any] = {name: value for name, value in settings.items() if value}
    if bill.heartbeat_ms != HEARTBEAT_MS:
        server[HEARTBEAT] = bill.heartbeat_ms
    client = {"client": client_name, "mode": SIMULATED if bill.simulated else bill.mode}
    return replace(
        schedule,
        seed=schedule.seed if bill.simulated else bill.seed,
        scenario=bill.script if bill.script is not None else schedule.scenario,
        client={**schedule.client, **client},
        server={**schedule.server, **server},
        versions={"reattach": version("reattach"), BACKEND: backend},
    )


def bill_of(schedule: Schedule, given: Bill) -> Bill:
    """Return what a saved case was played with; what is given on the command line goes before it.

    A case of the simulation is played there, unless something is named that only sockets have: a client, a server, a Toxiproxy.
    One that holds its script is played with it. One that was found on the embedded Toxiproxy is played on it, one that was found on
    the real one where that is to be had.

    Raises:
        ScenarioError: Its script is none.
        ScheduleError: It asks for what is not done on sockets: half an order obeyed would be another case.
    """
    client, server = schedule.client, schedule.server
    if client.get("mode") == SIMULATED and not _on_sockets(given):
        return replace(given, simulated=True, seed=schedule.seed)
    for settings, known in ((client, CLIENT_SETTINGS), (server, SERVER_SETTINGS)):
        if unknown := sorted(settings.keys() - known):
            raise ScheduleError(f"case {schedule.id} cannot be played: there is no {', '.join(unknown)} on sockets")
        for name in settings.keys() & _WORDS:
            if settings[name] not in _WORDS[name]:
                raise ScheduleError(f"case {schedule.id} cannot be played: {name} is one of {', '.join(_WORDS[name])}")
    heartbeat_ms = server.get(HEARTBEAT, given.heartbeat_ms)
    if not isinstance(heartbeat_ms, int | float) or heartbeat_ms <= 0:
        raise ScheduleError(f"case {schedule.id} cannot be played: {HEARTBEAT} is a number above 0")
    scenario, script = given.scenario or str(server.get("scenario", "")), given.script
    if not scenario and script is None:
        if not isinstance(schedule.scenario, str):
            script = schedule.scenario
            loads_script(json.dumps(script), f"the script of case {schedule.id}")
        elif schedule.scenario != SESSION:
            scenario = schedule.scenario
    target = given.target or str(server.get("target", ""))
    if target and script is not None:
        raise ScheduleError(
            f"case {schedule.id} cannot be played: it holds a script, and {target} is not ours to start"
        )
    name = str(client.get("client", "reattach"))
    mutant = name.removeprefix("mutant ") if name.startswith("mutant ") else ""
    on_ours = schedule.versions.get(BACKEND) == "embedded" and given.backend == "auto" and not given.toxiproxy
    return replace(
        given,
        backend="embedded" if on_ours else given.backend,
        client=given.client or ("" if name == "reattach" or mutant else name),
        mutant=given.mutant or mutant,
        mode="start" if client.get("mode") == "start" else given.mode,
        target=target,
        wrong=given.wrong or str(server.get("mutant", "")),
        scenario=scenario,
        script=script,
        heartbeat_ms=float(heartbeat_ms),
        seed=schedule.seed,
    )


def _on_sockets(given: Bill) -> bool:
    """Whether the command line names what the simulation does not have."""
    named = (given.client, given.target, given.mutant, given.wrong, given.scenario, given.script, given.toxiproxy)
    return any(named) or given.backend != "auto"
