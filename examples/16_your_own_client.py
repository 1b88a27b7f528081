"""Your own HTTP client, cut at each event: run it with pytest.

pytest examples/16_your_own_client.py
pytest examples/16_your_own_client.py --reattach-sample full       # inside each event, too
"""

import httpx
import pytest


def follow(url: str, client: httpx.Client):
    """Yield the id of each event; go on after the last one when the connection ends, however it ends."""
    last = ""
    for _ in range(10):
        try:
            headers = {"Accept": "text/event-stream", **({"Last-Event-ID": last} if last else {})}
            with client.stream("GET", url, headers=headers) as answer:
                identity = kind = ""
                for line in answer.iter_lines():
                    name, _, value = line.partition(": ")
                    if name == "id":
                        identity = value
                    elif name == "event":
                        kind = value
                    elif not line and identity:
                        yield identity
                        last, identity = identity, ""
                        if kind == "run.completed":
                            return
        except httpx.TransportError:
            pass


@pytest.mark.reattach_cuts("hello", faults=("fin", "rst"))
def test_it_survives_every_cut(reattach_chaos):
    with httpx.Client(timeout=5) as client:
        reattach_chaos.check(follow(reattach_chaos.events_url, client))


@pytest.mark.reattach_cuts("hello", faults=("rst",))
def test_it_survives_them_without_a_socket_of_its_own(reattach_chaos, respx_mock):
    respx_mock.get(path__regex=r"^/v1/runs/[^/]+/events$").mock(side_effect=reattach_chaos.respond)
    with httpx.Client() as client:
        reattach_chaos.check(follow(f"https://agents.example/v1/runs/{reattach_chaos.run_id}/events", client))
