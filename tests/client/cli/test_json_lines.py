"""The commands on a journal in JSON lines: `--journal runs.jsonl`."""

import json


def test_every_command_works_on_json_lines(reattach, server, play, tmp_path):
    """Run, list, show, export and check; a second run of the same key prints the result and starts nothing."""
    journal = tmp_path / "runs.jsonl"
    where = ("--journal", str(journal))
    assert reattach("run", server.url, "--data", play("short"), "--key", "json-lines", "-q", *where).code == 0
    assert reattach("run", server.url, "--data", play("short"), "--key", "json-lines", "-q", *where).code == 0
    assert "json-lines" in reattach("runs", "--all", *where).out
    shown = reattach("journal", "show", "json-lines", *where).out
    assert "status     completed" in shown
    exported = reattach("journal", "export", "json-lines", *where).lines
    assert [each["position"] for each in exported] == list(range(1, len(exported) + 1))
    checked = reattach("journal", "check", *where)
    assert (checked.code, "valid" in checked.out) == (0, True)
    first = json.loads(journal.read_text().partition("\n")[0])
    assert first["reattach"] == "journal/1"


def test_a_changed_byte_in_it_is_found(reattach, server, play, tmp_path):
    journal = tmp_path / "runs.jsonl"
    reattach("run", server.url, "--data", play("short"), "--key", "bad", "-q", "--journal", str(journal))
    journal.write_text(journal.read_text().replace('"kind":"created"', '"kind":"creates"'))
    checked = reattach("journal", "check", "--journal", str(journal))
    assert checked.code == 1
    assert "unreadable from byte" in checked.out
