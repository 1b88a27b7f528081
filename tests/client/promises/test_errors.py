"""Promise 12: failures have names. What happened, to which run, at which cursor, what was tried, what to do now."""

import dataclasses
import socket
import sqlite3
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

import reattach
from client_stage import collected, in_memory
from reattach import Policy, errors
from reattach.stores import SqliteStore
from reattach.testing import Leg, Trip

pytestmark = pytest.mark.anyio

HASTY = Policy(
    give_up_after=0.3, retry_floor=0.01, retry_base=0.02, retry_ceiling=0.05, connect_timeout=2.0, poll_interval=0.1
)

LONGER = dataclasses.replace(HASTY, give_up_after=20.0)
"""For what ends by itself after three attempts, however busy the machine is."""


@pytest.fixture
def page():
    """A server that answers everything with what `page.told` says: status, headers, body."""

    class Answers(BaseHTTPRequestHandler):
        told = (200, {"Content-Type": "text/html"}, b"<html><title>Sign in</title>")

        def answer(self):
            status, headers, body = Answers.told
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = answer

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    Answers.url = f"http://127.0.0.1:{server.server_port}"
    yield Answers
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def nobody():
    """An address at which nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{taken.getsockname()[1]}"


def facts(error):
    """Every fact that the text names is an attribute, the hint is its end, and the code is the class."""
    text = str(error)
    assert error.hint, text
    assert text.endswith(error.hint)
    assert text.count(error.hint) == 1
    for fact in (error.run_id, error.key, error.cursor):
        if fact and "journal" not in text:
            assert fact in text, (fact, text)
    assert isinstance(error, errors.ReattachError)
    assert "None" not in text
    return text


async def every_way(face, client):
    """Start, follow, look on, wait and ask; return what each raised."""
    run = client.attach("run_1")

    async def views():
        return [view async for view in run.views(interval=0)]

    raised = []
    for act in (lambda: client.start("work", key="k"), lambda: collected(run), run.wait, views, run.status, run.cancel):
        with pytest.raises(errors.ReattachError) as caught:
            await act()
        facts(caught.value)
        raised.append(type(caught.value).__name__)
    return raised


async def test_nobody_there(face, nobody, journal):
    async with face.client(f"http://{nobody}", journal, policy=HASTY) as client:
        names = await every_way(face, client)
        assert names == ["ReconnectExhausted"] * 4 + ["AttachError"] * 2
        with pytest.raises(errors.ReconnectExhausted) as caught:
            await collected(client.attach("run_1"))
    text = facts(caught.value)
    assert text.startswith("run 'run_1' could not be reached for 0.3 s (")
    assert "attempts, last: " in text
    assert "refused" in text
    assert "The run itself may still be going on. Cursor the beginning. Iterate again whenever you like" in text


async def test_a_login_page(face, page, journal):
    async with face.client(page.url, journal, policy=LONGER) as client:
        names = await every_way(face, client)
        assert set(names) == {"RemoteProtocolError"}
        with pytest.raises(errors.RemoteProtocolError) as caught:
            await collected(client.attach("run_1"))
    text = facts(caught.value)
    assert '200 with text/html instead of text/event-stream ("<html><title>Sign in' in text
    assert "3 attempts" in text
    assert caught.value.tried == "3 attempts"


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ((500, {}, b"boom"), {"ReconnectExhausted", "AttachError"}),
        ((404, {"Content-Type": "text/plain"}, b"no"), {"NotFound", "AttachError"}),
        ((403, {}, b""), {"NotAuthorized"}),
        ((401, {}, b""), {"NotAuthorized"}),
        ((302, {"Location": "https://login.test/"}, b""), {"RemoteProtocolError", "AttachError"}),
        ((418, {}, b"teapot"), {"AttachError"}),
        ((200, {"Content-Type": "application/json"}, b"[]"), {"RemoteProtocolError"}),
        ((200, {"Content-Type": "application/json"}, b"\xff{"), {"RemoteProtocolError"}),
    ],
)
async def test_every_wrong_answer(face, page, journal, told, expected):
    page.told = told
    policy = HASTY if "ReconnectExhausted" in expected else LONGER
    async with face.client(page.url, journal, policy=policy) as client:
        assert set(await every_way(face, client)) <= expected


async def test_tls_to_a_plain_port_and_plain_to_a_tls_port(face, page, journal, tmp_path):
    async with face.client(page.url.replace("http", "https"), journal, policy=HASTY) as client:
        await every_way(face, client)
        with pytest.raises(errors.ReconnectExhausted, match=r"SSL|TLS|ssl"):
            await collected(client.attach("run_1"))


async def test_not_found_names_the_server_and_what_the_journal_holds(face, live, journal):
    async with face.client(live.url, journal) as client:
        with pytest.raises(errors.NotFound) as caught:
            await collected(client.attach("run_nowhere"))
    text = facts(caught.value)
    assert text.startswith(
        f"{live.url} knows no run 'run_nowhere' (404 run_not_found). Nothing was changed; the journal holds none of "
        "its events."
    )
    assert caught.value.problem == "run_not_found"


# journals ------------------------------------------------------------------------------------------------------------


def as_folder(path):
    path.mkdir()


def without_folder(path):
    return path.parent / "missing" / "runs.db"


def newer(path):
    connection = sqlite3.connect(path)
    store = SqliteStore(path)
    store.open()
    store.close()
    connection.execute("UPDATE reattach_meta SET value = '999' WHERE name = 'schema'")
    connection.commit()
    connection.close()


@pytest.mark.parametrize(
    ("make", "expected", "says"),
    [
        (as_folder, errors.StoreError, "runs.db"),
        (without_folder, errors.CommitFailed, "missing"),
        (newer, errors.JournalDamaged, "It was left as it is"),
    ],
)
async def test_a_journal_that_cannot_be_opened(face, live, journal, make, expected, says):
    """Told at the first use, again at the next, and the client closes."""
    path = make(journal) or journal
    if face.name == "async":
        with pytest.raises(expected, match=says) as caught:
            async with face.client(live.url, path):
                raise AssertionError("entered")
        facts(caught.value)
        return
    async with face.client(live.url, path) as client:
        for _ in range(2):
            with pytest.raises(expected, match=says) as caught:
                await client.start("x", key="k")
            facts(caught.value)
            with pytest.raises(expected):
                await collected(client.attach("run_1"))


async def test_a_damaged_journal_is_told_once_moved_aside_and_the_client_goes_on(face, live, journal):
    key = f"damaged-{face.name}"
    async with face.client(live.url, journal) as client:
        run = await client.start({"scenario": "slow"}, key=key)
        await collected(run, 2)
    with open(journal, "r+b") as file:  # noqa: ASYNC230 (this loop has nothing else to do)
        file.write(b"\0" * 100)
    async with face.client(live.url, journal) as client:
        with pytest.raises(errors.JournalDamaged) as caught:
            await client.runs()
        text = facts(caught.value)
        assert f"the journal {journal} is unreadable" in text
        assert f"It was moved to {journal}.damaged-" in text
        assert "Keys used before are unknown now." in text
        again = client.attach(run.id)
        assert [event.sequence for event in await collected(again, 2)] == [1, 2]
        assert [listed.id for listed in await client.runs()] == [run.id]
    assert list(journal.parent.glob("runs.db.damaged-*"))


async def test_a_full_disk_while_following(face, journal):
    """Nothing that is not on disk was shown; with room again, iterating goes on without a hole."""
    _server, args = in_memory()
    connection = sqlite3.connect(journal)
    connection.execute("CREATE TABLE mine (x)")
    connection.close()
    store = SqliteStore(journal)
    async with face.client(journal=store, **args) as client:
        run = await client.start("work", key="k")
        limit = "PRAGMA max_page_count = {}"
        store._writer.execute(limit.format(1))
        shown = []
        try:
            await collected(run, into=shown)
        except errors.CommitFailed as error:
            assert "no space left on device" in facts(error)  # noqa: PT017 (a small commit may still fit)
        store._writer.execute(limit.format(1073741823))
        shown += await collected(run)
    assert [event.sequence for event in shown] == [1, 2, 3, 4, 5]


async def test_a_read_only_journal_is_named(face, live, journal):
    """Mounted or made immutable; root ignores the mode, so SQLite is told to."""
    store = SqliteStore(journal)
    async with face.client(live.url, store) as client:
        await client.runs()
        store._writer.execute("PRAGMA query_only = ON")
        with pytest.raises(errors.CommitFailed, match=r"only read|readonly|read-only") as caught:
            await client.start("x", key=f"read-only-{face.name}")
        facts(caught.value)


# arguments -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"url": "127.0.0.1:8700"}, "is no address such as"),
        ({"url": "ftp://x"}, "is no address"),
        ({"url": "http://user:hunter2@host"}, "give secrets by token="),
        ({"url": "http://host?x=1"}, "no query or fragment"),
        ({"journal": "mysql://me:hunter2@x"}, "not in this version"),
        ({"journal": "postgresql://u:hunter2@x/db?typo=1"}, "invalid"),
        ({"journal": " "}, "needs a name"),
        ({"profile": "openai"}, "is not known; there is 'native'"),
        ({"transport": "pigeon"}, "transport="),
        ({"on_gap": "skip"}, "is needed"),
        ({"keep": "nothing"}, '"events" or "cursor" is needed'),
    ],
)
@pytest.mark.parametrize("kind", [reattach.Client, reattach.AsyncClient])
def test_arguments_that_cannot_be_right_are_refused_before_anything_is_opened(kind, arguments, says, tmp_path):
    rest = {"url": "http://127.0.0.1:1", "journal": tmp_path / "runs.db"} | arguments
    with pytest.raises(errors.UsageError, match=says) as caught:
        kind(**rest)
    assert "hunter2" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"run": ""}, "no run id"),
        ({"run": "a\nb"}, "no run id"),
        ({"run": "x" * 600}, "no run id"),
        ({"run": 7}, "no run id"),
        ({"consumer": ""}, "a name of 1 to 255 visible characters"),
        ({"consumer": "a\nb"}, "a name of 1 to 255 visible characters"),
        ({"consumer": "x" * 256}, "a name of 1 to 255 visible characters"),
        ({"ack": "later"}, '"auto" or "manual" is needed'),
        ({"after": "beginning", "consumer": "billing"}, "only looks on"),
        ({"after": "beginning", "ack": "manual"}, "only looks on"),
        ({"on_gap": "skip"}, "is needed"),
        ({"after": ""}, "is no cursor"),
    ],
)
async def test_an_attach_that_cannot_be_right_is_refused(face, arguments, says):
    _, args = in_memory()
    async with face.client(journal=":memory:", **args) as client:
        with pytest.raises(errors.UsageError, match=says):
            client.attach(**{"run": "run_1"} | arguments)


async def test_headers_and_tokens_that_cannot_be_sent_are_named(face, live, journal):
    for bad in (
        {"headers": {"X-Team": "a\r\nb"}},
        {"token": "a\nb"},
        {"token": lambda: 7},
        {"headers": {"bad name": "x"}},
    ):
        async with face.client(live.url, journal, **bad) as client:
            with pytest.raises(errors.LocalProtocolError) as caught:
                await client.start("x", key=f"bad-{face.name}")
            facts(caught.value)
            with pytest.raises(errors.LocalProtocolError):
                await collected(client.attach("run_1"))


async def test_a_proxy_that_is_none_is_named_when_the_client_opens(face, live, journal):
    async def work():
        async with face.client(live.url, journal, proxy="nonsense") as client:
            await client.runs()

    with pytest.raises(errors.UsageError, match="proxy"):
        await work()


async def test_an_observer_that_raises_loses_nothing(face):
    def observer(fact):
        raise RuntimeError("a faulty hook")

    _, args = in_memory(legs=[Leg(cut=(2, 0))])
    async with face.client(journal=":memory:", observer=observer, **args) as client:
        assert len(await collected(await client.start("work", key="k"))) == 5


def test_an_observer_that_calls_its_client_is_refused_not_left_hanging():
    told = []

    def observer(fact):
        try:
            client.runs()
        except errors.UsageError as error:
            told.append(str(error))

    _, args = in_memory()
    with reattach.Client(journal=":memory:", observer=observer, **args) as client:
        list(client.start("work", key="k"))
    assert "Hand the work to another thread" in told[0]


def test_a_cause_is_kept():
    _, args = in_memory(statuses=[Trip(refuse=403)])
    with reattach.Client(journal=":memory:", **args) as client:
        client.start("work", key="k")
        with pytest.raises(errors.NotAuthorized) as caught:
            client.attach("run_1").status()
    assert caught.value.__cause__ is not None


def test_codes_are_the_class_names_in_snake_case():
    assert errors.ReconnectExhausted("x").code == "reconnect_exhausted"
    assert errors.RunBusy("x").code == "run_busy"
