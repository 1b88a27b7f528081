"""An end: a socket that is closed once all is out, by FIN or RST, and told of once."""

import asyncio
import socket
from collections.abc import AsyncIterator

import pytest

from reattach_chaos.toxiproxy.embedded.end import End

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Connection:
    """What an end tells."""

    def __init__(self) -> None:
        self.lost = asyncio.Event()
        self.told = 0

    def end_made(self, end: End) -> None:
        end.read(True)

    def end_lost(self) -> None:
        self.told += 1
        self.lost.set()


class Pair:
    """An end and its peer's socket; what the loop complains of."""

    def __init__(self, end: End, connection: Connection, peer: socket.socket) -> None:
        self.end, self.connection, self.peer = end, connection, peer
        self.complaints: list[object] = []

    async def all(self) -> tuple[bytes, str]:
        """Read the peer to its end."""
        loop, found = asyncio.get_running_loop(), bytearray()
        try:
            while data := await loop.sock_recv(self.peer, 65536):
                found += data
        except ConnectionError:
            return bytes(found), "rst"
        return bytes(found), "fin"


@pytest.fixture
async def pair() -> AsyncIterator[Pair]:
    loop = asyncio.get_running_loop()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        near = socket.create_connection(listener.getsockname())
        peer, _ = listener.accept()
    peer.setblocking(False)
    connection = Connection()
    end = End(connection)
    await loop.create_connection(lambda: end, sock=near)
    made = Pair(end, connection, peer)
    loop.set_exception_handler(lambda loop, context: made.complaints.append(context))
    yield made
    end.close()
    await asyncio.wait_for(connection.lost.wait(), 30)
    await asyncio.sleep(0)
    peer.close()
    loop.set_exception_handler(None)
    assert (made.complaints, connection.told) == ([], 1)


MUCH = bytes(20_000_000)  # more than the kernel takes


async def test_it_closes_only_when_all_is_out(pair):
    """The peer reads slowly: every byte, then FIN; the loss is told once, and the loop complains of nothing."""
    pair.end.write(MUCH)
    pair.end.finish()
    assert not pair.end.lost
    assert await pair.all() == (MUCH, "fin")


async def test_it_closes_at_once_when_all_is_out(pair):
    """Nothing to wait for."""
    pair.end.write(b"last")
    pair.end.finish()
    assert await pair.all() == (b"last", "fin")


async def test_closed_now_it_drops_what_is_not_out(pair):
    """But not what the kernel has."""
    pair.end.write(MUCH)
    pair.end.close()
    data, end = await pair.all()
    assert (0 < len(data) < len(MUCH), end) == (True, "fin")


async def test_what_the_peer_has_sent_unread_makes_no_reset_of_a_fin(pair):
    """A kernel would answer a close over unread bytes with RST."""
    pair.end.read(False)
    pair.end.write(b"answer")
    await asyncio.get_running_loop().sock_sendall(pair.peer, b"x" * 100_000)
    pair.end.finish()
    assert await pair.all() == (b"answer", "fin")


async def test_a_reset_is_a_reset(pair):
    """With and without something unread."""
    pair.end.reset_at_close()
    pair.end.write(b"answer")
    pair.end.finish()
    assert await pair.all() == (b"answer", "rst")


async def test_every_way_to_close_may_come_twice(pair):
    """And in any order."""
    for _ in range(2):
        pair.end.finish()
        pair.end.close()
        pair.end.write(b"nothing")
    assert await pair.all() == (b"", "fin")
