"""The admin interface over real sockets: its port, its address in the first lines, who may reach it."""

import http.client
import json
import os
import socket
import subprocess
import sys
from contextlib import contextmanager

import httpx

from mockserver_stage import OPEN
from reattach_mockserver import cli
from reattach_mockserver.live import LiveServer

PATIENCE = 20.0


@contextmanager
def serving(*arguments, token=None):
    command = [sys.executable, "-m", "reattach_mockserver.cli", "--port", "0", *arguments]
    there = {name: value for name, value in os.environ.items() if name != "REATTACH_ADMIN_TOKEN"}
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**there, **({"REATTACH_ADMIN_TOKEN": token} if token else {})},
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def test_serve_says_where_it_is_and_it_is_there_to_the_end():
    """In the first line of JSON; on a port of its own, where nothing of the protocol is, and the other way round."""
    with serving("--json", "--admin-port", "0") as process:
        told = json.loads(process.stdout.readline())
        with httpx.Client(trust_env=False, timeout=PATIENCE) as client:
            made = client.post(f"{told['url']}/v1/runs", json={"input": "x"}, headers={"Idempotency-Key": "k"}).json()
            assert client.get(f"{told['admin_url']}/counts").json()["runs"] == 1
            assert client.get(f"{told['admin_url']}/v1/runs/{made['id']}").status_code == 404
            assert client.get(f"{told['url']}/counts").status_code == 404
            assert client.post(f"{told['admin_url']}/restart").json().keys() == {"unfinished"}
            assert client.get(f"{told['admin_url']}/counts").json()["runs"] == 1
        process.terminate()
        assert process.wait(PATIENCE) == 143
        assert process.stderr.read() == ""


def test_beyond_loopback_it_needs_its_token(monkeypatch, capsys):
    """Whoever reaches it may do anything, so it does not open by accident; the token is no argument, which others could see."""
    monkeypatch.delenv("REATTACH_ADMIN_TOKEN", raising=False)
    assert cli.main(["--port", "0", "--admin-port", "0", "--admin-host", "0.0.0.0"]) == 64
    assert "REATTACH_ADMIN_TOKEN" in capsys.readouterr().err
    with serving("--admin-port", "0", "--admin-host", "0.0.0.0", token="s3cret") as process:
        assert process.stdout.readline().startswith("reattach serving on http://127.0.0.1:")
        told = process.stdout.readline()
        assert told.startswith("admin interface on http://0.0.0.0:"), "people are told in a line of its own"
        port = int(told.rsplit(":", 1)[1])
        url = f"http://127.0.0.1:{port}/counts"
        assert httpx.get(url, trust_env=False, timeout=PATIENCE).status_code == 401
        good = {"Authorization": "Bearer s3cret"}
        assert httpx.get(url, headers=good, trust_env=False, timeout=PATIENCE).status_code == 200


def test_a_port_that_is_taken_is_said_with_the_way_out(capsys, monkeypatch):
    monkeypatch.delenv("REATTACH_ADMIN_TOKEN", raising=False)
    with socket.create_server(("127.0.0.1", 0)) as other:
        assert cli.main(["--port", "0", "--admin-port", str(other.getsockname()[1])]) == 3
    assert "--admin-port names another" in capsys.readouterr().err


def test_it_is_at_hand_in_a_tests_own_process():
    """With a token it asks for it; without being asked for, it is not there."""
    with LiveServer(scripts={"open": OPEN}, admin=True) as server:
        assert httpx.get(f"{server.admin_url}/counts", trust_env=False, timeout=PATIENCE).json()["runs"] == 0
    with LiveServer(scripts={"open": OPEN}, admin="s3cret") as server:
        assert httpx.get(f"{server.admin_url}/counts", trust_env=False, timeout=PATIENCE).status_code == 401
    with LiveServer(scripts={"open": OPEN}) as server:
        assert server.admin_url == ""


def test_a_body_without_an_end_and_a_caller_that_leaves_hold_nothing_up():
    """Half a request is nobody else's matter: the next one is answered, and the server ends in order."""
    with LiveServer(scripts={"open": OPEN}, admin=True) as server:
        port = int(server.admin_url.rsplit(":", 1)[1])
        half = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
        half.putrequest("POST", "/overload")
        half.putheader("Content-Type", "application/json")
        half.putheader("Content-Length", "100")
        half.endheaders(b'{"ms"')
        assert httpx.get(f"{server.admin_url}/counts", trust_env=False, timeout=PATIENCE).status_code == 200
        half.close()
        assert server.counts.runs == 0
