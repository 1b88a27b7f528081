"""What control does when a server hangs, lies, errs or is gone; and what it refuses to send."""

import contextlib
import http.server
import json
import os
import signal
import socket
import threading
import time

import pytest
import toxiproxy as library

from reattach_chaos.toxiproxy.control import Declined, InfrastructureError, Toxiproxy, ToxiproxyError, Unsafe
from reattach_chaos.toxiproxy.control.backends import PROGRAM, VARIABLE
from reattach_chaos.toxiproxy.control.consumer import Consumer
from reattach_chaos.toxiproxy.control.control import check
from reattach_chaos.toxiproxy.embedded.api import Api
from toxiproxy_stage import program, toxiproxy


class Liar(http.server.BaseHTTPRequestHandler):
    """An API that answers as the test wants, whatever was asked; by (method, path's last part), else by method."""

    answers: dict[str, tuple[int, object]]

    def _answer(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        status, body = self.answers.get(f"{self.command} {self.path}") or self.answers[self.command]
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = do_DELETE = do_PATCH = _answer

    def log_message(self, *args: object) -> None:
        """Be quiet."""


@pytest.fixture
def liar():
    """Return a function: the answers → the address of a server that gives them."""
    with contextlib.ExitStack() as left:

        def start(**answers: tuple[int, object]) -> str:
            handler = type("Handler", (Liar,), {"answers": {k.replace("__", " /"): v for k, v in answers.items()}})
            running = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
            thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
            thread.start()
            left.callback(thread.join)
            left.callback(running.server_close)
            left.callback(running.shutdown)
            return f"http://127.0.0.1:{running.server_address[1]}"

        yield start


PROXY = {"name": "p", "upstream": "127.0.0.1:9", "listen": "127.0.0.1:1", "enabled": True}
VERSION = {"GET__version": (200, {"version": "x"})}


def test_a_server_that_never_answers_is_an_infrastructure_error():
    """B80: at the limit, not for ever, and the text says that nothing is said about the client."""
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        url = f"http://127.0.0.1:{deaf.getsockname()[1]}"
        began = time.monotonic()
        with pytest.raises(InfrastructureError, match=r"not answered for 0\.2 s.*nothing can be said about the client"):
            Toxiproxy(url=url, limit_s=0.2)
        assert time.monotonic() - began < 20


def test_a_server_that_is_not_there_is_an_infrastructure_error():
    """Refused."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
        with pytest.raises(InfrastructureError, match="failed"):
            Toxiproxy(url=url)


@pytest.mark.parametrize("body", [b"<html>timeout</html>", b""])
def test_a_503_is_an_infrastructure_error(liar, body):
    """The server's own limit, with a page of HTML: the library takes it for success."""
    url = liar(**VERSION, GET=(200, {}), POST=(503, body))
    with Toxiproxy(url=url) as running, pytest.raises(InfrastructureError, match="503"):
        running.proxy("127.0.0.1:9")


def test_a_500_is_an_error_with_the_servers_words(liar):
    """The library ends in a `KeyError: 'name'`, or takes it for success."""
    url = liar(**VERSION, GET=(200, {}), POST=(500, {"error": "listen tcp: no such host", "status": 500}))
    with Toxiproxy(url=url) as running, pytest.raises(Declined, match=r"listen tcp: no such host \(500\)") as told:
        running.proxy("127.0.0.1:9")
    assert (told.value.status, told.value.text) == (500, "listen tcp: no such host")


def test_a_toxic_that_is_not_there_afterwards_is_an_infrastructure_error(liar):
    """Each write is read back."""
    url = liar(**VERSION, GET=(200, {}), POST=(201, PROXY), DELETE=(204, b""))
    with Toxiproxy(url=url) as running:
        proxy = running.proxy("127.0.0.1:9")
        running._control.toxics = lambda name: {}
        with pytest.raises(InfrastructureError, match="does not have it"):
            proxy.toxic("latency", latency=5)


def test_a_setting_that_was_not_taken_is_an_infrastructure_error(liar):
    """The answer was a 200."""
    toxic = {"type": "latency", "name": "latency_downstream", "stream": "downstream", "toxicity": 1.0}
    url = liar(**VERSION, GET=(200, {}), POST=(201, PROXY), DELETE=(204, b""))
    with Toxiproxy(url=url) as running:
        proxy = running.proxy("127.0.0.1:9")
        found = type("Found", (), {**toxic, "attributes": {"latency": 0, "jitter": 0}})()
        running._control.toxics = lambda name: {"latency_downstream": found}
        with pytest.raises(InfrastructureError, match="attributes"):
            proxy.toxic("latency", latency=5)


def test_a_proxy_on_another_upstream_is_an_infrastructure_error(liar):
    """What was made is compared with what was asked for."""
    url = liar(**VERSION, GET=(200, {}), POST=(201, {**PROXY, "upstream": "127.0.0.1:10"}))
    with Toxiproxy(url=url) as running, pytest.raises(InfrastructureError, match="upstream"):
        running.proxy("127.0.0.1:9")


def test_the_safe_procedure_is_kept(monkeypatch):
    """A new name and a free loopback port a case; nothing that concerns proxies of others; toxics set before a client could come.

    And none is touched while connections live: those are ended by disabling or removing the proxy, which goes at last.
    """
    calls: list[tuple[str, str, object]] = []
    answer = Api.answer

    async def noted(self, method, target, body, **rest):
        calls.append((method, target, json.loads(body) if body else None))
        return await answer(self, method, target, body, **rest)

    monkeypatch.setattr(Api, "answer", noted)
    with Toxiproxy("embedded") as running:
        names = []
        for resets in (False, True):
            with running.proxy("127.0.0.1:9", resets=resets) as proxy:
                names.append(proxy.name)
                proxy.plan("rst" if resets else "fin", after=10)
                toxics = [target for method, target, _ in calls if method == "POST" and target.endswith("/toxics")]
                calls.append(("--", "a client may come", None))
                proxy.cut("rst" if resets else "fin")
                proxy.refuse()
                proxy.close()
    made = [body for method, target, body in calls if (method, target) == ("POST", "/proxies")]
    assert [each["name"] for each in made] == names
    assert len(set(names)) == len({each["listen"] for each in made}) == 2
    assert all(each["listen"].startswith("127.0.0.1:") for each in made)
    assert len(toxics) == 3, "one for the first, two for the second"
    assert not {"/reset", "/populate"} & {target for _, target, _ in calls}
    begins = [index for index, call in enumerate(calls) if call[0] == "--"]
    for name, begin in zip(names, begins, strict=True):
        live = [(method, target) for method, target, _ in calls[begin:] if name in target]
        changed = [each for each in live if "toxics" in each[1] and each[0] != "GET"]
        assert changed == []
        assert ("DELETE", f"/proxies/{name}") in live


def test_several_servers_at_once():
    """Each proxy goes to its own; the library's one global consumer is not touched."""
    before = (library.api.APIConsumer.host, library.api.APIConsumer.port)
    with Toxiproxy("embedded") as one, Toxiproxy("embedded") as other:
        first, second = one.proxy("127.0.0.1:1"), other.proxy("127.0.0.1:2")
        third = one.proxy("127.0.0.1:3")
        assert one._control.toxics(first.name) == one._control.toxics(third.name) == {}
        with pytest.raises(InfrastructureError, match="lost the proxy"):
            one._control.toxics(second.name)
    assert (library.api.APIConsumer.host, library.api.APIConsumer.port) == before


def test_many_threads_use_one_server():
    """Each with its own proxy."""
    wrong: list[BaseException] = []

    def work(running: Toxiproxy) -> None:
        try:
            for size in range(3):
                with running.proxy("127.0.0.1:9") as proxy:
                    proxy.plan("fin", after=size)
                    assert proxy._control.toxics(proxy.name)["limit_data_downstream"].attributes == {"bytes": size}
        except BaseException as error:
            wrong.append(error)

    with Toxiproxy("embedded") as running:
        threads = [threading.Thread(target=work, args=[running]) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert wrong == []


def test_a_web_proxy_of_the_environment_is_not_asked(monkeypatch):
    """The library would send the calls through it."""
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    with Toxiproxy("embedded") as running, running.proxy("127.0.0.1:9") as proxy:
        proxy.plan("fin", after=1)


@pytest.mark.parametrize(
    ("kind", "attributes", "word"),
    [
        ("slicer", {}, "average_size"),
        ("slicer", {"average_size": 0, "delay": 10}, "average_size"),
        ("bandwidth", {}, "stall"),
        ("bandwidth", {"rate": 0}, "stall"),
        ("latency", {"latencyy": 5}, "latency, jitter"),
        ("latency", {"latency": -5}, "0 or more"),
        ("latency", {"latency": 0.5}, "0 or more"),
        ("latency", {"latency": True}, "0 or more"),
        ("down", {}, "limit_data"),
    ],
)
def test_what_would_end_or_block_a_server_is_not_sent(kind, attributes, word):
    """Or what it would silently ignore."""
    with pytest.raises(Unsafe, match=word):
        check(kind, 1.0, attributes)


@pytest.mark.parametrize("toxicity", [-0.1, 1.5, float("nan")])
def test_a_toxicity_is_a_fraction(toxicity):
    """A server takes 7."""
    with pytest.raises(Unsafe, match="toxicity"):
        check("latency", toxicity, {})


def test_errors_have_one_root():
    """And who asked wrongly is a ValueError."""
    assert issubclass(Unsafe, ToxiproxyError)
    assert issubclass(Unsafe, ValueError)
    assert issubclass(Declined, ToxiproxyError)
    assert issubclass(InfrastructureError, ToxiproxyError)


# -- which backend


@pytest.fixture
def no_real_one(monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setenv("PATH", "")


def test_without_a_real_server_the_embedded_one_is_used(no_real_one):
    """`auto`."""
    with Toxiproxy() as running:
        assert (running.backend, running.version) == ("embedded", "2.12.0+reattach")


def test_a_real_server_that_is_wanted_and_missing_is_an_error(no_real_one):
    """With the line to install it."""
    with pytest.raises(InfrastructureError, match="go install"):
        Toxiproxy("toxiproxy")


def test_a_real_server_that_is_named_and_missing_is_an_error(no_real_one, monkeypatch):
    """Nobody shall believe that it was used."""
    monkeypatch.setenv(VARIABLE, "/nowhere/toxiproxy-server")
    with pytest.raises(InfrastructureError, match=r"/nowhere/toxiproxy-server cannot be started"):
        Toxiproxy()


def test_a_program_that_ends_at_once_is_an_error(no_real_one, monkeypatch):
    """With its exit code."""
    monkeypatch.setenv(VARIABLE, "/bin/false")
    with pytest.raises(InfrastructureError, match=r"does not start.*exit 1"):
        Toxiproxy()


def test_the_environment_names_an_address(no_real_one, monkeypatch):
    """That server is used, and left running with all that is not ours."""
    with Toxiproxy("embedded") as shared:
        monkeypatch.setenv(VARIABLE, shared.url)
        theirs = shared.proxy("127.0.0.1:1")
        with Toxiproxy() as running:
            assert (running.backend, running.url) == ("toxiproxy", shared.url)
            ours = running.proxy("127.0.0.1:2")
        assert ours.closed
        assert shared._control.toxics(theirs.name) == {}


def test_the_real_one_is_found_on_the_path(monkeypatch):
    """And its process ends with us."""
    folder = os.path.dirname(program(PROGRAM))
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setenv("PATH", folder)
    running = Toxiproxy()
    assert running.backend == "toxiproxy"
    process = running._backend._process._process
    running.close()
    running.close()
    assert process.returncode == 0


def test_a_real_server_that_dies_is_told_with_its_last_words():
    """And `renew` starts another."""
    with toxiproxy("toxiproxy") as running:
        process = running._backend._process._process
        process.send_signal(signal.SIGKILL)
        process.wait()
        with pytest.raises(InfrastructureError, match=r"the process has ended, exit -9"):
            running.proxy("127.0.0.1:9")
        assert running.renew()
        running.proxy("127.0.0.1:9").close()
        assert not running.renew()


def test_a_worn_real_server_is_renewed_between_batches():
    """Not while a proxy is open."""
    with toxiproxy("toxiproxy") as running:
        assert 0 < running._backend._process.goroutines() < 100
        proxy = running.proxy("127.0.0.1:9")
        with pytest.raises(Unsafe, match="close all proxies"):
            running.renew()
        proxy.close()
        running._backend._process.goroutines = lambda: 5_001
        url = running.url
        assert running.renew()
        assert running.url != url


def test_a_call_has_its_limit_whatever_the_library_passes():
    """Every method."""
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        consumer = Consumer(f"http://127.0.0.1:{deaf.getsockname()[1]}", limit_s=0.05)
        for call in (consumer.get, consumer.post, consumer.delete, lambda path: consumer.patch(path, {})):
            with pytest.raises(InfrastructureError, match="not answered"):
                call("/x")


def test_the_port_of_a_proxy_is_kept_while_it_is_closed():
    """Nobody is given it in the moment in which it changes how its connections end; who closes the proxy gives it away."""
    with Toxiproxy("embedded") as here:
        proxy = here.proxy("127.0.0.1:9")
        proxy.refuse()
        with pytest.raises(OSError, match="in use"), socket.socket() as other:
            other.bind((proxy.host, proxy.port))
        proxy.heal()
        proxy.close()
        with socket.socket() as other:
            other.bind((proxy.host, proxy.port))
