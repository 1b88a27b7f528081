"""From the client's events to lines: times, text, secrets, one after the other."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from reattach.model import Event
from reattach_mockserver.record.recorder import Recorder
from reattach_mockserver.record.redaction import Redactor
from reattach_mockserver.record.tape import Header, Tape

HEADER = Header(profile="x", recorded_at="", run_id="run_1", server="http://h")
START = datetime(2026, 1, 1, tzinfo=UTC)


def event(number: int, *, ms: int | None = None, kind: Any = "other", text: str = "", data: Any = None) -> Event:
    return Event(
        id=f"evt_{number}",
        run_id="run_1",
        type="note",
        data={"n": number} if data is None else data,
        kind=kind,
        text=text,
        time=None if ms is None else START + timedelta(milliseconds=ms),
    )


def recorded(path: Path, events: list[Event], ticks: list[float] | None = None, **more: Any) -> list[dict[str, Any]]:
    moments = iter(ticks or [])
    with Tape(path, HEADER) as tape:
        recorder = Recorder(tape, Redactor(["own-token"]), ticks=lambda: next(moments), **more)
        for each in events:
            recorder.take(each)
        tape.finish()
    return [json.loads(text) for text in path.read_bytes().splitlines()[1:]]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.jsonl"


def test_times_are_the_services_own_counted_from_the_first(path: Path):
    """So a run that ended long ago is recorded as it was; time never runs backwards."""
    lines = recorded(path, [event(1, ms=5_000), event(2, ms=5_120), event(3, ms=5_100), event(4, ms=6_000)])
    assert [line["at_ms"] for line in lines] == [0, 120, 120, 1_000]


def test_where_the_service_says_nothing_it_is_when_they_came(path: Path):
    lines = recorded(path, [event(1), event(2), event(3)], [10.0, 10.25, 11.0])
    assert [line["at_ms"] for line in lines] == [0, 250, 1_000]


def test_time_in_which_nobody_recorded_is_not_counted(path: Path):
    """Killed after two and run again an hour later: the third comes where the second was, the fourth after it."""
    recorded(path, [event(1), event(2)], [10.0, 10.25])
    lines = recorded(path, [event(1), event(2), event(3), event(4)], [3610.0, 3610.0, 3610.01, 3610.51])
    assert [line["at_ms"] for line in lines] == [0, 250, 250, 750]


def test_without_timing_no_line_has_a_time(path: Path):
    lines = recorded(path, [event(1, ms=0), event(2, ms=7)], timing=False)
    assert [sorted(line) for line in lines] == [["data", "id", "type"]] * 2


def test_data_are_untouched_but_for_secrets(path: Path):
    """Order of members and kinds of numbers too."""
    data = {"z": 1.0, "a": [1, None, "é🙂\u2028"], "nested": {"k": "own-token"}}
    (line,) = recorded(path, [event(1, ms=0, data=data)])
    assert json.dumps(line["data"]) == json.dumps({**data, "nested": {"k": "***"}})


@pytest.mark.parametrize(("native", "texts"), [(True, ["seen ***", None, None]), (False, [None, None, None])])
def test_only_an_event_that_nobody_knows_says_its_text_beside_its_data(
    path: Path, native: bool, texts: list[str | None]
):
    """And only by our own protocol: of everything else a reader finds the text in the data."""
    delta = replace(event(2, ms=1, kind="text", text="Hi"), type="message.delta")
    lines = recorded(path, [event(1, ms=0, text="seen own-token"), delta, event(3, ms=2)], native=native)
    assert [line.get("text") for line in lines] == texts


def test_data_that_are_no_object_become_one(path: Path):
    assert [line["data"] for line in recorded(path, [event(1, ms=0, data=[1, 2]), event(2, ms=0, data="x")])] == [
        {"value": [1, 2]},
        {"value": "x"},
    ]


def test_a_secret_told_in_pieces_is_noticed(path: Path):
    """By message, however the messages mix."""
    with Tape(path, HEADER) as tape:
        redactor = Redactor(["own-token"])
        recorder = Recorder(tape, redactor)
        for number, (message, piece) in enumerate([("a", "own-"), ("b", "token"), ("a", "token")]):
            recorder.take(event(number, ms=0, kind="text", text=piece, data={"message_id": message, "text": piece}))
        assert redactor.spread == {"a"}
