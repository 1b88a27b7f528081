"""Toxiproxy's HTTP API, row by row, on the embedded server and on the real one. What toxics do: test_toxiproxy_toxics.py."""

import socket

import pytest

from toxiproxy_stage import Api, Side, Stage, api, server, stage

__all__ = ["api", "server", "stage"]


def declined(answer, status: int, text: str) -> None:
    """An error is JSON with text and status, but called plain text."""
    assert (answer.status, answer.json) == (status, {"error": text, "status": status})
    assert answer.media == "text/plain; charset=utf-8"


def badly_formed(answer) -> None:
    assert answer.status == answer.json["status"] == 400
    assert answer.json["error"].startswith("bad request body: ")


def refused(address: tuple[str, int]) -> bool:
    try:
        socket.create_connection(address, timeout=5).close()
    except ConnectionRefusedError:
        return True
    return False


# -- proxies


def test_a_proxy_is_made_with_its_true_port(stage, api):
    """201; port 0 is replaced; enabled and without toxics; a stray `Logger`."""
    name = f"{stage.name}-a"
    answer = api("POST", "/proxies", {"name": name, "upstream": "127.0.0.1:9", "listen": "127.0.0.1:0", "foo": 1})
    assert answer.status == 201
    assert answer.media == "application/json"
    host, _, port = answer.json["listen"].rpartition(":")
    assert (host, int(port) > 0) == ("127.0.0.1", True)
    rest = {"name": name, "listen": answer.json["listen"], "upstream": "127.0.0.1:9", "enabled": True}
    assert answer.json == {**rest, "Logger": {}, "toxics": []}
    assert not refused((host, int(port)))
    assert api("DELETE", f"/proxies/{name}").status == 204


def test_all_proxies_are_an_object_by_name(stage, api):
    """200."""
    answer = api("GET", "/proxies")
    assert (answer.status, answer.media) == (200, "application/json")
    assert answer.json[stage.name] == stage.proxy


@pytest.mark.parametrize("field", ["name", "upstream"])
def test_name_and_upstream_are_required(api, field):
    """400; an empty one is none."""
    body = {"name": "n", "upstream": "127.0.0.1:9", "listen": "127.0.0.1:0"}
    declined(api("POST", "/proxies", {**body, field: ""}), 400, f"missing required field: {field}")
    del body[field]
    declined(api("POST", "/proxies", body), 400, f"missing required field: {field}")


@pytest.mark.parametrize("body", [b"", b"{bad", b"[]", b'{"name": 7, "upstream": "x:1"}', b'"x"', b"\xff"])
def test_what_is_no_proxy_is_declined(api, body):
    """400, with the reason behind fixed words."""
    badly_formed(api("POST", "/proxies", body))


def test_null_is_as_good_as_absent(stage, api):
    """For a proxy and for a toxic."""
    proxy = stage.made(f"{stage.name}-n", enabled=None, toxics=None)
    assert proxy["enabled"] is True
    body = {"type": "latency", "name": None, "stream": None, "toxicity": None, "attributes": None}
    answer = api("POST", f"{stage.path}/toxics", body)
    assert (answer.status, answer.json["name"], answer.json["toxicity"]) == (200, "latency_downstream", 1)


def test_a_name_is_there_once(stage, api):
    """409, and the first one stays."""
    body = {"name": stage.name, "upstream": "127.0.0.1:9", "listen": "127.0.0.1:0"}
    declined(api("POST", "/proxies", body), 409, "proxy already exists")
    assert api("GET", stage.path).json == stage.proxy


def test_an_address_that_is_in_use_is_a_500(stage, api):
    """And no proxy is left."""
    body = {"name": f"{stage.name}-b", "upstream": "127.0.0.1:9", "listen": stage.proxy["listen"]}
    declined(api("POST", "/proxies", body), 500, f"listen tcp {stage.proxy['listen']}: bind: address already in use")
    assert f"{stage.name}-b" not in api("GET", "/proxies").json


@pytest.mark.parametrize("listen", ["999.1.1.1:0", "nonsense", "127.0.0.1:x"])
def test_an_address_that_is_none_is_a_500(stage, api, listen):
    """Unresolvable, no port, a port that is none."""
    answer = api("POST", "/proxies", {"name": f"{stage.name}-c", "upstream": "127.0.0.1:9", "listen": listen})
    assert (answer.status, answer.json["status"]) == (500, 500)
    assert answer.json["error"].startswith("listen tcp")


def test_a_disabled_proxy_does_not_listen_yet(stage, api):
    """Its address is as it was given; enabling replaces the port."""
    proxy = stage.made(f"{stage.name}-d", enabled=False)
    assert (proxy["enabled"], proxy["listen"]) == (False, "127.0.0.1:0")
    now = api("PATCH", f"/proxies/{stage.name}-d", {"enabled": True}).json
    assert now["enabled"] is True
    assert not now["listen"].endswith(":0")


def test_one_proxy_is_shown(stage, api):
    """200, or 404."""
    assert api("GET", stage.path).json == stage.proxy
    declined(api("GET", "/proxies/nobody"), 404, "proxy not found")


@pytest.mark.parametrize("method", ["PATCH", "POST"])
def test_a_change_keeps_what_it_does_not_name(stage, api, method):
    """200; `name` is ignored silently."""
    answer = api(method, stage.path, {"enabled": False, "name": "other"})
    assert (answer.status, answer.json) == (200, {**stage.proxy, "enabled": False})
    assert refused(stage.address)
    assert api(method, stage.path, {"enabled": True}).json == stage.proxy
    badly_formed(api(method, stage.path, {"enabled": "yes"}))
    badly_formed(api(method, stage.path, b"{bad"))
    declined(api(method, "/proxies/nobody", {}), 404, "proxy not found")


def test_a_change_to_the_same_values_does_not_restart(stage, api):
    """Connections live on."""
    client, server = stage.connected()
    assert api("PATCH", stage.path, {"listen": stage.proxy["listen"], "upstream": stage.upstream}).status == 200
    client.sends(b"still here")
    assert server.gets(10) == b"still here"


def test_another_upstream_restarts_and_keeps_toxics(stage, api):
    """Connections are dropped; the port stays; new ones go to the new upstream, through the toxics."""
    client, _ = stage.connected()
    stage.toxic("limit_data", bytes=3)
    with socket.create_server(("127.0.0.1", 0)) as other:
        upstream = f"127.0.0.1:{other.getsockname()[1]}"
        answer = api("PATCH", stage.path, {"upstream": upstream})
        assert (answer.json["upstream"], answer.json["listen"]) == (upstream, stage.proxy["listen"])
        assert [each["name"] for each in answer.json["toxics"]] == ["limit_data_downstream"]
        assert client.rest() == (b"", "fin")
        client = stage.client()
        server = Side(other.accept()[0])
        server.sends(b"abcdef")
        assert client.rest() == (b"abc", "fin")
        server.closes()


def test_another_address_that_cannot_be_had_disables(stage, api):
    """500; the address is kept, the proxy is down."""
    taken = stage.upstream
    declined(api("PATCH", stage.path, {"listen": taken}), 500, f"listen tcp {taken}: bind: address already in use")
    now = api("GET", stage.path).json
    assert (now["listen"], now["enabled"]) == (taken, False)


def test_a_proxy_is_removed_with_its_connections(stage, api):
    """204, closed at once with every byte that came; then 404."""
    client, server = stage.connected()
    server.sends(b"last words")
    assert client.gets(10) == b"last words"
    answer = api("DELETE", stage.path)
    assert (answer.status, answer.text) == (204, "")
    assert client.rest() == (b"", "fin")
    assert server.rest() == (b"", "fin")
    assert refused(stage.address)
    declined(api("DELETE", stage.path), 404, "proxy not found")


# -- toxics


def test_a_toxic_has_defaults(stage, api):
    """200, not 201; downstream, toxicity 1, named after type and stream; missing settings are 0; others are ignored."""
    answer = api("POST", f"{stage.path}/toxics", {"type": "latency", "attributes": {"jitter": 0, "foo": 1}, "bar": 2})
    assert (answer.status, answer.media) == (200, "application/json")
    toxic = {"name": "latency_downstream", "type": "latency", "stream": "downstream", "toxicity": 1}
    assert answer.json == {**toxic, "attributes": {"latency": 0, "jitter": 0}}
    assert api("GET", f"{stage.path}/toxics/latency_downstream").json == answer.json
    assert api("GET", stage.path).json["toxics"] == [answer.json]


def test_every_toxic_has_its_settings(stage, api):
    """As they are named in the API, in its units."""
    given = {
        "noop": {},
        "latency": {"latency": 1, "jitter": 2},
        "bandwidth": {"rate": 3},
        "slow_close": {"delay": 4},
        "timeout": {"timeout": 5},
        "reset_peer": {"timeout": 6},
        "slicer": {"average_size": 7, "size_variation": 8, "delay": 9},
        "limit_data": {"bytes": 10},
    }
    for kind, attributes in given.items():
        stage.toxic(kind, "upstream", **attributes)
    shown = {each["type"]: each["attributes"] for each in api("GET", f"{stage.path}/toxics").json}
    assert shown == given


def test_toxics_are_listed_upstream_first(stage, api):
    """Then downstream; in each in the order in which they came."""
    for kind, stream in [
        ("latency", "downstream"),
        ("noop", "upstream"),
        ("noop", "downstream"),
        ("latency", "upstream"),
    ]:
        stage.toxic(kind, stream)
    answer = api("GET", f"{stage.path}/toxics")
    assert answer.status == 200
    names = [each["name"] for each in answer.json]
    assert names == ["noop_upstream", "latency_upstream", "latency_downstream", "noop_downstream"]
    declined(api("GET", "/proxies/nobody/toxics"), 404, "proxy not found")


def test_a_toxic_that_is_none_is_declined(stage, api):
    """400 each; nothing is added."""
    path = f"{stage.path}/toxics"
    stream = "stream was invalid, can be either upstream or downstream"
    declined(api("POST", path, {"type": "latency", "stream": "sideways"}), 400, stream)
    declined(api("POST", path, {"type": "nope"}), 400, "invalid toxic type")
    declined(api("POST", path, {"stream": "upstream"}), 400, "invalid toxic type")
    badly_formed(api("POST", path, {"type": "bandwidth", "attributes": {"rate": "x"}}))
    badly_formed(api("POST", path, {"type": "bandwidth", "attributes": {"rate": 1.5}}))
    badly_formed(api("POST", path, {"type": "bandwidth", "toxicity": "x"}))
    badly_formed(api("POST", path, b"{bad"))
    declined(api("POST", "/proxies/nobody/toxics", {"type": "latency"}), 404, "proxy not found")
    assert api("GET", path).json == []


def test_a_toxics_name_is_there_once_over_both_directions(stage, api):
    """409."""
    stage.toxic("latency", "downstream")
    body = {"type": "latency", "stream": "upstream", "name": "latency_downstream"}
    declined(api("POST", f"{stage.path}/toxics", body), 409, "toxic already exists")


def test_odd_settings_are_taken(stage, api):
    """Validation is thin: a negative number of bytes, a toxicity of 7, a stream in capitals, no settings."""
    body = {"type": "limit_data", "stream": "UPSTREAM", "toxicity": 7, "attributes": {"bytes": -4}}
    answer = api("POST", f"{stage.path}/toxics", body)
    assert answer.json == {**body, "name": "limit_data_UPSTREAM"}
    empty = api("POST", f"{stage.path}/toxics", {"type": "limit_data", "attributes": {}})
    assert (empty.status, empty.json["attributes"]) == (200, {"bytes": 0})


@pytest.mark.parametrize("method", ["PATCH", "POST"])
def test_a_change_of_a_toxic_merges_its_settings(stage, api, method):
    """Only attributes and toxicity; type, stream and name are ignored silently."""
    path = stage.toxic("latency", latency=5)
    body = {"attributes": {"jitter": 3}, "toxicity": 0.5, "name": "x", "type": "timeout", "stream": "upstream"}
    answer = api(method, path, body)
    toxic = {"name": "latency_downstream", "type": "latency", "stream": "downstream", "toxicity": 0.5}
    assert (answer.status, answer.json) == (200, {**toxic, "attributes": {"latency": 5, "jitter": 3}})
    assert api(method, path, {}).json == answer.json
    badly_formed(api(method, path, b"{bad"))
    badly_formed(api(method, path, {"attributes": {"latency": "x"}}))
    declined(api(method, f"{stage.path}/toxics/none", {}), 404, "toxic not found")


def test_a_toxic_is_removed(stage, api):
    """204, then 404."""
    path = stage.toxic("latency")
    answer = api("DELETE", path)
    assert (answer.status, answer.text) == (204, "")
    declined(api("DELETE", path), 404, "toxic not found")
    declined(api("GET", path), 404, "toxic not found")
    declined(api("DELETE", "/proxies/nobody/toxics/x"), 404, "proxy not found")


# -- many at once


def entry(stage: Stage, suffix: str, **more: object) -> dict[str, object]:
    return {"name": f"{stage.name}-{suffix}", "upstream": "127.0.0.1:9", "listen": "127.0.0.1:0", **more}


def gone(api: Api, stage: Stage, *suffixes: str) -> None:
    for suffix in suffixes:
        api("DELETE", f"/proxies/{stage.name}-{suffix}")


def test_populate_makes_what_is_not_there(stage, api):
    """201 with the list, in its order."""
    answer = api("POST", "/populate", [entry(stage, "p"), entry(stage, "q", enabled=False)])
    assert (answer.status, answer.media) == (201, "application/json")
    shown = [(each["name"], each["enabled"]) for each in answer.json["proxies"]]
    assert shown == [(f"{stage.name}-p", True), (f"{stage.name}-q", False)]
    gone(api, stage, "p", "q")


def test_populate_leaves_what_is_equal_untouched(stage, api):
    """Its toxics and `enabled: false` stay: populate does not enable."""
    stage.toxic("latency")
    stage.enabled(False)
    body = {"name": stage.name, "upstream": stage.upstream, "listen": stage.proxy["listen"]}
    answer = api("POST", "/populate", [body])
    assert answer.status == 201
    (shown,) = answer.json["proxies"]
    assert (shown["enabled"], len(shown["toxics"])) == (False, 1)
    assert api("GET", stage.path).json == shown


def test_populate_replaces_what_is_not_equal(stage, api):
    """Stopped, and made anew without toxics."""
    client, _ = stage.connected()
    stage.toxic("latency")
    body = {"name": stage.name, "upstream": "127.0.0.1:9", "listen": stage.proxy["listen"]}
    answer = api("POST", "/populate", [body])
    assert answer.json["proxies"] == [{**stage.proxy, "upstream": "127.0.0.1:9"}]
    assert client.rest() == (b"", "fin")


def test_populate_looks_at_everything_first(stage, api):
    """400, `proxies` null, JSON; nothing was made."""
    answer = api("POST", "/populate", [entry(stage, "r"), {"name": "s"}])
    text = "missing required field: upstream at proxy 2"
    assert (answer.status, answer.media) == (400, "application/json")
    assert answer.json == {"error": text, "status": 400, "proxies": None}
    for body in ({}, b"{bad"):
        answer = api("POST", "/populate", body)
        badly_formed(answer)
        assert answer.json["proxies"] is None
    assert f"{stage.name}-r" not in api("GET", "/proxies").json


def test_populate_that_fails_half_way_keeps_the_first(stage, api):
    """500 with what was made."""
    answer = api("POST", "/populate", [entry(stage, "u"), entry(stage, "v", listen=stage.proxy["listen"])])
    assert answer.status == answer.json["status"] == 500
    assert [each["name"] for each in answer.json["proxies"]] == [f"{stage.name}-u"]
    assert f"{stage.name}-u" in api("GET", "/proxies").json
    gone(api, stage, "u")


def test_reset_enables_all_and_removes_every_toxic(stage, api):
    """204, empty."""
    stage.toxic("latency", "upstream")
    stage.toxic("slow_close")
    stage.enabled(False)
    answer = api("POST", "/reset")
    assert (answer.status, answer.text) == (204, "")
    assert api("GET", stage.path).json == stage.proxy
    assert not refused(stage.address)


# -- the rest


def test_the_version_is_json(api):
    """200."""
    answer = api("GET", "/version")
    assert (answer.status, answer.media) == (200, "application/json;charset=utf-8")
    assert list(answer.json) == ["version"]


@pytest.mark.parametrize("path", ["/nope", "/proxies/", "/", "/proxies/x/toxics/y/z", "/proxies/x/y"])
def test_an_unknown_path_is_a_plain_404(api, path):
    """Not JSON."""
    answer = api("GET", path)
    assert (answer.status, answer.text, answer.media) == (404, "404 page not found\n", "text/plain; charset=utf-8")


@pytest.mark.parametrize(("method", "path"), [("PUT", "/proxies"), ("GET", "/reset"), ("DELETE", "/version")])
def test_an_unknown_method_is_an_empty_405(api, method, path):
    """Not JSON either."""
    answer = api(method, path)
    assert (answer.status, answer.text) == (405, "")
