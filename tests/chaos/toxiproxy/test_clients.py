"""Toxiproxy's own clients, unchanged, on either backend: toxiproxy-python, the Node client, the real `toxiproxy-cli`."""

import importlib
import json
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from toxiproxy_stage import PATIENCE, ROOT, Side, missing, program

UPSTREAM = "127.0.0.1:9"
NODE = ROOT / ".ci" / "node" / "node_modules"
DRIVE = Path(__file__).parent / "clients" / "drive.cjs"


@pytest.fixture
def library(server, monkeypatch):
    """toxiproxy-python as anybody uses it: one server for the whole process."""
    toxiproxy = importlib.import_module("toxiproxy")
    address = urlsplit(server.url)
    monkeypatch.setattr(toxiproxy.api.APIConsumer, "host", address.hostname)
    monkeypatch.setattr(toxiproxy.api.APIConsumer, "port", address.port)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    return toxiproxy.Toxiproxy()


def test_toxiproxy_python(library):
    """All that it has."""
    assert library.running()
    assert json.loads(library.version()).keys() == {"version"}
    proxy = library.create(upstream=UPSTREAM, name="py")
    assert (proxy.name, proxy.upstream, proxy.enabled) == ("py", UPSTREAM, True)
    proxy.add_toxic(type="latency", attributes={"latency": 100})
    proxy.add_toxic(type="limit_data", stream="upstream", name="cut", toxicity=0.5, attributes={"bytes": 5})
    assert {name: (each.type, each.stream, each.toxicity) for name, each in proxy.toxics().items()} == {
        "cut": ("limit_data", "upstream", 0.5),
        "latency_downstream": ("latency", "downstream", 1),
    }
    assert proxy.get_toxic("cut").attributes == {"bytes": 5}
    assert proxy.destroy_toxic("cut")
    assert proxy.get_toxic("cut") is None
    with proxy.down():
        assert library.get_proxy("py").enabled is False
    assert library.get_proxy("py").enabled is True
    populated = library.populate([{"name": "py2", "upstream": UPSTREAM, "listen": "127.0.0.1:0"}])
    assert [each.name for each in populated] == ["py2"]
    assert library.reset()
    assert proxy.toxics() == {}
    library.destroy_all()
    assert library.proxies() == {}


def test_the_errors_of_toxiproxy_python(library):
    """400, 404 and 409 are its own classes."""
    errors = importlib.import_module("toxiproxy.exceptions")
    proxy = library.create(upstream=UPSTREAM, name="py")
    with pytest.raises(errors.ProxyExists):
        library.create(upstream=UPSTREAM, name="py")
    with pytest.raises(errors.InvalidToxic):
        proxy.add_toxic(type="nope")
    proxy.add_toxic(type="latency")
    with pytest.raises(errors.ProxyExists):
        proxy.add_toxic(type="latency")
    with pytest.raises(errors.NotFound):
        proxy.destroy_toxic("nope")
    proxy.destroy()
    with pytest.raises(errors.NotFound):
        proxy.destroy()


def test_the_node_client(server):
    """All that it has, with Node's own HTTP client."""
    node = shutil.which("node")
    if node is None or not (NODE / "toxiproxy-node-client").is_dir():
        missing("no Node, or no toxiproxy-node-client in .ci/node: .ci/run installs it; nothing was tested with it")
    assert node is not None
    done = subprocess.run(
        [node, DRIVE, server.url, UPSTREAM],
        env={**os.environ, "NODE_PATH": str(NODE)},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    toxic = {"name": "cut", "type": "limit_data", "stream": "downstream", "toxicity": 1, "attributes": {"bytes": 10}}
    assert [json.loads(line) for line in done.stdout.splitlines()] == [
        ["create", ["node", UPSTREAM, True, True]],
        ["again", "ToxiproxyError"],
        ["addToxic", toxic],
        ["update", {"bytes": 5}],
        ["getToxic", {"bytes": 5}],
        ["get", "node"],
        ["getAll", ["node"]],
        ["gone", "ToxiproxyError"],
        ["disable", False],
        ["reset", True],
        ["populate", ["more"]],
        ["removed", []],
        ["version", "string"],
    ]


def test_the_real_command_line(server):
    """`toxiproxy-cli`: every command, its words and exit codes."""
    command = program("toxiproxy-cli")

    def cli(words: str) -> tuple[int, str]:
        done = subprocess.run(
            [command, *words.split()],
            env={**os.environ, "TOXIPROXY_URL": server.url, "NO_PROXY": "127.0.0.1"},
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        return done.returncode, done.stdout + done.stderr

    create = f"create --listen 127.0.0.1:0 --upstream {UPSTREAM} redis"
    assert cli(create) == (0, "Created new proxy redis\n")
    code, said = cli(create)
    assert code == 1
    assert "HTTP 409: proxy already exists" in said
    code, said = cli("list")
    assert (code, said.split("\t")[::2]) == (0, ["redis", UPSTREAM, "0\n"])
    code, said = cli("toxic add -t latency -n slow -a latency=100 -a jitter=50 redis")
    assert (code, said) == (0, "Added downstream latency toxic 'slow' on proxy 'redis'\n")
    assert cli("toxic add --type limit_data --upstream --toxicity 0.5 --attribute bytes=10 redis")[0] == 0
    assert cli("toxic update -n slow -a jitter=25 redis") == (0, "Updated toxic 'slow' on proxy 'redis'\n")
    code, said = cli("inspect redis")
    assert code == 0
    assert "limit_data_upstream\ttype=limit_data\tstream=upstream\ttoxicity=0.50\tattributes=[\tbytes=10\t]" in said
    assert "jitter=25\tlatency=100" in said
    assert cli("toggle redis") == (0, "Proxy redis is now disabled\n")
    assert cli("toggle redis") == (0, "Proxy redis is now enabled\n")
    assert cli("toxic delete -n slow redis") == (0, "Removed toxic 'slow' on proxy 'redis'\n")
    code, said = cli("toxic delete -n slow redis")
    assert code == 1
    assert "HTTP 404: toxic not found" in said
    assert cli("delete redis") == (0, "Deleted proxy redis\n")
    assert cli("list") == (0, "")


def test_the_real_command_line_cuts(server):
    """What it adds is at work: a client loses what is beyond."""
    command = program("toxiproxy-cli")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(PATIENCE)
        upstream = f"127.0.0.1:{listener.getsockname()[1]}"
        for words in (f"create -l 127.0.0.1:0 -u {upstream} cut", "toxic add -t limit_data -a bytes=4 cut"):
            done = subprocess.run([command, "-h", server.url, *words.split()], capture_output=True, timeout=PATIENCE)
            assert done.returncode == 0, done.stderr
        listed = subprocess.run([command, "-h", server.url, "list"], capture_output=True, text=True, timeout=PATIENCE)
        host, _, port = listed.stdout.split("\t")[1].rpartition(":")
        with socket.create_connection((host, int(port)), timeout=PATIENCE) as sock:
            client, accepted = Side(sock), Side(listener.accept()[0])
            accepted.sends(b"abcdef")
            assert client.rest() == (b"abcd", "fin")
            accepted.closes()
        assert (
            subprocess.run([command, "-h", server.url, "delete", "cut"], timeout=PATIENCE, stdout=sys.stderr).returncode
            == 0
        )
