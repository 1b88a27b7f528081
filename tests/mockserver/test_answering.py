"""What a caller is told where the server itself cannot: a log that is away, an engine that does not start, on every face."""

import asyncio

import pytest

from mockserver_admin_stage import Hand
from mockserver_stage import OPEN, QUICK, Site
from reattach_mockserver import host as hosting
from reattach_mockserver.app import create_app
from reattach_mockserver.logs.base import LogUnavailable
from reattach_mockserver.logs.memory import MemoryLog
from reattach_mockserver.settings import Settings

pytestmark = pytest.mark.anyio


class Away(MemoryLog):
    """A log that fails while it is away."""

    away = False

    async def open(self):
        if self.away:
            raise LogUnavailable("away")
        await super().open()

    async def run(self, run_id):
        if self.away:
            raise LogUnavailable("away")
        return await super().run(run_id)


class Broken(MemoryLog):
    """A log that cannot be opened, for a reason that nobody foresaw."""

    async def open(self):
        raise ZeroDivisionError("/secret/path")


def unstarted(log):
    """Return a server that somebody mounted without its lifespan."""
    return Site(create_app(Settings(scripts={OPEN.name: OPEN}, default=OPEN.name, log=log)))


async def upgraded(app):
    """Ask for a socket; return what is answered instead of it."""
    sent = []
    connect = [{"type": "websocket.connect"}]

    async def receive():
        return connect.pop(0)

    async def send(message):
        sent.append(message)

    scope = {
        "type": "websocket",
        "path": "/v1/socket",
        "root_path": "",
        "query_string": b"",
        "headers": [],
        "subprotocols": ["reattach.v1"],
        "extensions": {"websocket.http.response": {}},
    }
    await app(scope, receive, send)
    return sent[0]["status"], sent[1]["body"]


async def test_a_log_that_is_away_is_a_503_on_both_ports(sites):
    """RS-37: come again, and not that the server is broken; the same words by the admin interface as by the server."""
    log = Away()
    site = await sites(OPEN, log=log)
    run, hand = await site.run(), Hand(site)
    log.away = True
    answers = [await site.get(f"/v1/runs/{run['id']}"), await hand.call("GET", f"/runs/{run['id']}")]
    log.away = False
    assert [(each.status, each.json["code"], "retry-after" in each.headers) for each in answers] == [
        (503, "overloaded", True)
    ] * 2


async def test_a_server_whose_log_cannot_be_opened_says_so_and_starts_later():
    """Mounted without its lifespan the first call starts it; one that fails is answered, and the next tries again."""
    log = Away()
    log.away = True
    site = unstarted(log)
    refused = await site.get("/.well-known/reattach")
    assert (refused.status, refused.json["code"]) == (503, "overloaded")
    assert (await upgraded(site.app))[0] == 503
    log.away = False
    assert (await site.get("/.well-known/reattach")).status == 200
    await site.engine.stop()


async def test_a_server_that_cannot_start_is_a_problem_that_tells_nothing(caplog):
    """By a call and by a socket; the reason is in the server's own log."""
    site = unstarted(Broken())
    refused = await site.get("/.well-known/reattach")
    status, body = await upgraded(site.app)
    assert (refused.status, refused.json["code"], status) == (500, "internal", 500)
    assert b"secret" not in refused.body + body
    assert "ZeroDivisionError: /secret/path" in caplog.text


async def test_an_engine_is_stopped_though_its_server_fails(monkeypatch):
    """Else its log would stay open, and a lease would go on for runs that nobody plays."""

    async def fails(self, sockets=None):
        raise OSError("the port went away")

    monkeypatch.setattr(hosting._Server, "serve", fails)
    app = create_app(Settings(scripts={QUICK.name: QUICK}, default=QUICK.name))
    with hosting.bind("127.0.0.1", 0) as listener, pytest.raises(OSError, match="the port went away"):
        await hosting.host(app, listener, asyncio.Event(), lambda: None)
    assert not app.engine.started
