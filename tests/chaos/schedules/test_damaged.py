"""What a schedule's file may not be: each is refused with its place, and as the person's fault, not as one of ours."""

import json

import pytest

from reattach.cli import main
from reattach_chaos.schedules import ScheduleError, loads
from reattach_chaos.schedules.settings import DAY_MS, RANGES

FIN = {"fault": "fin", "at": {"place": "after-event", "event": 4}}
HUGE = 10**400


def schedule(*faults, **members):
    """Return the text of a schedule that is right but for what is given."""
    return json.dumps({"reattach": "schedule/1", "id": "x", "seed": 7, "faults": list(faults) or [FIN], **members})


def at(place, **more):
    return {"place": place, **more}


def setting(fault, place, **settings):
    return schedule({"fault": fault, "at": place, "settings": settings})


EVENT, CONNECTING, REQUEST = at("after-event", event=4), at("connecting"), at("after-request")
SUSPEND = {"fault": "suspend", "at": EVENT}

DAMAGED = [
    ("[" * 200_000, "nested deeper than 50 levels"),
    ('{"a":' * 100_000, "nested deeper than 50 levels"),
    (schedule(scenario={"a": json.loads("[" * 60 + "]" * 60)}), "nested deeper than 50 levels"),
    (b'{"reattach":"schedule/1","id":"\xff"}', "not UTF-8: byte 31"),
    (b"\xef\xbb\xbf{}", "not JSON"),
    (b"", "not JSON"),
    (schedule(id="a\ud800b"), "id: half of a surrogate pair"),
    (schedule(scenario={"a": ["\udfff"]}), "scenario.a[0]: half of a surrogate pair"),
    (schedule(scenario={"\ud800": 1}), "scenario: a member's name: half of a surrogate pair"),
    (schedule(server={"heartbeat_ms": float("nan")}), "NaN is no number"),
    (schedule(server={"heartbeat_ms": float("-inf")}), "-Infinity is no number"),
    (schedule(server={"heartbeat_ms": HUGE}), "server.heartbeat_ms: the number is too large"),
    (schedule().replace('"seed": 7', '"seed": 1e999'), "seed: the number is too large"),
    (schedule().replace('"seed": 7', '"seed": ' + "9" * 5000), "not JSON"),
    *((schedule(seed=value), "seed: must be a whole number from 0 to ") for value in (-1, True, 7.0, 0.5, 2**64, None)),
    *(
        (schedule(id=name), "id: must be of letters")
        for name in ("../../evil", "a/b", "a" * 201, "a\nb", "a\n", "a\0b", "né", "..", ".hidden", "-x", "a b", "C:x")
    ),
    *(
        (schedule({**FIN, "times": value}), "faults[0].times: must be a whole number from 1 to 1000")
        for value in (0, 1001, 10**12, True, 1.5)
    ),
    (schedule({**FIN, "nth": 10**20}), "faults[0].nth: must be a whole number from 1 to"),
    (schedule({**FIN, "at": {**EVENT, "event": 10**20}}), "faults[0].at.event: must be a whole number"),
    (schedule({**FIN, "at": {**EVENT, "run": 10**20}}), "faults[0].at.run: must be a whole number"),
    (schedule({**FIN, "at": at("offset", offset=10**30)}), "faults[0].at.offset: must be a whole number"),
    (schedule({**FIN, "at": at("in-character", event=4, width=5)}), "width: must be a whole number from 2 to 4"),
    *(
        (schedule({**SUSPEND, "settings": {"sleep_ms": value}}), "settings.sleep_ms: must be a whole number from 0 to")
        for value in (DAY_MS + 1, -1, True, 0.5, None, "60")
    ),
    (schedule({**SUSPEND, "settings": {"sleep_ms": HUGE}}), "settings.sleep_ms: the number is too large"),
    (setting("server-restart", EVENT, down_ms=10**12), "settings.down_ms: must be a whole number"),
    (setting("latency", CONNECTING, delay_ms=DAY_MS + 1), "settings.delay_ms: must be a whole number"),
    (setting("slow-reader", CONNECTING, delay_ms=DAY_MS + 1), "settings.delay_ms: must be a whole number"),
    (setting("busy", REQUEST, retry_after_ms=DAY_MS + 1), "settings.retry_after_ms: must be a whole number"),
    *(
        (setting("busy", REQUEST, status=status), "settings.status: must be a whole number from 400 to 599")
        for status in (0, 200, 399, 600, 10**9)
    ),
    (setting("bandwidth", CONNECTING, kb_per_s=0), "settings.kb_per_s: must be a whole number from 1"),
    (setting("trickle", CONNECTING, bytes=0), "settings.bytes: must be a whole number from 1"),
    (setting("duplicate", EVENT, events=0), "settings.events: must be a whole number from 1 to 1000"),
    (setting("duplicate", EVENT, events=10**9), "settings.events: must be a whole number from 1 to 1000"),
    (setting("expire", EVENT, keep=10**9), "settings.keep: must be a whole number from 0 to 1000"),
    (setting("new-epoch", EVENT, keep=10**9), "settings.keep: must be a whole number from 0 to 1000"),
]


@pytest.mark.parametrize(("text", "words"), DAMAGED)
def test_a_damaged_schedule_is_refused_with_its_place(text, words):
    """Neither an exception of Python's, nor a case that nobody can play, and never a page of digits."""
    with pytest.raises(ScheduleError) as caught:
        loads(text)
    assert words in str(caught.value)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize("times", sorted(name for name in RANGES if name in ("down_ms", "sleep_ms")))
def test_a_time_may_be_a_day(times):
    """The simulation's clocks do not wait."""
    fault = {"down_ms": "server-restart", "sleep_ms": "suspend"}[times]
    assert loads(setting(fault, EVENT, **{times: DAY_MS})).faults[0].settings == {times: DAY_MS}


def test_a_damaged_file_among_the_saved_ones_is_passed_over_and_named(tmp_path, monkeypatch, capsys):
    """The others are listed and found all the same, and nothing of it is a fault of ours."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / ".reattach" / "chaos" / "7"
    folder.mkdir(parents=True)
    texts = [text if isinstance(text, bytes) else text.encode() for text, _ in DAMAGED]
    for number, text in enumerate(texts):
        (folder / f"damaged-{number}.json").write_bytes(text)
    (folder / "x.json").write_text(schedule())
    assert main(["chaos", "list", "--json"]) == 0
    out, err = capsys.readouterr()
    assert [json.loads(line)["id"] for line in out.splitlines()] == ["x"]
    assert err.count("passed over: .reattach/chaos/7/damaged-") == len(err.splitlines()) == len(texts)
    for command in ("replay", "shrink"):
        assert main(["chaos", command, "nope"]) == 64
        assert "no saved case 'nope'" in capsys.readouterr().err
        assert main(["chaos", command, str(folder / "damaged-0.json")]) == 64
        assert "damaged-0.json: not a schedule: nested deeper" in capsys.readouterr().err
