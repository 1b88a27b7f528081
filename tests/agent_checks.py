"""What must be so of an agent's run whose processes died, whatever they died at; the processes are `agent_lives.py`."""

import json
import sqlite3
from collections import defaultdict
from pathlib import Path

from agent_lives import OWN, Nursery, On, lines
from reattach_mockserver.logs.tables import PLACES


def log_of(folder: Path) -> dict[int, list[str]]:
    """Return the text of every event, by the number of its run."""
    found: dict[int, list[str]] = defaultdict(list)
    connection = sqlite3.connect(folder / "log.db")
    try:
        for place, body in connection.execute("SELECT place, body FROM events ORDER BY place"):
            found[place // PLACES].append(body.decode())
    finally:
        connection.close()
    return found


def events_of(log: dict[int, list[str]]) -> list[dict]:
    return [json.loads(text) for number in sorted(log) for text in log[number]]


def effects_of(folder: Path) -> list[str]:
    connection = sqlite3.connect(folder / "log.db")
    try:
        return sorted(row[0] for row in connection.execute("SELECT tool FROM effects"))
    finally:
        connection.close()


def recorded(events: list[dict]) -> list[bool]:
    """Tell which of the three turns of the model's are in the log."""
    tools = [event["data"]["tool"] for event in events if event["type"] == "tool.call"]
    words = [event["data"]["text"] for event in events if event["type"] == "message.completed"]
    return ["look" in tools, "launch" in tools, "All done." in words]


def check_whole(folder: Path, *, unknown: bool | None) -> list[dict]:
    """Check what must be so at the end, however it came there; `unknown`: whether the launch may have none but that outcome."""
    log = log_of(folder)
    events = events_of(log)
    assert {number: lines(folder / f"seen.{number}") for number in log} == log, (
        "the client saw each event once, as it is"
    )
    for texts in log.values():
        parsed = [json.loads(text) for text in texts]
        assert [event["sequence"] for event in parsed] == list(range(1, len(parsed) + 1))
        assert [event["prev_id"] for event in parsed] == [None, *(event["id"] for event in parsed[:-1])]
    settled = [e["type"] for e in events if e["type"] in ("run.paused", "run.completed", "run.failed", "run.cancelled")]
    assert settled == ["run.paused", "run.completed"]

    shown: dict[str, str] = defaultdict(str)
    said = {}
    for event in events:
        data = event["data"]
        if event["type"] == "message.delta":
            shown[data["message_id"]] += data["text"]
        elif event["type"] == "message.completed" and data["role"] == "assistant":
            said[data["message_id"]] = data["text"]
    assert shown == said, "what was shown is what stands, of the messages too that broke off"

    calls = [event["data"] for event in events if event["type"] == "tool.call"]
    results = {event["data"]["call_id"]: event["data"] for event in events if event["type"] == "tool.result"}
    assert [call["tool"] for call in calls] == ["look", "charge", "mail", "launch", "refund"]
    assert len({call["operation_id"] for call in calls}) == len(results) == 5
    launch = next(results[call["call_id"]] for call in calls if call["tool"] == "launch")
    surfaced = "error" in launch
    assert unknown is None or surfaced == unknown
    if surfaced:
        assert launch["error"]["code"] == "outcome_unknown"
    assert sum("error" in result for result in results.values()) == surfaced
    launches = lines(folder / "launches")
    assert len(launches) <= 1 if surfaced else len(launches) == 1
    assert effects_of(folder) == ["charge", *(["launch"] if not surfaced else []), "look", "mail", "refund"]
    assert len(lines(folder / "mails")) == 1
    return events


def check_death(nursery: Nursery, folder: Path, dies_at: int, on: On = OWN) -> None:
    """Let a process die at a point and another go on; check that nothing else came of it."""
    folder.mkdir()
    assert nursery.live(folder, dies_at, on), f"there are fewer than {dies_at} points"
    (point,) = lines(folder / "deaths")
    before, asked = log_of(folder), lines(folder / "asked")
    done = recorded(events_of(before))
    again = [asked.count(str(turn)) > done[turn] for turn in range(3)]
    assert not nursery.live(folder, on=on)
    after = log_of(folder)
    for number, texts in before.items():
        assert after[number][: len(texts)] == texts, f"{point}: what was in the log has changed"
    # In doubt is only what was claimed and not recorded; the launch is the first call of the second turn.
    in_doubt = point.startswith(("claimed", "execute", "executed")) and point.endswith("_1_0")
    events = check_whole(folder, unknown=in_doubt)
    expected = sorted(str(turn) for turn in range(3) for _ in range(1 + again[turn]))
    assert sorted(lines(folder / "asked")) == expected, (
        f"{point}: the model is asked again only for a turn that is not there"
    )
    broken = [event for event in events if event["data"].get("interrupted")]
    assert len(broken) <= sum(again)
    assert len(lines(folder / "mail_attempts")) <= 2
