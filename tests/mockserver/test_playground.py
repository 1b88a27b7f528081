"""What the fixture `reattach_server` gives to a test: each name of the surface page, section 6, over a real socket."""

import json
import pathlib
import urllib.error
import urllib.request

import pytest

from mockserver_stage import OPEN, QUICK
from reattach_mockserver.logs.base import RunSettled
from reattach_mockserver.playground import Playground


@pytest.fixture(scope="module")
def shared():
    with Playground() as running:
        yield running


def read(server, run, after=""):
    with urllib.request.urlopen(f"{server.url}/v1/runs/{run}{after}", timeout=20) as answer:
        return json.load(answer)


def settled(server, run):
    """Read the run to its end by long polls; return it."""
    after = ""
    while True:
        page = read(server, run, f"/events?limit=1000&wait_ms=9000{after}")
        if not page["events"]:
            return read(server, run)
        after = f"&after={page['next']}"


def until(server, run, count):
    """Wait until the run's log has so many events."""
    after = 0
    while after < count:
        epoch = read(server, run)["epoch"]
        after += len(read(server, run, f"/events?wait_ms=9000&after={epoch}.{after}")["events"])


def test_each_name_of_the_page_is_there(shared):
    page = ".url .start .events_url .log .counts .expire .restart .new_epoch"
    assert [name for name in page.split() if not hasattr(shared, name[1:])] == []


@pytest.mark.parametrize("form", ["ready", "file", "path", "script"])
def test_a_run_of_whatever_form_is_started_and_its_log_shown(shared, tmp_path, form):
    """A ready one by name, a file by its path or text, a Script; the log is as it was sent."""
    file = tmp_path / "mine.yaml"
    file.write_text("reattach: scenario/1\nname: mine\nclock: virtual\nsteps: [{status: hi}]\n")
    given = {"ready": "failure", "file": str(file), "path": pathlib.Path(file), "script": QUICK}[form]
    run = shared.start(given)
    settled(shared, run)
    with urllib.request.urlopen(f"{shared.events_url(run)}?limit=1000", timeout=20) as answer:
        assert json.load(answer)["events"] == shared.log(run)


def test_the_same_key_is_the_same_run(shared):
    assert shared.start(QUICK, key="mine") == shared.start(QUICK, key="mine") != shared.start(QUICK)


def test_what_was_done_is_counted():
    """Runs, events, effects; calls by route, whatever ids were in them."""
    with Playground() as server:
        run = server.start("hello")
        settled(server, run)
        counts = server.counts
        assert (counts.runs, counts.events, counts.effects) == (1, len(server.log(run)), 1)
        assert server.calls["POST /v1/runs"] == 1
        assert server.calls["GET /v1/runs/{run_id}"] == 1


def test_without_a_run_every_run_expires_and_gets_a_new_epoch():
    """As the page writes it: `.expire()`, `.new_epoch()`; with one, only that one."""
    with Playground() as server:
        runs = [server.start(OPEN) for _ in range(2)]
        for run in runs:
            until(server, run, 3)
        server.expire(runs[0], 2)
        assert [read(server, run)["first_sequence"] for run in runs] == [2, 1]
        server.expire()
        assert [read(server, run)["first_sequence"] for run in runs] == [3, 3]
        server.new_epoch(runs[1])
        server.new_epoch()
        assert [read(server, run)["epoch"].rpartition("-")[2] for run in runs] == ["2", "3"]


def test_an_event_is_published_and_comes_back_as_it_was_sent(shared):
    run = shared.start(OPEN)
    until(shared, run, 3)
    event = shared.publish(run, "vendor.note", {"n": 1}, text="seen")
    assert (event["data"], event["text"]) == ({"n": 1}, "seen")
    assert shared.log(run)[-1] == event
    with pytest.raises(ValueError, match=r"type='run.completed'"):
        shared.publish(run, "run.completed")
    with pytest.raises(KeyError):
        shared.publish("run_nothing", "note")


def test_the_clock_moves_forward(shared):
    """A wait of an hour is over at once; what has settled takes no event."""
    run = shared.start(OPEN)
    until(shared, run, 3)
    shared.advance(3_600)
    assert settled(shared, run)["status"] == "completed"
    with pytest.raises(RunSettled):
        shared.publish(run, "note")


def test_a_restart_breaks_connections_and_loses_nothing(shared):
    """The same port, the same log; a run that was under way goes on."""
    run = shared.start(OPEN)
    until(shared, run, 3)
    before = shared.log(run)
    shared.restart()
    assert shared.log(run) == before
    assert read(shared, run)["status"] == "running"


def test_a_scenario_that_nobody_has_is_named(shared, tmp_path):
    """The ready ones are listed, a broken file is told by line and column."""
    with pytest.raises(ValueError, match=r"'helo': a path, or one of .*hello"):
        shared.start("helo")
    file = tmp_path / "broken.yaml"
    file.write_text("reattach: scenario/1\nsteps: [{sya: hi}]\n")
    with pytest.raises(ValueError, match=r"broken.yaml:2:9: a step with 'sya'"):
        shared.start(file)
    with pytest.raises(urllib.error.HTTPError) as caught:
        read(shared, "run_nothing")
    caught.value.close()
