"""A listener's connections: each has a task, and none outlives it."""

import asyncio
import contextlib
import socket

import pytest

from reattach_chaos.listener import Listener
from reattach_chaos.ports import HOST

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend():
    return "asyncio"


@contextlib.contextmanager
def caller(port):
    """A plain socket that has connected: the kernel lets it before anybody accepts it."""
    with socket.create_connection((HOST, port), timeout=10) as client:
        client.setblocking(False)
        yield client


async def ends(client):
    """Whether the other side has closed, with FIN or RST, when the wait is over."""
    with contextlib.suppress(ConnectionError):
        return await asyncio.wait_for(asyncio.get_running_loop().sock_recv(client, 1), 10) == b""
    return True


@pytest.fixture
def held():
    """A way to serve that never ends, and the writers of those who were served."""
    begun = asyncio.Queue()

    async def serve(reader, writer):
        begun.put_nowait(writer)
        await asyncio.Event().wait()

    return serve, begun


@pytest.mark.parametrize("word", [b"return\n", b"fail\n"])
async def test_what_a_task_leaves_open_is_closed_behind_it(word):
    """It returns or fails: nobody else would close its socket."""

    async def serve(reader, writer):
        if await reader.readline() == b"fail\n":
            raise OSError("on purpose")

    asyncio.get_running_loop().set_exception_handler(lambda loop, facts: None)
    listener = Listener(serve)
    listener.open()
    with caller(listener.port) as client:
        client.send(word)
        assert await ends(client)
    await listener.close()


@pytest.mark.parametrize("turns", range(8))
async def test_whoever_came_before_the_end_is_closed_by_it(turns, held):
    """Not accepted yet, accepted and not made, made and not begun, begun: at every turn of the loop in which the end may come."""
    serve, begun = held
    listener = Listener(serve)
    listener.open()
    with caller(listener.port) as client:
        for _ in range(turns):
            await asyncio.sleep(0)
        await listener.close()
        assert await ends(client)
    assert begun.empty() or begun.get_nowait().transport.is_closing()


async def test_a_port_is_shut_and_opened_again(held):
    """Who was there stays; who comes meanwhile is refused."""
    serve, begun = held
    listener = Listener(serve)
    listener.open()
    with caller(listener.port) as first:
        stays = await begun.get()
        listener.shut()
        with pytest.raises(ConnectionError):
            socket.create_connection((HOST, listener.port), timeout=10)
        with pytest.raises(OSError, match="in use"), socket.socket() as other:
            other.bind((HOST, listener.port))
        listener.open()
        with caller(listener.port) as second:
            await begun.get()
            assert not stays.transport.is_closing()
            await listener.close()
            assert await ends(first)
            assert await ends(second)
