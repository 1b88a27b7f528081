"""A client of ours does not find the server's name, or is shown another name's certificate: it goes on, and loses nothing."""

import asyncio
import socket
import ssl

import pytest

from chaos_cases import SESSION, faults, played
from reattach_chaos.cases.client import CommandClient, MutantClient, OwnClient
from reattach_chaos.cases.errands import objection_to
from reattach_chaos.cases.inside import resolver
from reattach_chaos.cases.reach import unreached
from reattach_chaos.cases.servers.control import ServerTrouble
from reattach_chaos.cases.servers.tls_front import KNOWN, TlsFront
from reattach_chaos.cases.servers.ways import Ways
from reattach_chaos.history import CutFired, Delivered
from reattach_chaos.schedules import Fault, Place, Planned, at
from reattach_chaos.schedules.files import dumps, loads


def lost(how, route="stream", nth=1, times=1):
    return Planned(
        fault=Fault.NO_ROUTE, at=at(Place.CONNECTING), route=route, nth=nth, times=times, settings={"how": how}
    )


CUT = Planned(fault=Fault.FIN, at=at(Place.AFTER_EVENT, 3))
NAME = loads(dumps(faults(CUT, lost("name", nth=2, times=2))))
TLS = loads(dumps(faults(CUT, lost("tls", nth=2))))
CREATE = faults(lost("name", "create"))
BOTH = faults(lost("tls"), lost("name", nth=2))


@pytest.fixture(scope="module")
def cases():
    return played(NAME, TLS, CREATE, BOTH, seed=3)


@pytest.mark.parametrize("schedule", [NAME, TLS, CREATE, BOTH], ids=["name", "tls", "create", "both"])
def test_our_client_goes_on_where_it_found_no_way(cases, schedule):
    """All that was planned came and was met; each event was shown once."""
    case = cases[schedule.id]
    assert case.verdict.word == "valid", case.verdict.sentence()
    assert case.verdict.fired == case.verdict.planned
    assert len(case.history.of(Delivered)) == 9
    assert "no-route" in {each.fault for each in case.history.of(CutFired)}


def test_a_name_is_not_known_as_often_as_was_asked_for(tmp_path, monkeypatch):
    """Then it is this machine's; other names are left alone, and so is the process behind."""
    seen = []

    def look(words):
        for _ in range(3):
            try:
                seen.append(socket.getaddrinfo("localhost", 80, type=socket.SOCK_STREAM)[0][4])
            except socket.gaierror as error:
                seen.append(error.errno)
        seen.append(socket.getaddrinfo("127.0.0.2", 80, type=socket.SOCK_STREAM)[0][4])
        return len(words)

    monkeypatch.setattr(resolver.importlib, "import_module", lambda name: type("Client", (), {"main": look}))
    known = socket.getaddrinfo
    for name in ("1", "2"):
        (tmp_path / name).touch()
    assert resolver.main([str(tmp_path), "client", "a", "b"]) == 2
    assert seen == [socket.EAI_NONAME, socket.EAI_NONAME, ("127.0.0.1", 80), ("127.0.0.2", 80)]
    assert socket.getaddrinfo is known


def test_a_certificate_of_another_name_is_shown_as_often_as_was_asked_for():
    """The next connection is as before: what is said goes through, and the end too."""

    async def play():
        async def echo(reader, writer):
            writer.write(await reader.read(100))
            writer.close()

        server = await asyncio.start_server(echo, "127.0.0.1", 0)
        context = ssl.create_default_context(cafile=KNOWN)
        async with server, TlsFront(*server.sockets[0].getsockname()) as front:

            async def ask():
                reader, writer = await asyncio.open_connection(
                    "127.0.0.1", front.port, ssl=context, server_hostname="localhost"
                )
                writer.write(b"hello")
                said = await reader.read()
                writer.close()
                return said

            front.wrong = 1
            with pytest.raises(ssl.SSLCertVerificationError):
                await ask()
            assert (await ask(), front.wrong) == (b"hello", 0)

    asyncio.run(asyncio.wait_for(play(), 30))


def test_what_was_to_be_lost_and_was_never_asked_for_proves_nothing(tmp_path):
    """The fault fired, and nobody met it: such a case is not known."""

    async def play():
        async with Ways(CREATE, tmp_path) as ways:
            assert await ways.lead("http://127.0.0.1:9") == "http://localhost:9"
            ways.over()
            ways.lose(CREATE.faults[0])
            with pytest.raises(ServerTrouble, match="did not ask for the way again"):
                ways.over()

    asyncio.run(play())


@pytest.mark.parametrize(
    ("client", "name", "tls"),
    [
        (OwnClient(None, None), "", ""),
        (MutantClient("right", None), "", "(tls)"),
        (CommandClient("x"), "(name)", "(tls)"),
    ],
)
def test_only_clients_that_are_born_here_can_lose_a_name(client, name, tls):
    """Any command resolves names in its own way, and small clients speak no TLS."""
    for how, words in (("name", name), ("tls", tls)):
        said = objection_to(faults(lost(how)), SESSION, client, "follow", kill=False)
        assert words in said
        assert bool(said) == bool(words)


def test_who_found_no_way_asks_for_another_stream():
    """So a fault of the second one is within reach."""
    assert unreached(faults(lost("name"), Planned(fault=Fault.RST, at=at(Place.AFTER_EVENT, 2), nth=2)), SESSION) == ""
