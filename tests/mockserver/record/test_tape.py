"""The file of a recording: made, gone on with, and never another's."""

import json
from pathlib import Path

import pytest

from reattach_mockserver.record.tape import Header, Tape, TapeError

HEADER = Header(profile="native", recorded_at="2026-01-01T00:00:00.000Z", run_id="run_1", server="http://h")


def line(number: int, **more: object) -> dict[str, object]:
    return {"at_ms": number * 10, "id": f"evt_{number}", "type": "note", "data": {"n": number}, **more}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.jsonl"


def written(path: Path, *lines: dict[str, object]) -> list[bool]:
    with Tape(path, HEADER) as tape:
        new = [tape.add(each) for each in lines]
        tape.finish()
    return new


def objects(path: Path) -> list[dict[str, object]]:
    return [json.loads(text) for text in path.read_bytes().splitlines()]


def test_the_first_line_says_whose_run_it_is(path: Path):
    """And each other one is an event; no header of HTTP is anywhere."""
    assert written(path, line(1)) == [True]
    assert objects(path) == [
        {
            "reattach": "recording/1",
            "profile": "native",
            "recorded_at": "2026-01-01T00:00:00.000Z",
            "run": {"id": "run_1", "server": "http://h"},
        },
        line(1),
    ]


def test_a_line_is_out_when_it_was_added(path: Path):
    """Who reads along sees it; a kill after it costs nothing."""
    with Tape(path, HEADER) as tape:
        tape.add(line(1))
        assert objects(path)[-1] == line(1)


def test_what_is_there_is_passed_over_and_what_is_not_is_added(path: Path):
    """The header's time stays that of the beginning."""
    written(path, line(1), line(2))
    with Tape(path, Header(profile="native", recorded_at="later", run_id="run_1", server="http://h")) as tape:
        assert (tape.made, tape.length, tape.last_ms, tape.ends) == (False, 2, 20, "note")
        assert [tape.add(line(number)) for number in (1, 2, 3)] == [False, False, True]
        tape.finish()
    assert [each.get("id") for each in objects(path)] == [None, "evt_1", "evt_2", "evt_3"]
    assert objects(path)[0]["recorded_at"] == "2026-01-01T00:00:00.000Z"


@pytest.mark.parametrize("left", [1, 5, 20, 40, 56])
def test_half_a_line_comes_again(path: Path, left: int):
    """Cut at any byte, as a kill in the middle of a write leaves it."""
    written(path, line(1), line(2))
    whole = path.read_bytes()
    last = whole.rindex(b"\n", 0, -1) + 1
    path.write_bytes(whole[: last + left])
    written(path, line(1), line(2), line(3))
    assert [each.get("id") for each in objects(path)] == [None, "evt_1", "evt_2", "evt_3"]


@pytest.mark.parametrize("damage", [b"\0" * 40 + b"\n", b"{\n", b"[]\n", b"\0" * 10])
def test_a_damaged_end_comes_again(path: Path, damage: bytes):
    """What a lost power supply leaves behind the last line that reached the disk."""
    written(path, line(1))
    good = path.read_bytes()
    path.write_bytes(good + damage)
    assert written(path, line(1)) == [False]
    assert path.read_bytes() == good
    path.write_bytes(good + damage)
    assert written(path, line(1), line(2)) == [False, True]
    assert [each.get("id") for each in objects(path)] == [None, "evt_1", "evt_2"]


def test_half_a_header_is_begun_anew(path: Path):
    path.write_bytes(b'{"reattach":"reco')
    assert written(path, line(1)) == [True]
    assert objects(path)[0]["reattach"] == "recording/1"


def test_damage_in_the_middle_is_somebody_elses_and_stays(path: Path):
    """A file that a person has changed is not shortened to what we understand of it."""
    written(path, line(1), line(2))
    changed = path.read_bytes().replace(b'{"at_ms":10', b'{"at_ms":')
    path.write_bytes(changed)
    with pytest.raises(TapeError, match=r"run.jsonl:2: is no event, and others follow it"):
        Tape(path, HEADER)
    assert path.read_bytes() == changed


@pytest.mark.parametrize(
    "content", [b"hello\n", b"[]\n", b'{"type":"x"}\n', b'{"reattach":"scenario/1"}\n', b'{"reattach":"recording/2"}\n']
)
def test_a_file_that_is_no_recording_is_not_touched(path: Path, content: bytes):
    path.write_bytes(content)
    with pytest.raises(TapeError, match="is there already, and is no recording"):
        Tape(path, HEADER)
    assert path.read_bytes() == content


@pytest.mark.parametrize("other", [{"run_id": "run_2"}, {"server": "http://g"}, {"profile": "other"}])
def test_another_runs_recording_is_not_touched(path: Path, other: dict[str, str]):
    written(path, line(1))
    before = path.read_bytes()
    named = {"profile": "native", "run_id": "run_1", "server": "http://h", "recorded_at": "", **other}
    with pytest.raises(
        TapeError, match="is there already, a recording of run 'run_1' of http://h by the profile 'native'"
    ):
        Tape(path, Header(**named))
    assert path.read_bytes() == before


def test_other_events_than_those_that_are_there_are_an_error(path: Path):
    """A log that was replaced under the same id must not be glued to the old one."""
    written(path, line(1), line(2))
    with Tape(path, HEADER) as tape:
        assert tape.add(line(1)) is False
        with pytest.raises(TapeError, match=r"run.jsonl:3: holds the event \('evt_2', 'note'\), the run has \('evt_9'"):
            tape.add(line(9))


def test_a_run_with_fewer_events_is_not_finished(path: Path):
    written(path, line(1), line(2))
    with Tape(path, HEADER) as tape:
        tape.add(line(1))
        with pytest.raises(TapeError, match="holds 2 events, the run has 1"):
            tape.finish()


def test_one_process_at_a_time(path: Path):
    """Two would write each event twice. A file that got nothing is not left behind by either."""
    with Tape(path, HEADER), pytest.raises(TapeError, match="is being recorded by another process") as caught:
        Tape(path, HEADER)
    assert caught.value.busy
    assert not path.exists()


def test_what_no_reader_could_send_on_is_mended(path: Path):
    """Half a surrogate pair, legal only as an escape of JSON; all else is written as it is."""
    written(path, line(1, data={"\ud800": ["a\udc00b", "🙂\u2028é"], "n": 1.5}))
    assert objects(path)[1]["data"] == {"\ufffd": ["a\ufffdb", "🙂\u2028é"], "n": 1.5}
    assert "🙂\u2028é".encode() in path.read_bytes()
