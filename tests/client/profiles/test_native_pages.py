"""The native protocol's pages: the text of each event is the server's own, and a page begins as a stream would."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reattach.core.messages import Opened, Received
from reattach.profiles import Native
from reattach.profiles.base import Unreadable
from reattach.testing import frames

RUN = frames.RUN
REST = {"next": "e1.2", "cursor_id": None, "epoch": "e1", "status": "running", "last_sequence": 2}


def body(events: list[str], **rest: object) -> bytes:
    members = frames.compact({**REST, **rest})[1:]
    return f'{{"events":[{",".join(events)}],{members}'.encode()


def test_the_first_page_says_what_a_stream_begins_with() -> None:
    page = Native().paged(RUN, None, body([frames.event_json(1), frames.event_json(2)], protocol=1), first=True)
    opened, received = Native().reader(RUN).read(page.frames)
    assert opened == Opened("e1", "e1.0", 0, None, 2)
    assert isinstance(received, Received)
    assert [each.cursor for each in received.arrivals] == ["e1.1", "e1.2"]
    assert (page.following, page.last, page.settled) == ("e1.2", True, False)


@pytest.mark.parametrize(("stated", "doubts"), [({}, 0), ({"protocol": 1}, 0), ({"protocol": 2}, 1)])
def test_a_page_that_names_no_version_leaves_nothing_unproven(stated: dict[str, int], doubts: int) -> None:
    """PROTOCOL, 3: a page has no member for it, so whoever polls the reference server was warned of nothing; another is told."""
    page = Native().paged(RUN, None, body([], **stated), first=True)
    (opened,) = Native().reader(RUN).read(page.frames)
    assert isinstance(opened, Opened)
    assert len(opened.doubts) == doubts


def test_an_event_of_a_page_is_the_same_as_one_of_a_stream() -> None:
    """Its digest is of the server's own bytes, odd spaces and all: else the same event would be a conflict."""
    text = '{ "id":"evt_e1_1", "prev_id":null,\t"sequence":1 ,"type":"x","data":{"a": [1 , 2.50, "\\u00e9"]}}'
    page = Native().paged(RUN, None, body([text], next="e1.1"), first=True)
    (_, received) = Native().reader(RUN).read(page.frames)
    assert isinstance(received, Received)
    assert received.arrivals[0].stored == text


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)
SPACE = st.sampled_from(["", " ", "\n\t ", "\r\n"])


@given(values=st.lists(JSON, max_size=5), before=JSON, space=SPACE, ascii=st.booleans())
def test_every_event_is_cut_out_as_it_is(values: list[object], before: object, space: str, ascii: bool) -> None:
    """For any JSON in any spacing, wherever in the page the events are."""
    texts = [json.dumps(value, ensure_ascii=ascii) for value in values]
    told = f",{space}".join(texts)
    first = json.dumps({"x": before, **REST}, ensure_ascii=ascii)[:-1]
    page = f'{space}{first},{space}"events"{space}:{space}[{space}{told}{space}]{space},"end":{{}}}}{space}'
    found = Native().paged(RUN, "e1.0", page.encode("utf-8", "replace"), first=False)
    expected = [text.encode("utf-8", "replace").decode() for text in texts]
    assert [frame.data for frame in found.frames] == expected


def test_the_oldest_kept_is_asked_for_by_its_name_and_answered_by_its_cursor() -> None:
    call = Native().page(RUN, "earliest", 2.5)
    assert call.path == f"/v1/runs/{RUN}/events?limit=1000&wait_ms=2500&after=earliest"
    page = Native().paged(RUN, "earliest", body([], first_sequence=7, next="e1.6", last_sequence=9), first=True)
    (opened,) = Native().reader(RUN).read(page.frames)
    assert isinstance(opened, Opened)
    assert (opened.cursor, opened.sequence) == ("e1.6", 6)


def test_a_page_is_the_last_when_it_reaches_the_head() -> None:
    """Without a head only an empty page is; an empty page always is, or it would be asked for without end."""
    assert not Native().paged(RUN, None, body([frames.event_json(1)], next="e1.1", last_sequence=5), first=False).last
    assert Native().paged(RUN, None, body([], next="e1.1", last_sequence=5), first=False).last
    bare = b'{"events":[%s],"next":"e1.1"}' % frames.event_json(1).encode()
    assert not Native().paged(RUN, None, bare, first=False).last
    assert Native().paged(RUN, None, body([], status="completed"), first=False).settled


def test_an_event_in_a_page_is_never_a_control_frame() -> None:
    """A type that begins with `stream.` is an event's own word there."""
    page = Native().paged(RUN, None, body([frames.event_json(1, type="stream.closing")], next="e1.1"), first=False)
    assert page.frames[0].event == "message"


@pytest.mark.parametrize(
    "odd",
    [
        b"",
        b"[]",
        b"<html>",
        b'{"events":{}}',
        b'{"events":[]}',
        b'{"events":[],"next":"e1.2\\n"}',
        b'{"events":[],"next":7}',
    ],
)
def test_what_is_no_page_is_named(odd: bytes) -> None:
    """An id that no header can carry never becomes the cursor."""
    with pytest.raises(Unreadable, match="no page"):
        Native().paged(RUN, None, odd, first=True)
