"""WebSocket peers that we did not write: `websockets`' own client against our server, and its own server against our client."""

import contextlib
import http
import json
import threading
from collections.abc import Callable, Iterator

import pytest
import websockets.sync.client
import websockets.sync.server
from websockets.datastructures import Headers
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response
from websockets.sync.server import ServerConnection

import reattach
from client_stage import Facts
from reattach import Policy, errors
from reattach.testing import frames
from reattach_mockserver.live import LiveServer
from reattach_mockserver.scenarios.script import Limits, RawEvent, Say, Script, Wait

PATIENCE = 20
HASTY = Policy(retry_floor=0.01, retry_base=0.01, retry_ceiling=0.02, give_up_after=30.0)
BEATING = Script(
    name="beating", limits=Limits(heartbeat_ms=60), steps=(RawEvent(type="note", data={}), Wait(ms=3_600_000))
)
TALK = Script(name="talk", steps=(Say(text="Grüße 🙂 aus\u2028Köln", every_ms=5),))


# their client, our server ---------------------------------------------------------------------------------------------


@pytest.fixture
def server() -> Iterator[LiveServer]:
    with LiveServer(scripts={each.name: each for each in (BEATING, TALK)}) as running:
        yield running


def connect(server: LiveServer):
    url = server.url.replace("http", "ws") + "/v1/socket"
    return websockets.sync.client.connect(url, subprotocols=["reattach.v1"], proxy=None)


def talk(server: LiveServer, first: dict[str, object]) -> tuple[list[dict[str, object]], int | None]:
    """Say it, and return all that comes and the close code."""
    with connect(server) as socket:
        socket.send(json.dumps(first))
        found = []
        with contextlib.suppress(ConnectionClosed):
            while True:
                found.append(json.loads(socket.recv(PATIENCE)))
        return found, socket.close_code


def test_their_client_starts_and_resumes_and_gets_the_log_byte_for_byte(server):
    started, *events = talk(server, {"type": "start", "idempotency_key": "k", "input": {"scenario": "talk"}})[0]
    run_id = started["run"]["id"]
    log = [json.loads(body) for body in server.log(run_id)]
    assert [event["event"] for event in events] == log
    (ok, *rest), code = talk(server, {"type": "resume", "run_id": run_id, "cursor": events[2]["cursor"]})
    assert ok["cursor_id"] == log[2]["id"]
    assert [event["event"] for event in rest] == log[3:]
    assert code == 1000


def test_our_host_pings_at_the_runs_heartbeat_and_answers_pings(server):
    """Of uvicorn we ask for a message that ASGI does not have; here it is seen on the wire."""
    answered = []
    with connect(server) as socket:
        socket.send(json.dumps({"type": "start", "idempotency_key": "b", "input": {"scenario": "beating"}}))
        for _ in range(4):
            socket.recv(PATIENCE)
        three, pings = threading.Event(), []
        heard = socket.protocol.recv_frame

        def counted(frame):
            heard(frame)
            if frame.opcode == 9:
                pings.append(frame)
                if len(pings) >= 3:
                    three.set()

        socket.protocol.recv_frame = counted
        assert three.wait(PATIENCE)
        answered.append(socket.ping(b"there?").wait(PATIENCE))
    assert answered == [True]


def test_a_server_that_goes_down_says_so_on_every_socket():
    with LiveServer(scripts={"beating": BEATING}) as server, connect(server) as socket:
        socket.send(json.dumps({"type": "start", "idempotency_key": "b", "input": "x"}))
        for _ in range(4):
            socket.recv(PATIENCE)
        stopping = threading.Thread(target=server.stop)
        stopping.start()
        assert json.loads(socket.recv(PATIENCE)) == {"type": "closing", "reason": "draining", "retry_ms": 1000}
        with pytest.raises(ConnectionClosed) as caught:
            socket.recv(PATIENCE)
        stopping.join(PATIENCE)
    assert caught.value.rcvd is not None
    assert caught.value.rcvd.code == 1001


# their server, our client ---------------------------------------------------------------------------------------------

Act = Callable[[ServerConnection], None]
LAST = 6


def resume(socket: ServerConnection) -> int:
    """Take the first message, answer it, and return the sequence that was asked after."""
    first = json.loads(socket.recv(PATIENCE))
    assert first["type"] == "resume"
    after = int(first["cursor"].rpartition(".")[2]) if first["cursor"] else 0
    told = {"run_id": frames.RUN, "epoch": "e1", "cursor": f"e1.{after}", "cursor_id": frames.event_id(after)}
    socket.send(json.dumps({"type": "resume_ok", "last_sequence": LAST, "status": "running", **told}))
    return after


def event(socket: ServerConnection, sequence: int) -> None:
    """Send one event, in fragments, as a peer may."""
    if sequence == LAST:
        body = frames.event_json(sequence, type="run.completed", data={"result": "ok"})
    else:
        body = frames.event_json(sequence)
    whole = f'{{"type": "event", "cursor": "e1.{sequence}", "event": {body}}}'
    socket.send([whole[:20], whole[20:21], whole[21:]])


class Peer:
    """A server of `websockets` itself. Each connection does the next act after two events more; then all goes well.

    With `denies` it closes every one with 1008 instead, without a word.
    """

    def __init__(self, *acts: Act, denies: bool = False) -> None:
        self._denies = denies
        self.firsts: list[int] = []
        self._acts = list(acts)
        self._server = websockets.sync.server.serve(
            self._handle, "127.0.0.1", 0, subprotocols=["reattach.v1"], process_request=self._answer, compression=None
        )
        self.url = f"ws://127.0.0.1:{self._server.socket.getsockname()[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever)

    def __enter__(self) -> "Peer":
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._server.shutdown()
        self._thread.join(PATIENCE)

    def _answer(self, connection: ServerConnection, request: Request) -> Response | None:
        """Answer reads of the run, over the same port."""
        if request.path == "/v1/socket":
            return None
        body = json.dumps(frames.run_json(last=LAST)).encode()
        headers = Headers({"Content-Type": "application/json", "Content-Length": str(len(body)), "Connection": "close"})
        return Response(http.HTTPStatus.OK, "OK", headers, body)

    def _handle(self, socket: ServerConnection) -> None:
        act = self._acts.pop(0) if self._acts else None
        with contextlib.suppress(ConnectionClosed):
            if self._denies:
                socket.recv(PATIENCE)
                socket.close(1008)
                return
            after = resume(socket)
            self.firsts.append(after)
            for sequence in range(after + 1, LAST + 1 if act is None else min(after + 2, LAST) + 1):
                event(socket, sequence)
            if act is not None:
                act(socket)


def closing(code: int) -> Act:
    return lambda socket: socket.close(code, "why")


def broken(socket: ServerConnection) -> None:
    socket.socket.close()


def binary(socket: ServerConnection) -> None:
    socket.send(b"\x00")
    with contextlib.suppress(ConnectionClosed):
        socket.recv(PATIENCE)


def follow(peer: Peer, journal, facts: Facts) -> list[int | None]:
    with reattach.Client(peer.url, journal, policy=HASTY, observer=facts) as client:
        return [each.sequence for each in client.attach(frames.RUN)]


@pytest.mark.parametrize("act", [closing(1000), closing(1001), closing(1011), closing(1012), closing(1013), closing(3500),
                                 closing(4999), broken, binary], ids=["1000", "1001", "1011", "1012", "1013", "3500", "4999",
                                 "broken", "binary"])  # fmt: skip
def test_whatever_their_server_closes_with_the_client_goes_on_after_what_is_committed(tmp_path, act):
    """No close is the run's end; each is told to the observer."""
    facts = Facts()
    with Peer(act, act) as peer:
        assert follow(peer, tmp_path / "runs.db", facts) == [1, 2, 3, 4, 5, 6]
        # What is asked after is what is on disk: after a loss that is not always all that came.
        assert len(peer.firsts) == 3
        assert peer.firsts == sorted(peer.firsts)
        assert peer.firsts[0] == 0
    assert facts.count("first_message") == 3
    closed = [fact.detail for fact in facts.told if fact.name == "closed"]
    assert len(closed) == 3
    if act is broken:
        assert all(detail.startswith("1006, unclean") for detail in closed[:2])


def test_a_close_for_the_token_twice_without_progress_is_an_error(tmp_path):
    """1008 is a 401: the token is asked for once more, then it is the end; the journal keeps what came."""
    facts = Facts()
    with Peer(denies=True) as peer, pytest.raises(errors.NotAuthorized):
        follow(peer, tmp_path / "runs.db", facts)
    assert facts.count("attach") == 2
    assert [fact.detail for fact in facts.told if fact.name == "first_message"] == ["close", "close"]
