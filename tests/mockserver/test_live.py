"""The server inside a test's own process, over real sockets."""

import http.client
import socket
from urllib.parse import urlsplit

import httpx
import pytest

from mockserver_stage import OPEN, QUICK
from reattach_mockserver.live import LiveServer


@pytest.fixture
def server():
    with LiveServer(scripts={"quick": QUICK, "open": OPEN}) as running:
        yield running


def create(server, scenario, key="k"):
    answer = httpx.post(
        f"{server.url}/v1/runs",
        json={"input": {"scenario": scenario}},
        headers={"Idempotency-Key": key},
        trust_env=False,
    )
    return answer.json()


def connection(server):
    parts = urlsplit(server.url)
    return http.client.HTTPConnection(parts.hostname, parts.port, timeout=10)


def attach(server, run_id, query=""):
    link = connection(server)
    link.request("GET", f"/v1/runs/{run_id}/events{query}", headers={"Accept": "text/event-stream"})
    return link, link.getresponse()


def test_it_serves_counts_and_shows_its_log(server):
    run = create(server, "quick")
    link, response = attach(server, run["id"])
    body = response.read()
    link.close()
    log = server.log(run["id"])
    assert len(log) == 7
    assert all(b"data: " + text in body for text in log)
    create(server, "quick")
    assert (server.counts.runs, server.counts.events) == (1, 7)


def test_a_restart_cuts_streams_and_the_run_goes_on(server):
    """The break shows as an incomplete body, never as a clean end; the same cursor resumes on the same port."""
    run = create(server, "open")
    link, response = attach(server, run["id"])
    assert response.readline() == b"retry: 1000\n"
    server.restart()
    with pytest.raises((http.client.IncompleteRead, ConnectionResetError)):
        response.read()
    link.close()
    link, response = attach(server, run["id"], f"?after={run['epoch']}.1")
    lines = [response.readline() for _ in range(5)]
    assert lines[4] == f"id: {run['epoch']}.2\n".encode()
    link.close()


def test_trimming_and_a_new_epoch_are_at_hand(server):
    run = create(server, "open")
    link, response = attach(server, run["id"])
    while b'"first"' not in response.readline():
        pass
    assert server.expire(run["id"], 3).first_sequence == 3
    assert server.new_epoch(run["id"]).epoch.endswith("-2")
    link.close()


def test_a_client_that_goes_away_is_noticed_at_once(server):
    """A reset or a close frees the reader's place long before the next heartbeat."""
    run = create(server, "open")
    link, response = attach(server, run["id"])
    response.readline()
    assert server.readers(run["id"]) == 1
    link.sock.shutdown(socket.SHUT_RDWR)
    link.close()
    for _ in range(10_000):
        if server.readers(run["id"]) == 0:
            break
    assert server.readers(run["id"]) == 0


@pytest.mark.parametrize("size", [33_000, 100_000, 250_000])
def test_headers_that_are_too_large_are_refused_by_name(server, size):
    link = connection(server)
    link.request("GET", "/v1/runs/x", headers={"X-Large": "x" * size})
    response = link.getresponse()
    assert (response.status, b'"headers_too_large"' in response.read()) == (431, True)
    link.close()


@pytest.mark.parametrize("declared", [True, False])
def test_a_body_that_is_too_large_is_refused_whether_or_not_it_says_so(server, declared):
    link = connection(server)
    body = b"x" * 1_100_000
    link.request(
        "POST", "/v1/runs", body if declared else iter([body]), {"Idempotency-Key": "k"}, encode_chunked=not declared
    )
    response = link.getresponse()
    assert (response.status, b'"body_too_large"' in response.read()) == (413, True)
    link.close()
    assert server.counts.runs == 0


def test_stopping_twice_is_fine():
    server = LiveServer().start()
    server.stop()
    server.stop()


def test_every_stream_is_chunked_so_that_a_cut_shows(server):
    """RS-78."""
    run = create(server, "open")
    link, response = attach(server, run["id"])
    assert response.getheader("transfer-encoding") == "chunked"
    assert response.getheader("content-length") is None
    link.close()
