"""`runs`, `cancel` and `journal`: what is in the journal and what becomes of a run."""

import json
import sqlite3

import pytest

import reattach as library
from reattach.cli.runs import age


def test_runs_lists_what_needs_something_and_says_what_to_type(reattach, server, play):
    """A table, a count, and the next command; --all lists the others, too."""
    reattach("run", server.url, "--data", play("endless"), "--key", "goes-on", "--timeout", "1", "-q")
    reattach("run", server.url, "--data", play("asks"), "--key", "asks", "-q")
    reattach("run", server.url, "--data", play("short"), "--key", "done", "-q")
    said = reattach("runs")
    assert said.code == 0
    header, *rows, closing = said.out.splitlines()
    assert header.split() == ["RUN", "KEY", "STATUS", "CURSOR", "AGE", "NEEDS"]
    assert [row.split()[1] for row in rows] == ["asks", "goes-on"]
    assert rows[0].endswith("respond: 1 approval")
    assert "requires action" in rows[0]
    assert rows[1].endswith("follow")
    run_id = rows[1].split()[0]
    assert closing == f"2 need something, 1 finished (--all).     Next: reattach follow {run_id}"
    assert "done" in reattach("runs", "--all").out


def test_runs_makes_no_file_and_needs_no_network(reattach, home):
    said = reattach("runs")
    assert said.out == "no runs yet.     Next: reattach run URL INPUT\n"
    assert not home.exists()


def test_runs_of_one_server_only(reattach, server, play):
    """Over all servers without it; then the table names them."""
    reattach("run", server.url, "--data", play("short"), "--key", "here", "-q")
    reattach("run", "http://127.0.0.1:9", "x", "--key", "there", "--give-up-after", "0.1", "-q")
    assert "SERVER" in reattach("runs", "--all").out
    only = reattach("runs", "--server", "http://127.0.0.1:9/", "--json").lines
    assert [(each["key"], each["run"], each["server"]) for each in only] == [("there", None, "http://127.0.0.1:9")]


def test_a_narrow_terminal_gets_fewer_columns(reattach, server, play, monkeypatch):
    """What a run needs stays to the last; a pipe gets them all."""
    reattach("run", server.url, "--data", play("endless"), "--key", "narrow", "--timeout", "1", "-q")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "44")
    header, row, _ = reattach("runs").out.splitlines()
    assert header.split() == ["RUN", "KEY", "NEEDS"]
    assert len(row) <= 44


@pytest.mark.parametrize(("seconds", "told"), [(0.2, "0 s"), (61, "1 min"), (7_300, "2 h"), (90_000, "1 d")])
def test_an_age_is_told_in_its_largest_unit(seconds, told):
    assert age(seconds) == told


def test_cancel_tells_the_outcome_and_what_is_not_undone(reattach, server, play):
    """0: it was cancelled, as asked. Following it afterwards is 1, as for every cancelled run."""
    reattach("run", server.url, "--data", play("endless"), "--key", "stop-me", "--timeout", "1", "-q")
    said = reattach("cancel", "stop-me")
    assert said.code == 0
    assert "cancelled" in said.err
    assert "op_2" in said.err
    assert "cannot be undone" in said.err
    assert reattach("follow", "stop-me").code == 1


def test_cancelling_what_has_completed_tells_the_truth(reattach, server, play):
    reattach("run", server.url, "--data", play("short"), "--key", "too-late", "-q")
    said = reattach("cancel", "too-late", "--json")
    assert said.code == 0
    assert said.lines[-1]["status"] == "completed"


def test_a_journal_is_shown_to_people(reattach, server, play):
    """The facts, then a line an event; what is not confirmed is marked."""
    reattach("run", server.url, "--data", play("endless"), "--key", "shown", "--timeout", "1", "-q")
    said = reattach("journal", "show", "shown")
    assert said.code == 0
    for told in ("key        shown", f"server     {server.url}", "status     running", '"a beginning"', "tool.call"):
        assert told in said.out


def test_an_export_is_the_log_one_event_a_line(reattach, server, play):
    run_id = reattach("run", server.url, "--data", play("tools"), "--key", "out", "--json").kinds("run")[0]["run"]
    said = reattach("journal", "export", "out")
    logged = [json.loads(body) for body in server.log(run_id)]
    assert said.code == 0
    assert [line["position"] for line in said.lines] == list(range(1, len(logged) + 1))
    for name in ("id", "type", "data", "sequence"):
        assert [line[name] for line in said.lines] == [each[name] for each in logged]


def test_a_good_journal_is_valid_also_while_it_is_written(reattach, server, home):
    """Read only: a writer at work is no fault, and nothing is changed."""
    home.mkdir()
    with library.Client(server.url, home / "journal.db") as client:
        run = client.start({"scenario": "tools"}, key="used")
        next(run)
        said = reattach("journal", "check")
        assert (said.code, said.out.split()[-1]) == (0, "valid")
        for _ in run:
            pass
    (told,) = reattach("journal", "check", "--json").lines
    assert (told["ok"], told["runs"], told["violations"]) == (True, 1, [])
    assert told["events"] > 5


@pytest.mark.parametrize(
    ("harm", "told"),
    [
        ("UPDATE reattach_batches SET first = first + 1, batch = batch + 1", "1 to 1 are missing"),
        ("UPDATE reattach_batches SET first = first + 1", "holds"),
        ("UPDATE reattach_marks SET applied = 999", "confirmed 999, and only"),
        ("UPDATE reattach_batches SET events = '[1]'", "cannot be read"),
        ("UPDATE reattach_runs SET outcome = '{}'", "its outcome cannot be read"),
        ("DELETE FROM reattach_runs", "which is not there"),
        ("INSERT INTO reattach_gaps (run, at, reason, noticed_at) VALUES (1, 2, 'hole', 'now')", "is there twice"),
    ],
)
def test_a_journal_that_breaks_its_law_is_invalid(reattach, server, play, home, harm, told):
    """1, and each violation is named: a hole, a doubled place, a mark above what is committed, events that are none."""
    reattach("run", server.url, "--data", play("short"), "--key", "law", "-q")
    with sqlite3.connect(home / "journal.db") as connection:
        connection.execute(harm)
    connection.close()
    said = reattach("journal", "check")
    assert said.code == 1
    assert told in said.out
    assert "INVALID" in said.out


def test_a_file_that_is_no_journal_is_invalid(reattach, tmp_path):
    (tmp_path / "text.db").write_text("not a database, whatever its name says, and long enough to have a head")
    said = reattach("journal", "check", "--journal", tmp_path / "text.db")
    assert said.code == 1
    assert "unreadable" in said.out


@pytest.mark.parametrize("words", [["runs"], ["journal", "show", "k"], ["run", "http://127.0.0.1:1", "x"]])
def test_a_mistyped_journal_is_left_where_it_is(reattach, tmp_path, words):
    """Somebody's own file is neither moved nor overwritten, and the command line is called wrong."""
    mine = tmp_path / "mine.yaml"
    mine.write_text("reattach: scenario/1\n")
    said = reattach(*words, "--journal", mine)
    assert said.code == 64
    assert "of another kind, no journal. It was left as it is" in said.err
    assert mine.read_text() == "reattach: scenario/1\n"
    assert list(tmp_path.glob("mine*")) == [mine]


def test_a_damaged_journal_is_put_aside_and_the_command_goes_on(reattach, server, play, home):
    """Said on stderr; the run is found again by its id, and shown from the beginning."""
    run_id = reattach("run", server.url, "--data", play("short"), "--key", "dam", "--json").kinds("run")[0]["run"]
    for name in ("journal.db", "journal.db-wal"):
        if (home / name).exists():
            (home / name).write_bytes(b"\0" * 8192)
    said = reattach("follow", server.url, run_id)
    assert said.code == 0
    assert "JournalDamaged" in said.err
    assert said.out == "one two three"


def test_pruning_a_journal_keeps_what_a_key_means(reattach, server, play, home):
    """The count; then the run is shown with what is missing, and starting the work again is still attaching to it."""
    reattach("run", server.url, "--data", play("tools"), "--key", "old", "-q")
    reattach("run", server.url, "--data", play("endless"), "--key", "goes-on", "--timeout", "1", "-q")
    said = reattach("journal", "prune", home / "journal.db", "--older-than", "0s")
    assert (said.code, said.out) == (0, "1 run pruned: events removed; keys, ids and outcomes kept\n")
    assert "events are missing: they are no longer kept" in reattach("journal", "show", "old").out
    assert reattach("journal", "check").code == 0
    (told,) = reattach("journal", "prune", "--older-than", "0s", "--json").lines
    assert (told["kind"], told["runs"]) == ("pruned", 0)
    again = reattach("run", server.url, "--data", play("tools"), "--key", "old", "--json")
    assert (again.code, again.lines[-1]["status"]) == (0, "completed")


@pytest.mark.parametrize("words", [[], ["--older-than", "30"], ["--older-than", "-1d"], ["--older-than", "1y"]])
def test_pruning_needs_an_age_with_its_unit(reattach, home, words):
    assert reattach("journal", "prune", *words).code == 64
    assert not home.exists()


def test_pruning_a_journal_that_is_not_there_makes_none(reattach, home, tmp_path):
    assert reattach("journal", "prune", "--older-than", "1d").out.startswith("0 runs pruned")
    assert not home.exists()
    assert reattach("journal", "prune", tmp_path / "none.db", "--older-than", "1d").code == 64
    assert reattach("journal", "prune", "a.db", "--journal", "b.db", "--older-than", "1d").code == 64
