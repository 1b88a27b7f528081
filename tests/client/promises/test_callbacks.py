"""What the user gives us to call, and what it may do: the token function and the observer must harm no loop of ours."""

import asyncio
import sys
import threading

import pytest

import reattach
from client_stage import PATIENCE, collected, in_memory
from reattach import errors
from reattach.testing import Beat

pytestmark = pytest.mark.anyio


def interrupt():
    raise KeyboardInterrupt


@pytest.mark.parametrize("leaves", [sys.exit, interrupt], ids=["exit", "interrupt"])
async def test_a_token_function_that_ends_the_process_ends_its_attempt_only(face, leaves):
    """A loop of asyncio ends where SystemExit is raised, and every other client of the process lives in that loop."""
    server, args = in_memory()
    _, broken = in_memory()
    async with face.client(journal=":memory:", **args) as other:
        async with face.client(journal=":memory:", token=leaves, **broken) as client:
            with pytest.raises(errors.LocalProtocolError, match="token= raised"):
                await client.start("work", key="k")
        assert (await collected(await other.start("work", key="k")))[-1].settles
    assert server.wire.open_streams == 0


@pytest.mark.parametrize("raised", [SystemExit, asyncio.CancelledError, pytest.fail.Exception, GeneratorExit])
async def test_whatever_an_observer_raises_ends_nothing(face, raised):
    """It is dropped, also what is no Exception: it would end a task of ours, or the whole loop, and readers would wait for ever."""

    def observer(fact):
        raise raised("mine")

    _, args = in_memory()
    async with face.client(journal=":memory:", observer=observer, **args) as client:
        reader = face.beside(lambda: begin_and_collect(client))
        assert (await reader.result())[-1].settles


async def begin_and_collect(client):
    return await collected(await client.start("work", key="k"))


async def test_a_token_with_half_a_character_is_named(face):
    _, args = in_memory()
    async with face.client(journal=":memory:", token=lambda: "\ud800", **args) as client:
        with pytest.raises(errors.LocalProtocolError, match="token= gave a text with half of a character"):
            await client.start("work", key="k")


@pytest.mark.parametrize(
    ("headers", "says"),
    [([1], "names and texts"), ({"X": 5}, "both must be texts"), ({"X": "\udc00"}, "half of a character")],
    ids=["list", "number", "surrogate"],
)
def test_headers_that_are_none_are_refused_at_once(headers, says):
    for made in (reattach.Client, reattach.AsyncClient):
        with pytest.raises(errors.UsageError, match=says):
            made("http://127.0.0.1:1", ":memory:", headers=headers)


def in_a_thread(work):
    """Do what may hang in a thread of its own, and wait with patience."""
    found = []
    thread = threading.Thread(target=lambda: found.append(work()), daemon=True)
    thread.start()
    thread.join(PATIENCE)
    assert found, "it hangs"
    return found[0]


def test_an_observer_that_closes_its_client_does_not_wait_for_itself():
    """It is called in the thread that would have to do the closing; who waits elsewhere gets `Closed`."""
    _, args = in_memory(story=[Beat()], jumps=False)
    clients = []

    def observer(fact):
        if fact.name == "committed":
            clients[0].close()

    def work():
        client = reattach.Client(journal=":memory:", observer=observer, **args)
        clients.append(client)
        with pytest.raises(errors.Closed):
            list(client.start("work", key="k"))
        client.close()
        return True

    assert in_a_thread(work)


def test_an_interrupt_that_is_no_persons_ends_nothing():
    """A person's comes in the main thread; what an observer raises in the portal's own is dropped."""
    _, args = in_memory()

    def work():
        with reattach.Client(journal=":memory:", observer=lambda fact: interrupt(), **args) as client:
            return list(client.start("work", key="k"))

    assert in_a_thread(work)[-1].settles


def test_an_observer_that_uses_another_unopened_client_is_refused():
    """Opening it would be waiting, in the one thread that could open it."""
    _, args = in_memory()
    _, unopened = in_memory()
    told = []
    other = reattach.Client(journal=":memory:", **unopened)

    def observer(fact):
        try:
            other.runs()
        except reattach.ReattachError as error:
            told.append(error)

    def work():
        with reattach.Client(journal=":memory:", observer=observer, **args) as client:
            return list(client.start("work", key="k"))

    assert in_a_thread(work)[-1].settles
    assert all(isinstance(error, errors.UsageError) and "called the client" in str(error) for error in told)
    assert told
    other.close()
