"""A proxy in the hands of a test, on either backend: planned cuts, cuts now, and that healing undoes them."""

import contextlib
import secrets
import socket

import pytest

from reattach_chaos.toxiproxy.control import Proxy, Toxiproxy, Unsafe
from toxiproxy_stage import QUIET, Side

PATIENCE = 30.0
DATA = bytes(range(250))


class Pair:
    """A proxy and what is behind it."""

    def __init__(self, toxiproxy: Toxiproxy, *, resets: bool = False) -> None:
        self._open = contextlib.ExitStack()
        self._listener = self._open.enter_context(socket.create_server(("127.0.0.1", 0)))
        self._listener.settimeout(PATIENCE)
        self.upstream = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self.proxy: Proxy = self._open.enter_context(toxiproxy.proxy(self.upstream, resets=resets))

    def connected(self) -> tuple[Side, Side]:
        client = self._open.enter_context(
            socket.create_connection((self.proxy.host, self.proxy.port), timeout=PATIENCE)
        )
        server = self._open.enter_context(self._listener.accept()[0])
        sides = Side(client), Side(server)
        carries(*sides)
        return sides

    def close(self) -> None:
        self._open.close()


def carries(client: Side, server: Side) -> None:
    """A word passes both ways."""
    word = secrets.token_bytes(4)
    client.sends(word)
    assert server.gets(4) == word
    server.sends(word)
    assert client.gets(4) == word


@pytest.fixture
def pair(server):
    made = Pair(server)
    yield made
    made.close()


@pytest.fixture
def resetting(server):
    made = Pair(server, resets=True)
    yield made
    made.close()


def test_an_address_leads_through_the_proxy(pair):
    """Path and query stay."""
    url = pair.proxy.url_for(f"http://{pair.upstream}/v1/runs/r/events?after=e1.3")
    assert url == f"http://{pair.proxy.address}/v1/runs/r/events?after=e1.3"


@pytest.mark.parametrize("fault", ["fin", "rst"])
def test_a_planned_cut_comes_after_exactly_so_many_bytes(pair, fault):
    """Of the answer; and healed, the next connection is whole."""
    pair.proxy.plan(fault, after=104)
    client, server = pair.connected()
    server.sends(DATA)
    assert client.rest() == (DATA[:100], fault)
    pair.proxy.heal()
    carries(*pair.connected())


def test_a_planned_cut_of_the_request(pair):
    """Upstream counts the client's bytes."""
    pair.proxy.plan("fin", after=54, direction="upstream")
    client, server = pair.connected()
    client.sends(DATA)
    assert server.rest()[0] == DATA[:50]
    assert client.rest()[0] == b""


def test_a_planned_stall_is_silent_after_exactly_so_many_bytes(pair):
    """Healing closes it, and needs no order of removals that ends a real server."""
    pair.proxy.plan("stall", after=104)
    client, server = pair.connected()
    server.sends(DATA)
    assert client.gets(100) == DATA[:100]
    assert client.is_silent()
    pair.proxy.heal()
    assert client.rest() == (b"", "fin")
    # Where the stall was taken apart under a live connection, a real server dies of the next toxic.
    pair.proxy.plan("fin", after=104)
    client, server = pair.connected()
    server.sends(DATA)
    assert client.rest() == (DATA[:100], "fin")


def test_a_stall_heals_on_the_same_connection(pair):
    """B79: no FIN; every byte that waited, both ways, then on as before."""
    client, server = pair.connected()
    pair.proxy.cut("stall")
    server.sends(DATA)
    client.sends(DATA)
    assert client.is_silent()
    assert server.is_silent()
    pair.proxy.heal()
    assert client.gets(250) == server.gets(250) == DATA
    carries(client, server)


def test_a_stall_is_for_new_connections_too(pair):
    """Connected, and silent, until it heals."""
    pair.proxy.cut("stall")
    client = socket.create_connection((pair.proxy.host, pair.proxy.port), timeout=PATIENCE)
    with client:
        client.sendall(b"hello")
        server = Side(pair._listener.accept()[0])
        assert server.is_silent()
        pair.proxy.heal()
        assert server.gets(5) == b"hello"
        server.closes()


def test_a_cut_now_closes_and_the_next_is_served(pair):
    """On the same port, as often as wanted."""
    for _ in range(3):
        client, server = pair.connected()
        pair.proxy.cut("fin")
        assert (client.rest(), server.rest()) == ((b"", "fin"), (b"", "fin"))
    carries(*pair.connected())


def test_a_proxy_that_resets_resets(resetting):
    """Now, and planned; what was received stays."""
    client, server = resetting.connected()
    resetting.proxy.cut("rst")
    assert (client.rest(), server.rest()) == ((b"", "rst"), (b"", "rst"))
    resetting.proxy.plan("rst", after=8)
    client, server = resetting.connected()
    server.sends(DATA)
    assert client.rest() == (DATA[:4], "rst")
    resetting.proxy.heal()
    client, _ = resetting.connected()
    resetting.proxy.cut("rst")
    assert client.rest() == (b"", "rst")


def test_half_open_is_silent_whatever_the_server_does(pair):
    """It writes and closes; the client knows nothing of it. Healing closes."""
    client, server = pair.connected()
    pair.proxy.cut("half-open")
    server.sends(DATA)
    client.sends(DATA)
    assert server.is_silent()
    server.closes()
    assert client.is_silent(2 * QUIET)
    pair.proxy.heal()
    assert client.rest() == (b"", "fin")
    carries(*pair.connected())


def test_refused_until_it_heals(pair):
    """Connections are closed, new ones refused."""
    client, _ = pair.connected()
    pair.proxy.refuse()
    assert client.rest() == (b"", "fin")
    with pytest.raises(ConnectionRefusedError):
        pair.connected()
    pair.proxy.heal()
    carries(*pair.connected())


def test_any_toxic_can_be_added_changed_and_removed(pair):
    """By the API's names."""
    name = pair.proxy.toxic("limit_data", bytes=1_000)
    pair.proxy.change(name, bytes=8)
    client, server = pair.connected()
    server.sends(DATA)
    assert client.rest() == (DATA[:4], "fin")
    pair.proxy.remove(name)
    carries(*pair.connected())


def test_a_closed_proxy_is_gone(server):
    """With its connections; closing twice is fine."""
    made = Pair(server)
    client, _ = made.connected()
    made.proxy.close()
    assert client.rest() == (b"", "fin")
    made.close()
    assert made.proxy.closed


def test_what_cannot_be_is_not_sent(pair, resetting):
    """Each with the way out; nothing was changed."""
    with pytest.raises(Unsafe, match=r"resets=True"):
        pair.proxy.cut("rst")
    with pytest.raises(Unsafe, match=r"resets=False"):
        resetting.proxy.cut("fin")
    with pytest.raises(Unsafe, match="0 or more"):
        pair.proxy.plan("fin", after=-1)
    pair.proxy.plan("fin", after=10)
    with pytest.raises(Unsafe, match="heal it"):
        pair.proxy.plan("fin", after=20)
    pair.proxy.heal()
    pair.proxy.cut("stall")
    with pytest.raises(Unsafe, match="heal it"):
        pair.proxy.plan("fin", after=20)
    pair.proxy.heal()
    carries(*pair.connected())
