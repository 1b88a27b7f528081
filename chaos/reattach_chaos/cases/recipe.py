"""What a case was played with, written into its schedule, and read from it again: the one place for both directions. Pure."""

from dataclasses import replace
from importlib.metadata import version

from reattach_chaos.cases.simulated import SIMULATED
from reattach_chaos.cases.theatre import Bill
from reattach_chaos.schedules import Schedule, ScheduleError

SESSION = "session"
"""What a schedule calls the session of three runs that is played where no scenario is named."""
BACKEND = "backend"
"""Among the versions: on which Toxiproxy it was played."""
CLIENT_SETTINGS, SERVER_SETTINGS = frozenset({"client", "mode"}), frozenset({"target", "mutant", "scenario"})


def played_with(schedule: Schedule, client_name: str, bill: Bill, backend: str) -> Schedule:
    """Return the schedule with all that plays it again; `backend`: on which Toxiproxy, as it turned out."""
    settings = {"target": bill.target, "mutant": bill.wrong, "scenario": bill.scenario}
    server = {name: value for name, value in settings.items() if value}
    client = {"client": client_name, "mode": SIMULATED if bill.simulated else bill.mode}
    return replace(
        schedule,
        seed=schedule.seed if bill.simulated else bill.seed,
        client={**schedule.client, **client},
        server={**schedule.server, **server},
        versions={"reattach": version("reattach"), BACKEND: backend},
    )


def bill_of(schedule: Schedule, given: Bill) -> Bill:
    """Return what a saved case was played with; what is given on the command line goes before it.

    A case that was found on the embedded Toxiproxy is played on it, one that was found on the real one where that is to be had.

    Raises:
        ScheduleError: It asks for what is not done on sockets: half an order obeyed would be another case.
    """
    client, server = schedule.client, schedule.server
    if client.get("mode") == SIMULATED:
        return replace(given, simulated=True, seed=schedule.seed)
    for settings, known in ((client, CLIENT_SETTINGS), (server, SERVER_SETTINGS)):
        if unknown := sorted(settings.keys() - known):
            raise ScheduleError(f"case {schedule.id} cannot be played: there is no {', '.join(unknown)} on sockets")
    scenario = given.scenario or str(server.get("scenario", ""))
    if not scenario and schedule.scenario != SESSION:
        if not isinstance(schedule.scenario, str):
            raise ScheduleError(
                f"case {schedule.id} holds its script: save that as a file, and name it with --scenario"
            )
        scenario = schedule.scenario
    name = str(client.get("client", "reattach"))
    mutant = name.removeprefix("mutant ") if name.startswith("mutant ") else ""
    on_ours = schedule.versions.get(BACKEND) == "embedded" and given.backend == "auto" and not given.toxiproxy
    return replace(
        given,
        backend="embedded" if on_ours else given.backend,
        client=given.client or ("" if name == "reattach" or mutant else name),
        mutant=given.mutant or mutant,
        mode="start" if client.get("mode") == "start" else given.mode,
        target=given.target or str(server.get("target", "")),
        wrong=given.wrong or str(server.get("mutant", "")),
        scenario=scenario,
        seed=schedule.seed,
    )
