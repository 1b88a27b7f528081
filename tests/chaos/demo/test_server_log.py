"""The control reader: an event's bytes as they stand in the page."""

import pytest

from reattach_chaos.demo.server_log import LogUnreadable, raw_events, read_ledger, read_status
from reattach_chaos.demo.showing import Logged, content_of

EVENT = '{"id":"evt_1","sequence":1,"type":"message.delta","data":{"text":"a\\u2028 \\ud83d\\ude42","n":1.50}}'


@pytest.mark.parametrize(
    "page",
    [
        '{"events":[%s],"next":"e1.1"}',
        ' { "next" : "e1.1" , "head":[{"events":[1]}], "events" : [ %s ] }\n',
        '{"note":"\\"events\\":[","events":[%s]}',
    ],
)
def test_an_events_text_is_cut_out_unchanged(page):
    """Escapes and digits stay as the server wrote them, wherever the member stands."""
    assert raw_events(page % EVENT) == [EVENT]
    assert raw_events(page % f"{EVENT} ,{EVENT}") == [EVENT, EVENT]
    assert raw_events(page % "") == []


@pytest.mark.parametrize("page", ["", "[]", "{}", '{"events":{}}', '{"events":[{}', "<html>"])
def test_what_is_no_page_is_refused(page):
    """A wrong page must not look like an empty log."""
    with pytest.raises(ValueError, match="not a page"):
        raw_events(page)


def test_a_logged_event_keeps_its_bytes_digest_and_its_content():
    """The digest is of the very text; the content is its data, in order."""
    logged = Logged.read(EVENT)
    assert (logged.sequence, logged.id, logged.type, logged.text) == (1, "evt_1", "message.delta", "a\u2028 🙂")
    assert logged.content == '{"text":"a\u2028 🙂","n":1.5}'
    assert logged.sha256 != Logged.read(EVENT + " ").sha256


def test_members_in_another_order_are_another_content():
    """Byte for byte."""
    assert content_of({"a": 1, "b": 2}) != content_of({"b": 2, "a": 1})


def test_a_server_that_is_gone_is_unreadable():
    """Never an empty log."""
    with pytest.raises(LogUnreadable, match="did not answer"):
        read_status("http://127.0.0.1:1", "r")


def test_a_file_that_is_no_log_is_unreadable(tmp_path):
    """Also one that does not exist: reading must not create it."""
    with pytest.raises(LogUnreadable, match="ledger"):
        read_ledger(tmp_path / "none.db")
    assert list(tmp_path.iterdir()) == []
