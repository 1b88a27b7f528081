"""The coalescer: whatever bytes come, h11 says the same with it and without it, only in fewer pieces."""

from __future__ import annotations

from itertools import pairwise

import h11
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reattach.transports.coalesce import LONGEST_HEAD, LONGEST_SIZE_LINE, Coalescer

HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


class Library:
    """A client that has sent its request and reads the answer with h11, through a coalescer or not."""

    def __init__(self, coalescer: Coalescer | None) -> None:
        self._h11 = h11.Connection(h11.CLIENT)
        self._h11.send(h11.Request(method="GET", target="/", headers=[("Host", "x")]))
        self._h11.send(h11.EndOfMessage())
        self._coalescer = coalescer
        self.heads: list[int] = []
        self.trailers: list[tuple[bytes, bytes]] = []
        self.body = b""
        self.pieces = 0
        self.outcome = "open"

    def feed(self, data: bytes) -> None:
        if self._coalescer is not None:
            data = self._coalescer.feed(data)
        if data:
            self._give(data)

    def end(self) -> None:
        """The connection ends."""
        if self._coalescer is not None and (rest := self._coalescer.rest()):
            self._give(rest)
        self._give(b"")

    def _give(self, data: bytes) -> None:
        if self.outcome != "open":
            return
        try:
            self._h11.receive_data(data)
            while True:
                event = self._h11.next_event()
                match event:
                    case h11.InformationalResponse() | h11.Response():
                        self.heads.append(event.status_code)
                    case h11.Data():
                        self.body += event.data
                        self.pieces += 1
                    case h11.EndOfMessage():
                        self.outcome = "whole"
                        self.trailers = list(event.headers)
                        return
                    case h11.ConnectionClosed():
                        self.outcome = "closed"
                        return
                    case _:
                        return
        except (h11.RemoteProtocolError, RuntimeError) as exc:
            # RuntimeError is h11's word for bytes after the end of the connection.
            self.outcome = type(exc).__name__

    @property
    def said(self) -> tuple[list[int], bytes, str, list[tuple[bytes, bytes]]]:
        return self.heads, self.body, self.outcome, self.trailers


PIECES = [
    HEAD,
    HEAD,
    HEAD,
    b"HTTP/1.1 100 Continue\r\n\r\n",
    b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n",
    b"HTTP/1.1 101 Switching\r\n\r\n",
    b"HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n",
    b"HTTP/1.1 200 OK\r\n\r\n",
    b"HTTP/1.0 200 OK\r\ntransfer-encoding: CHUNKED\r\n\r\n",
    b"HTTP/1.1 200\r\nTransfer-Encoding:chunked\r\n\r\n",
    b"HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nX: y\r\n Transfer-Encoding: chunked\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding : chunked\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nX: y\r\n",
    b"HTTP/1.",
    b"5\r\nhello\r\n",
    b"5\r\nhello\r\n",
    b"1\r\nx\r\n",
    b"A\r\n0123456789\r\n",
    b"a;name=value\r\n0123456789\r\n",
    b"1 \t\r\nx\r\n",
    b"000003\r\nabc\r\n",
    b"0\r\n\r\n",
    b"0;x\r\n\r\n",
    b"0\r\nTrailer: 1\r\n\r\n",
    b"00\r\n\r\n",
    b"-1\r\nx\r\n",
    b"+1\r\nx\r\n",
    b"0x1\r\nx\r\n",
    b"1_0\r\n0123456789012345\r\n",
    b" 1\r\nx\r\n",
    b"1 x\r\nx\r\n",
    b"\r\n",
    b"g\r\n",
    b"1\nx\n",
    b"5\r\nhello\n\r\n",
    b"5\r\nhello!\r\n",
    b"5\r\nhelloX",
    b"5\r\nhello\r",
    b"5\r\nhel",
    b"fffffffffffffffff\r\nx",
    b"ffff",
    b";\r\n",
    b"1;\r\r\nx\r\n",
    b"\n",
    b"\r",
    b"x",
    b"\0",
]
bodies = st.one_of(
    st.lists(st.sampled_from(PIECES), max_size=8).map(b"".join),
    st.lists(st.sampled_from(PIECES), max_size=8).map(lambda pieces: HEAD + b"".join(pieces)),
)


@settings(deadline=None)
@given(body=bodies, data=st.data())
def test_any_bytes_in_any_cut_mean_the_same(body: bytes, data: st.DataObject) -> None:
    """After every read, and at the end of the connection: the same heads, body, trailers and errors, nothing held back."""
    places = data.draw(st.lists(st.integers(0, len(body)), max_size=10).map(sorted), label="cuts")
    for edges in ([0, *places, len(body)], list(range(len(body) + 1))):
        plain, coalesced = Library(None), Library(Coalescer())
        for part in (body[a:b] for a, b in pairwise(edges) if a < b):
            plain.feed(part)
            coalesced.feed(part)
            assert coalesced.said == plain.said, edges
        plain.end()
        coalesced.end()
        assert coalesced.said == plain.said, edges


def test_a_read_is_one_piece() -> None:
    """A thousand chunks that came in one read are one piece for the library, and the next read is another."""
    library = Library(Coalescer())
    library.feed(HEAD + b"5\r\nhello\r\n" * 1000)
    library.feed(b"5\r\nhello\r\n" * 1000 + b"5\r\nhel")
    library.feed(b"lo\r\n0\r\n\r\n")
    assert (library.pieces, library.body, library.outcome) == (3, b"hello" * 2001, "whole")


@pytest.mark.parametrize(
    "head",
    [
        b"HTTP/1.1 101 Switching\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: gzip\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n , gzip\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX: y\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX: y\r\n\n",
        b"HTTP/2.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"HTTP/1.1 20 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
    ],
)
def test_what_is_not_plain_is_handed_over_as_it_came(head: bytes) -> None:
    """Only a final answer with exactly one, unfolded `chunked` is taken over; bytes of any other are not touched."""
    body = b"1\r\nx\r\n" * 2
    assert Coalescer().feed(head + body) == head + body


def test_an_interim_answer_changes_nothing() -> None:
    """What follows 1xx is judged by its own head."""
    interim = b"HTTP/1.1 103 Early Hints\r\nTransfer-Encoding: chunked\r\n\r\n"
    assert Coalescer().feed(interim + HEAD + b"1\r\nx\r\n1\r\ny\r\n") == interim + HEAD + b"2\r\nxy\r\n"


def test_the_end_of_the_connection_gives_up_what_was_held() -> None:
    """The library sees the cut where it was: in a head, in a size line."""
    coalescer = Coalescer()
    assert coalescer.feed(HEAD[:20]) == b""
    assert coalescer.rest() == HEAD[:20]
    coalescer = Coalescer()
    assert coalescer.feed(HEAD + b"1\r\nx\r\nf") == HEAD + b"1\r\nx\r\n"
    assert coalescer.rest() == b"f"


def test_a_size_line_without_end_is_handed_over() -> None:
    """An endless extension is not gathered here: the library has the bytes, and its own limit."""
    coalescer = Coalescer()
    coalescer.feed(HEAD)
    line = b"5;" + b"x" * (LONGEST_SIZE_LINE - 2)
    assert coalescer.feed(line) == b""
    assert coalescer.feed(b"x") == line + b"x"
    assert coalescer.feed(b"y") == b"y"


def test_a_head_without_end_is_handed_over() -> None:
    """An endless head is not gathered here either."""
    coalescer = Coalescer()
    head = b"HTTP/1.1 200 OK\r\nX: " + b"x" * (LONGEST_HEAD - 20)
    held = coalescer.feed(head)
    assert held == b""
    assert coalescer.feed(b"x" * 20) == head + b"x" * 20


def test_what_is_not_http_is_handed_over_at_once() -> None:
    """A TLS alert or a banner of another protocol shall fail now, not when a blank line comes."""
    assert Coalescer().feed(b"\x15\x03\x01") == b"\x15\x03\x01"
    assert Coalescer().feed(b"SSH-2.0-x\r\n") == b"SSH-2.0-x\r\n"


@pytest.mark.parametrize("ending", [b"XX", b"X", b"\rX", b"\n", b"3\r\nabc\r\n"])
def test_a_chunk_without_its_end_is_an_error(ending: bytes) -> None:
    """A chunk longer than it says is malformed, never read as the next chunk's size."""
    library = Library(Coalescer())
    library.feed(HEAD + b"5\r\nhello" + ending)
    assert (library.body, library.outcome) == (b"hello", "RemoteProtocolError")
