"""`respond` and `reconcile`: what waits for a person, and the person's word."""

import io
import sqlite3

import pytest

from reattach.stores import open_store
from reattach.stores.base import Intent


@pytest.fixture
def typed(monkeypatch):
    """Return a function that lets a person type lines."""

    def lines(*said: str) -> None:
        monkeypatch.setattr("sys.stdin", io.StringIO("".join(f"{line}\n" for line in said)))

    return lines


def paused(reattach, server, play, key, scenario="asks-two"):
    said = reattach("run", server.url, "--data", play(scenario), "--key", key)
    assert said.code == 4
    return said


def test_a_paused_run_says_what_to_type(reattach, server, play):
    """What it waits for, from which sub-agent, and the whole command that answers it."""
    said = paused(reattach, server, play, "a-says")
    run_id = reattach("runs", "--json").kinds("run")[0]["run"]
    told = said.err.splitlines()
    begin = told.index(f"run {run_id} waits for you:")
    assert told[begin + 1] == '  act_1  approval of refund (sub-agent billing) {"cents": 999}'
    assert told[begin + 2] == "  act_2  client_tool of clock {}"
    assert told[begin + 3] == f"Answer: reattach respond {run_id} act_1 approve act_2 JSON"
    assert reattach("runs").out.endswith(f"1 needs something, 0 finished.     Next: reattach respond {run_id}\n")


@pytest.mark.parametrize(
    ("decision", "text", "refunded"), [("approve", "Refunded.", True), ("reject", "Then not.", False)]
)
def test_answers_are_sent_and_the_run_that_goes_on_is_shown(reattach, server, play, decision, text, refunded):
    """Text on stdout, exit code of its end; then nothing waits any more."""
    key = f"a-sent-{decision}"
    paused(reattach, server, play, key)
    said = reattach("respond", key, "act_1", decision, "act_2", '{"now": 12}', "--reason", "too dear")
    assert (said.code, said.out) == (0, text)
    assert "completed" in said.err
    assert reattach("runs").out.startswith("0 need something, 2 finished")
    told = reattach("run", server.url, "--data", play("asks-two"), "--key", key, "--json")
    assert told.lines[-1]["result"] == {"refunded": refunded}


def test_an_interrupt_at_a_question_says_that_nothing_was_sent(reattach, server, play, monkeypatch):
    """The run waits and does not "go on"; what to type is `respond`."""

    class Interrupted(io.StringIO):
        def readline(self, *_):
            raise KeyboardInterrupt

    paused(reattach, server, play, "a-leaves")
    monkeypatch.setattr("sys.stdin", Interrupted())
    said = reattach("respond", "a-leaves")
    assert said.code == 130
    assert said.err.splitlines()[-1] == (
        "interrupted; nothing was sent, the run waits. Again: reattach respond a-leaves"
    )
    assert "respond: 1 approval" in reattach("runs").out


def test_the_reason_goes_with_each_rejection(reattach, server, play):
    paused(reattach, server, play, "a-why")
    run_id = reattach("respond", "a-why", "act_2", "reject", "act_1", "reject", "--reason", "too dear", "--json").kinds(
        "run"
    )[0]["run"]
    sent = [line["data"]["response"] for line in reattach("journal", "export", run_id).lines[1:3]]
    assert sent == [
        {"action_id": "act_1", "decision": "reject", "reason": "too dear"},
        {"action_id": "act_2", "error": {"code": "rejected", "message": "too dear"}},
    ]


def test_the_same_answers_again_are_the_same_run(reattach, server, play):
    """By the id of the paused run, since its key names the run that goes on."""
    paused(reattach, server, play, "a-again")
    first = reattach("runs", "--json").kinds("run")[0]["run"]
    words = ("respond", first, "act_1", "approve", "act_2", "12")
    told = [reattach(*words, "--json") for _ in range(2)]
    assert [said.code for said in told] == [0, 0]
    assert len({said.kinds("run")[0]["run"] for said in told}) == 1
    assert len(reattach("runs", "--all", "--json").lines) == 2
    assert reattach("respond", "a-again", "act_1", "approve", "act_2", "12").code == 64


def test_other_answers_come_too_late(reattach, server, play):
    paused(reattach, server, play, "a-late")
    first = reattach("runs", "--json").kinds("run")[0]["run"]
    reattach("respond", first, "act_1", "approve", "act_2", "12")
    said = reattach("respond", first, "act_1", "reject", "act_2", "12", "--json")
    assert said.code == 3
    assert said.kinds("error")[0]["code"] == "action_resolved"


def test_without_answers_each_is_asked_for(reattach, server, play, typed):
    """On stderr, a line each; what is no answer is asked for again."""
    paused(reattach, server, play, "a-asked")
    typed("perhaps", "approve", "{oops", '{"now": 12}')
    said = reattach("respond", "a-asked")
    assert (said.code, said.out) == (0, "Refunded.")
    assert 'act_1  approval of refund (sub-agent billing) {"cents": 999}' in said.err
    assert "'perhaps' is no answer to act_1: approve, reject or a JSON value is needed. Nothing was sent." in said.err
    assert said.err.count("approve or reject: ") == 2
    assert said.err.count("the result as JSON, or reject: ") == 2


def test_a_person_who_leaves_has_answered_nothing(reattach, server, play, typed):
    """4: it still waits."""
    paused(reattach, server, play, "a-leaves")
    typed("approve")
    said = reattach("respond", "a-leaves")
    assert said.code == 4
    assert "no answer to act_2. Nothing was sent; the run waits." in said.err
    assert len(reattach("runs", "--all", "--json").lines) == 1


def test_an_answer_that_is_missing_is_named(reattach, server, play):
    """4, and the command that asks for each."""
    paused(reattach, server, play, "a-missing")
    said = reattach("respond", "a-missing", "act_1", "approve")
    assert said.code == 4
    assert "'act_2' (client_tool of clock) has no answer. Nothing was sent." in said.err
    assert "To be asked for each: reattach respond a-missing" in said.err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("act_1",), "'act_1' has no answer beside it"),
        (("act_9", "approve"), "there is no action 'act_9', there is act_1, act_2. Nothing was sent."),
        (("act_1", "maybe"), "'maybe' is no answer to act_1"),
        (("act_1", "approve", "act_2", "approve"), "asks for a tool's result"),
        (("--json",), "with --json nobody is asked"),
    ],
)
def test_a_wrong_answer_is_a_wrong_argument(reattach, server, play, words, told):
    """64, and nothing was sent."""
    paused(reattach, server, play, "a-wrong")
    said = reattach("respond", "a-wrong", *words)
    assert said.code == 64
    assert told in said.err
    assert len(reattach("runs", "--all", "--json").lines) == 1


def test_a_run_that_waits_for_nothing_takes_no_answer(reattach, server, play):
    reattach("run", server.url, "--data", play("short"), "--key", "a-over", "-q")
    said = reattach("respond", "a-over", "act_1", "approve")
    assert said.code == 64
    assert "waits for no answer: it is completed. Nothing was sent." in said.err


def test_a_run_that_this_journal_does_not_know_is_answered_with_its_server(reattach, server, play, tmp_path):
    """`respond URL RUN …`."""
    paused(reattach, server, play, "a-elsewhere")
    run_id = reattach("runs", "--json").kinds("run")[0]["run"]
    words = (run_id, "act_1", "approve", "act_2", "12", "--journal", str(tmp_path / "other.db"))
    assert reattach("respond", *words).code == 64
    said = reattach("respond", server.url, *words)
    assert (said.code, said.out) == (0, "Refunded.")


def test_the_key_of_a_job_means_its_newest_run(reattach, server, play):
    """`follow`, `cancel`: what was answered is over."""
    paused(reattach, server, play, "a-newest")
    said = reattach("respond", "a-newest", "act_1", "approve", "act_2", "12", "--json")
    newest = said.kinds("run")[0]["run"]
    followed = reattach("follow", "a-newest", "--from", "beginning", "--json")
    assert followed.code == 0
    assert followed.kinds("run")[0]["run"] == newest


def test_cancel_names_what_is_not_undone_in_json_too(reattach, server, play):
    """The inventory, an operation each."""
    reattach("run", server.url, "--data", play("endless"), "--key", "a-inventory", "--timeout", "1", "-q")
    said = reattach("cancel", "a-inventory", "--json")
    (operation,) = said.kinds("finished")[0]["operations"]
    assert (operation["id"], operation["status"], operation["reversible"]) == ("op_2", "committed", False)


def test_cancelling_too_late_names_what_was_done(reattach, server, play):
    reattach("run", server.url, "--data", play("tools"), "--key", "a-done", "-q")
    said = reattach("cancel", "a-done")
    assert said.code == 0
    assert "charge_card  op_1  committed, not known whether it can be undone" in said.err


# reconcile ----------------------------------------------------------------------------------------------------------------


def orphan(home, key, server):
    """Leave a start of which nobody knows what became of it."""
    home.mkdir(exist_ok=True)
    store = open_store(home / "journal.db")
    store.open()
    row, _ = store.intend(Intent(server, "native", key, '{"input":"x"}', "a" * 64))
    store.need(row.run, "reconcile")
    store.close()


def test_a_start_that_nobody_knows_of_is_listed_with_what_to_type(reattach, server, home):
    orphan(home, "lost", server.url)
    said = reattach("runs").out
    assert said.splitlines()[1].split() == ["-", "lost", "unknown", "-", "0", "s", "reconcile"]
    assert said.endswith("Next: reattach reconcile lost --run ID (or --not-created)\n")


def test_a_persons_word_names_the_run(reattach, server, home, play):
    """Nobody is asked; then it is followed like any other."""
    run_id = reattach("run", server.url, "--data", play("short"), "--journal", str(home) + ".db", "--json").kinds(
        "run"
    )[0]["run"]
    orphan(home, "a-found", server.url)
    said = reattach("reconcile", "a-found", "--run", run_id)
    assert (said.code, said.out) == (0, f"a-found is run {run_id}.     Next: reattach follow {run_id}\n")
    assert reattach("follow", "a-found").out == "one two three"


def test_a_persons_word_frees_the_key(reattach, server, home, play):
    orphan(home, "a-free", server.url)
    said = reattach("reconcile", "a-free", "--not-created", "--json")
    assert said.code == 0
    assert said.lines == [{"kind": "reconciled", "key": "a-free", "server": server.url, "run": None}]
    assert reattach("run", server.url, "--data", play("short"), "--key", "a-free").out == "one two three"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("nobody", "--not-created"), "the journal knows no start 'nobody'"),
        (("a-answered", "--run", "run_9"), "was answered: it made run"),
        (("twice", "--not-created"), "was used on several servers"),
        (("twice",), "one of the arguments --run --not-created is required"),
        (("twice", "--run", "x", "--not-created"), "not allowed with"),
    ],
)
def test_a_word_that_cannot_be_right_changes_nothing(reattach, server, home, play, words, told):
    """64."""
    reattach("run", server.url, "--data", play("short"), "--key", "a-answered", "-q")
    for url in (server.url, "http://127.0.0.1:9"):
        orphan(home, "twice", url)
    with sqlite3.connect(home / "journal.db") as connection:
        before = connection.execute("SELECT * FROM reattach_runs").fetchall()
        said = reattach("reconcile", *words)
        assert connection.execute("SELECT * FROM reattach_runs").fetchall() == before
    connection.close()
    assert said.code == 64
    assert told in said.err


def test_which_server_is_said_where_a_key_was_used_on_several(reattach, server, home):
    for url in (server.url, "http://127.0.0.1:9"):
        orphan(home, "two", url)
    assert reattach("reconcile", "two", "--not-created", "--server", "http://127.0.0.1:9").code == 0
    assert [line["server"] for line in reattach("runs", "--json").lines] == [server.url]
