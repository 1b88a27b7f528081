"""`reattach run` and `reattach follow` in this process, against a real server: text, lines, keys and exit codes."""

import io
import json
import os
import stat
import sys

import pytest

import reattach as library


def test_text_is_on_stdout_and_status_on_stderr(reattach, server, play):
    """Printing every text in order prints the view; tools and the end are said beside it."""
    said = reattach("run", server.url, "--data", play("tools"), "--key", "text")
    assert said.code == 0
    assert said.out == "I look. Done"
    for told in (
        "key text",
        "tool charge_card",
        '{"cents": 999}',
        "charge_card done",
        "mail failed",
        "completed",
        "refunded",
    ):
        assert told in said.err


def test_quiet_says_nothing_when_all_is_well(reattach, server, play):
    said = reattach("run", server.url, "--data", play("tools"), "--key", "quiet", "-q")
    assert (said.code, said.out, said.err) == (0, "I look. Done", "")


@pytest.mark.parametrize(
    ("name", "code", "told"),
    [
        ("fails", 1, "upstream_down: the archive is silent"),
        ("asks", 4, "act_1  approval of restart"),
        ("short", 0, "3"),
    ],
)
def test_the_exit_code_is_the_outcome(reattach, server, play, name, code, told):
    """0 good, 1 failed, 4 waits for you; also when the run has long ended."""
    first = reattach("run", server.url, "--data", play(name), "--key", f"exit-{name}")
    assert first.code == code
    assert told in first.err
    assert reattach("follow", f"exit-{name}").code == code


def test_json_lines_tell_the_run_every_event_and_the_end(reattach, server, play):
    """One object a line; `id` is the event's own, `data` the member."""
    said = reattach("run", server.url, "--data", play("tools"), "--key", "lines", "--json")
    assert said.code == 0
    run = said.lines[0]
    assert (run["kind"], run["key"]) == ("run", "lines")
    logged = [json.loads(body) for body in server.log(run["run"])]
    rendered = said.kinds("rendered")
    assert [each["id"] for each in rendered] == [each["id"] for each in logged]
    assert [each["data"] for each in rendered] == [each["data"] for each in logged]
    assert "".join(each["text"] for each in rendered) == "I look. Done"
    assert not any(each["redelivered"] for each in rendered)
    assert {each["phase"] for each in said.kinds("connection")} >= {"attaching", "live"}
    assert said.lines[-1] == {
        "kind": "finished",
        "status": "completed",
        "result": {"refunded": True},
        "evidence": "event",
    }


def test_a_pause_is_told_with_its_actions(reattach, server, play):
    said = reattach("run", server.url, "--data", play("asks"), "--key", "pause", "--json")
    (action,) = said.kinds("action")
    assert (action["id"], action["tool"], action["arguments"]) == ("act_1", "restart", {"service": "shop"})
    assert said.lines[-1]["status"] == "paused"
    assert said.code == 4


def test_the_same_command_follows_an_unfinished_run(reattach, server, play):
    """Said, and with the key that was derived; --new starts another."""
    words = ("run", server.url, "--data", play("endless"), "--timeout", "1")
    first = reattach(*words)
    assert first.code == 3
    assert "WaitTimeout" in first.err
    again = reattach(*words, "--json")
    assert "an unfinished run of this input" in again.err
    other = reattach(*words, "--json", "--new")
    (one,), (two,) = again.kinds("run"), other.kinds("run")
    assert one["run"] in first.err
    assert one["run"] != two["run"]


def test_once_it_has_ended_the_same_command_is_new_work(reattach, server, play):
    words = ("run", server.url, "--data", play("short"), "--json")
    first, second = reattach(*words), reattach(*words)
    assert first.kinds("run")[0]["run"] != second.kinds("run")[0]["run"]
    assert "".join(each["text"] for each in second.kinds("rendered")) == "one two three"


def test_a_key_is_the_same_run_for_ever(reattach, server, play):
    """Nothing is shown again; where to find it is said."""
    words = ("run", server.url, "--data", play("short"), "--key", "for-ever")
    reattach(*words)
    again = reattach(*words)
    assert (again.code, again.out) == (0, "")
    assert "shown before" in again.err
    assert reattach("follow", "for-ever", "--from", "beginning").out == "one two three"


def test_a_key_with_another_input_is_64(reattach, server, play):
    reattach("run", server.url, "one", "--key", "conflict", "-q")
    said = reattach("run", server.url, "two", "--key", "conflict", "--json")
    assert said.code == 64
    assert said.lines[-1]["code"] == "key_conflict"
    assert "KeyConflict: key 'conflict' was used" in said.err


def test_stdin_is_the_input(reattach, server, monkeypatch):
    """One newline at its end is left out, so that the same words by stdin are the same input."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("dear – agent\n".encode())))
    assert reattach("run", server.url, "-", "--key", "stdin", "-q").code == 0
    assert reattach("run", server.url, "dear – agent", "--key", "stdin", "-q").code == 0


@pytest.mark.parametrize(
    ("content", "told"), [(b"{", "is not JSON"), (b"3", "an object, an array or a text"), (None, "cannot be read")]
)
def test_data_that_cannot_be_an_input_is_64(reattach, server, tmp_path, content, told):
    path = tmp_path / "input.json"
    if content is not None:
        path.write_bytes(content)
    said = reattach("run", server.url, "--data", path)
    assert said.code == 64
    assert told in said.err


def test_a_run_is_meant_by_id_key_or_unique_start(reattach, server, play):
    """An exact key wins over being the start of another."""
    for key in ("find", "finder", "other"):
        reattach("run", server.url, "--data", play("short"), "--key", key, "-q")
    run_id = reattach("follow", "other", "--json").kinds("run")[0]["run"]
    assert reattach("follow", run_id, "--json").kinds("run")[0]["key"] == "other"
    assert reattach("follow", "find", "--json").kinds("run")[0]["key"] == "find"
    assert reattach("follow", "oth", "--json").kinds("run")[0]["key"] == "other"
    several = reattach("follow", "fin")
    assert several.code == 64
    assert "start of several runs" in several.err


def test_what_matches_nothing_is_an_id_of_the_server(reattach, server, play, home, tmp_path):
    """From another machine: the journal knows nothing of the run."""
    run_id = reattach("run", server.url, "--data", play("short"), "--key", "away", "--json").kinds("run")[0]["run"]
    elsewhere = ("--journal", tmp_path / "other.db")
    assert reattach("follow", server.url, run_id, *elsewhere).out == "one two three"
    said = reattach("follow", server.url, "run_nobody_knows", *elsewhere)
    assert said.code == 3
    assert "NotFound" in said.err


def test_looking_from_the_beginning_moves_no_mark(reattach, server, play):
    reattach("run", server.url, "--data", play("endless"), "--key", "look", "--timeout", "1", "-q")
    look = reattach("follow", "look", "--from", "beginning", "--timeout", "1", "--json")
    assert look.kinds("rendered")[0]["type"] == "run.created"
    assert not any(each["redelivered"] for each in look.kinds("rendered"))
    on = reattach("follow", "look", "--timeout", "1", "--json")
    assert all(each["redelivered"] for each in on.kinds("rendered"))
    assert len(on.kinds("rendered")) <= 1


def test_an_event_whose_line_could_not_be_written_comes_again_marked(reattach, server, play, monkeypatch):
    """Confirmed is what is out: a full disk behind the pipe loses nothing."""
    with monkeypatch.context() as patch:
        patch.setattr("reattach.cli.lines.Lines.emit", _failing_at("Done"))
        said = reattach("run", server.url, "--data", play("tools"), "--key", "full", "--json")
    assert said.code == 3
    assert "cannot be written" in said.err
    again = reattach("follow", "full", "--json")
    first = again.kinds("rendered")[0]
    assert (first["text"], first["redelivered"]) == ("Done", True)


def _failing_at(text):
    from reattach.cli.lines import Lines

    emit = Lines.emit

    def failing(self, kind, **fields):
        if fields.get("text") == text:
            raise OSError(28, "No space left on device")
        emit(self, kind, **fields)

    return failing


def test_the_journal_is_for_its_owner_alone(reattach, server, home):
    """The folder 0700 and the file 0600, whatever the umask."""
    before = os.umask(0)
    try:
        reattach("run", server.url, "x", "--key", "modes", "-q")
    finally:
        os.umask(before)
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    assert stat.S_IMODE((home / "journal.db").stat().st_mode) == 0o600


def test_a_run_that_another_client_follows_is_busy(reattach, server, play, home):
    """3, who holds it, and what can be done instead; looking on works meanwhile."""
    home.mkdir()
    with library.Client(server.url, home / "journal.db") as client:
        run = client.start({"scenario": "endless"}, key="busy")
        next(iter(run))
        said = reattach("follow", "busy")
        assert said.code == 3
        assert "RunBusy" in said.err
        assert "--from beginning" in said.err
        look = reattach("follow", "busy", "--from", "beginning", "--timeout", "1")
        assert look.out == "a beginning"


def test_a_server_that_nobody_reaches_is_given_up_and_not_forgotten(reattach):
    """3; the intent is listed, and the same command sends the same key again."""
    words = ("run", "http://127.0.0.1:9", "hello", "--give-up-after", "0.2", "--json")
    said = reattach(*words)
    assert said.code == 3
    assert said.lines[-1]["kind"] == "error"
    assert said.lines[-1]["code"] == "reconnect_exhausted"
    assert "connection refused" in said.lines[-1]["message"]
    (listed,) = reattach("runs", "--json").lines
    assert (listed["run"], listed["needs"]) == (None, "follow")
    assert reattach(*words).code == 3
    assert len(reattach("runs", "--json").lines) == 1


def test_the_token_comes_from_the_environment_and_is_never_shown(home, reattach, monkeypatch):
    from reattach_mockserver.bearer import parse_tokens
    from reattach_mockserver.library import Library
    from reattach_mockserver.live import LiveServer
    from reattach_mockserver.settings import Settings

    settings = Settings(scripts=Library(), default="burst", tokens=parse_tokens(["me s3cr3t"]))
    with LiveServer(settings) as guarded:
        words = ("run", guarded.url, "x", "--key", "token", "-v")
        refused = reattach(*words)
        assert refused.code == 3
        assert "NotAuthorized" in refused.err
        monkeypatch.setenv("MY_TOKEN", "s3cr3t")
        said = reattach(*words, "--token-env", "MY_TOKEN")
        assert said.code == 0
        assert "s3cr3t" not in said.out + said.err
        assert b"s3cr3t" not in (home / "journal.db").read_bytes()


def test_a_pause_says_what_it_waits_for(reattach, server, play):
    said = reattach("run", server.url, "--data", play("asks"), "--key", "asked")
    assert said.code == 4
    assert "waits for you:" in said.err
    assert 'act_1  approval of restart {"service": "shop"}' in said.err
