"""What a case was played with, written into its schedule, and read from it again: the one place for both directions. Pure."""

import json
from collections.abc import Mapping
from dataclasses import replace
from importlib.metadata import version
from typing import Any

from reattach_chaos.cases.address import objection_to_url
from reattach_chaos.cases.patience import objection_to_time
from reattach_chaos.cases.simulated import SIMULATED
from reattach_chaos.cases.terms import HEARTBEAT_MS
from reattach_chaos.cases.theatre import Bill
from reattach_chaos.mutants import KILLED_BY
from reattach_chaos.schedules import Schedule, ScheduleError
from reattach_chaos.schedules.document import shown
from reattach_chaos.schedules.settings import RANGES
from reattach_mockserver.mutants.registry import SERVER_MUTANTS
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
_WORDS = {
    "on_gap": ("raise", "snapshot", "continue"),
    "line_end": ("lf", "crlf"),
    "mode": ("follow", "start", SIMULATED),
    "mutant": ("", *SERVER_MUTANTS),
}
_MUTANT = "mutant "


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
    if why := _wrong_word(client) or _wrong_word(server) or _wrong_value(client, server):
        raise ScheduleError(f"case {schedule.id} cannot be played: {why}")
    if client.get("mode") == SIMULATED and not _on_sockets(given):
        return replace(given, simulated=True, seed=schedule.seed)
    for settings, known in ((client, CLIENT_SETTINGS), (server, SERVER_SETTINGS)):
        if unknown := sorted(settings.keys() - known):
            raise ScheduleError(f"case {schedule.id} cannot be played: there is no {', '.join(unknown)} on sockets")
    if why := objection_to_time(schedule, given.timeout_s):
        raise ScheduleError(f"case {schedule.id} cannot be played: {why}")
    scenario, script = given.scenario or server.get("scenario", ""), given.script
    if not scenario and script is None:
        if not isinstance(schedule.scenario, str):
            script = schedule.scenario
            loads_script(json.dumps(script), f"the script of case {schedule.id}")
        elif schedule.scenario != SESSION:
            scenario = schedule.scenario
    target = given.target or server.get("target", "")
    if target and script is not None:
        raise ScheduleError(
            f"case {schedule.id} cannot be played: it holds a script, and {target} is not ours to start"
        )
    name = client.get("client", "reattach")
    mutant = name.removeprefix(_MUTANT) if name.startswith(_MUTANT) else ""
    on_ours = schedule.versions.get(BACKEND) == "embedded" and given.backend == "auto" and not given.toxiproxy
    return replace(
        given,
        backend="embedded" if on_ours else given.backend,
        client=given.client or ("" if name == "reattach" or mutant else name),
        mutant=given.mutant or mutant,
        mode="start" if client.get("mode") == "start" else given.mode,
        target=target,
        wrong=given.wrong or server.get("mutant", ""),
        scenario=scenario,
        script=script,
        heartbeat_ms=float(server.get(HEARTBEAT, given.heartbeat_ms)),
        seed=schedule.seed,
    )


def _wrong_word(settings: Mapping[str, Any]) -> str:
    """Return which of the settings that are one of some words is none of them, and which there are."""
    for name in sorted(settings.keys() & _WORDS):
        if settings[name] not in _WORDS[name]:
            known = ", ".join(word for word in _WORDS[name] if word)
            return f"{name} is one of {known}; not {shown(settings[name])}"
    return ""


def _wrong_value(client: Mapping[str, Any], server: Mapping[str, Any]) -> str:
    """Return which of the other settings that are known is not what it may be."""
    name, target = client.get("client", "reattach"), server.get("target", "")
    for member, value in (("client", name), ("target", target), ("scenario", server.get("scenario", ""))):
        if not isinstance(value, str) or "\0" in value:
            return f"{member} is a text, not {shown(value)}"
    if not name.strip():
        return "client is reattach, a mutant or a command, not nothing"
    if name.startswith(_MUTANT) and name.removeprefix(_MUTANT) not in KILLED_BY:
        return f"client: {shown(name)} is none; there is {_MUTANT}{f', {_MUTANT}'.join(KILLED_BY)}"
    if target and (why := objection_to_url(target)):
        return f"target {shown(target)}: {why}"
    least, most = RANGES[HEARTBEAT]
    heartbeat_ms = server.get(HEARTBEAT, least)
    # What we write is 1000.0: a whole number all the same.
    whole = type(heartbeat_ms) is int or (type(heartbeat_ms) is float and heartbeat_ms.is_integer())
    if not whole or not least <= heartbeat_ms <= most:
        return f"{HEARTBEAT} is a whole number from {least} to {most}, not {shown(heartbeat_ms)}"
    return ""


def _on_sockets(given: Bill) -> bool:
    """Whether the command line names what the simulation does not have."""
    named = (given.client, given.target, given.mutant, given.wrong, given.scenario, given.script, given.toxiproxy)
    return any(named) or given.backend != "auto"
