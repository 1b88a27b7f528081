"""Promise 1: the intent is on disk before the request leaves, the run id before the first frame is shown."""

import socket
import sqlite3

import pytest

from client_stage import collected, in_memory, sent_long_ago, sequences
from reattach import Policy, errors
from reattach.testing import Trip

pytestmark = pytest.mark.anyio


def rows(journal, columns):
    with sqlite3.connect(journal) as connection:
        found = connection.execute(f"SELECT {columns} FROM reattach_runs").fetchall()
    connection.close()
    return found


async def test_the_intent_is_on_disk_before_the_request_leaves(face, journal):
    server, args = in_memory()
    seen = []
    answer = server.wire._server.answer_call
    server.answer_call = lambda sent: (seen.append(rows(journal, "key, run_id, request IS NULL")), answer(sent))[1]
    async with face.client(journal=journal, **args) as client:
        await client.start("work", key="k")
    assert seen[0] == [("k", None, 0)]


async def test_the_body_is_erased_once_the_run_id_is_known_and_its_digest_stays(face, journal):
    _, args = in_memory()
    async with face.client(journal=journal, **args) as client:
        run = await client.start("work", key="k")
    ((run_id, request, digest),) = rows(journal, "run_id, request, request_sha256")
    assert (run_id, request) == (run.id, None)
    assert len(digest) == 64


async def test_a_lost_answer_sends_the_same_key_again_and_makes_one_run(face, journal):
    server, args = in_memory(creates=[Trip(lost="after")])
    async with face.client(journal=journal, **args) as client:
        run = await client.start("work", key="k")
        assert sequences(await collected(run)) == [1, 2, 3, 4, 5]
    sent = server.wire.calls("POST", "/v1/runs")
    assert len(sent) == 2
    assert {each.headers["idempotency-key"] for each in sent} == {"k"}
    assert sent[0].body == sent[1].body
    assert len(server.runs) == 1


async def test_a_start_that_was_never_answered_goes_on_in_the_next_process(face, journal):
    """The first client gives up; the next one sends the stored body under the stored key, and lists it before."""
    _, args = in_memory(creates=[Trip(lost="after")] * 40)
    async with face.client(journal=journal, **args) as client:
        with pytest.raises(errors.ReconnectExhausted, match="not answered") as caught:
            await client.start("work", key="k")
    assert caught.value.key == "k"
    _, args = in_memory()
    async with face.client(journal=journal, **args) as client:
        (run,) = await client.runs(unfinished=True)
        assert (run.id, run.needs) == ("", "follow")
        assert len(await collected(run)) == 5
        assert run.id == "run_1"


async def test_looking_at_a_start_without_an_answer_asks_nobody(face, journal):
    """`view()` and the facts of a run are the journal's, also when its id is not known."""
    server, args = in_memory(creates=[Trip(lost="after")] * 40)
    async with face.client(journal=journal, **args) as client:
        with pytest.raises(errors.ReconnectExhausted):
            await client.start("work", key="k")
        (run,) = await client.runs()
        before = len(server.wire.requests)
        assert (await run.view()).text == ""
        assert run.key == "k"
        assert len(server.wire.requests) == before


async def test_the_same_key_with_other_input_is_refused_before_anything_is_sent(face, journal):
    server, args = in_memory()
    async with face.client(journal=journal, **args) as client:
        run = await client.start({"order": 41}, key="k")
        before = len(server.wire.requests)
        with pytest.raises(
            errors.KeyConflict, match=f"for another input \\(run '{run.id}'\\). Nothing was sent."
        ) as caught:
            await client.start({"order": 42}, key="k")
        assert len(server.wire.requests) == before
    assert (caught.value.key, caught.value.run_id) == ("k", run.id)
    assert isinstance(caught.value, ValueError)


async def test_starting_again_is_attaching_also_after_the_end_and_without_network(face, journal):
    server, args = in_memory()
    async with face.client(journal=journal, **args) as client:
        run = await client.start("work", key="k")
        await collected(run)
        await run.result()
    before = len(server.wire.requests)
    async with face.client(journal=journal, **args) as client:
        again = await client.start("work", key="k")
        assert again.id == run.id
        assert await collected(again) == []
        assert await again.result() == "ok"
    assert len(server.wire.requests) == before


async def test_the_same_key_from_another_journal_is_the_same_run(face, live, tmp_path):
    runs = []
    for name in ("a.db", "b.db"):
        async with face.client(live.url, tmp_path / name) as client:
            runs.append((await client.start({"scenario": "words"}, key=f"elsewhere-{face.name}")).id)
    assert runs[0] == runs[1]


async def test_an_old_intent_is_looked_up_and_never_sent_again(face, journal):
    """Older than the server's memory of keys, and not found: it needs a person; "not found" is not "did not happen"."""
    server, args = in_memory(creates=[Trip(lost="before")] * 40)
    async with face.client(journal=journal, **args) as client:
        with pytest.raises(errors.ReconnectExhausted):
            await client.start("work", key="k")
    sent_long_ago(journal)
    server, args = in_memory()
    async with face.client(journal=journal, **args) as client:
        with pytest.raises(errors.AmbiguousOutcome, match="It was not repeated"):
            await client.start("work", key="k")
        assert server.wire.calls("POST", "/v1/runs") == []
        (run,) = await client.runs(unfinished=True)
        assert (run.id, run.needs) == ("", "reconcile")


@pytest.mark.parametrize(("days", "again"), [(900, True), (2, False), (None, False)])
async def test_how_long_a_key_is_remembered_is_the_servers_word(face, journal, days, again):
    """Told a retention above the intent's age, the client sends it again; told none, 24 h hold."""
    _, args = in_memory(creates=[Trip(lost="before")] * 40)
    async with face.client(journal=journal, **args) as client:
        with pytest.raises(errors.ReconnectExhausted):
            await client.start("work", key="k")
    sent_long_ago(journal)
    server, args = in_memory()
    server.key_retention_ms = days and days * 86_400_000
    async with face.client(journal=journal, **args) as client:
        if again:
            assert (await client.start("work", key="k")).id == "run_1"
        else:
            with pytest.raises(errors.AmbiguousOutcome):
                await client.start("work", key="k")
    assert len(server.wire.calls("POST", "/v1/runs")) == int(again)


async def test_an_old_intent_that_cannot_be_looked_up_says_so(face, journal):
    """The server is down: neither "not answered for 600 s" after three attempts, nor a fault of ours without a budget."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
    quick = {"retry_floor": 0.01, "retry_base": 0.01, "retry_ceiling": 0.01}
    async with face.client(url, journal, policy=Policy(give_up_after=0.05, **quick)) as client:
        with pytest.raises(errors.ReconnectExhausted):
            await client.start("work", key="k")
    sent_long_ago(journal)
    async with face.client(url, journal, policy=Policy(give_up_after=None, **quick)) as client:
        with pytest.raises(errors.AttachError, match="did not answer about the start with key 'k'"):
            await client.start("work", key="k")


async def test_a_definite_refusal_does_not_use_up_the_key(face, journal):
    _, args = in_memory(creates=[Trip(refuse=409, code="session_busy")])
    async with face.client(journal=journal, **args) as client:
        with pytest.raises(errors.SessionBusy, match="Nothing was created") as caught:
            await client.start("work", key="k", session_id="s")
        assert caught.value.problem == "session_busy"
        assert await client.runs() == []
        assert (await client.start("other work", key="k")).id == "run_1"


@pytest.mark.parametrize("last", [Trip(refuse=403, code="forbidden"), Trip(refuse=400, code="invalid_request")])
async def test_a_refusal_after_a_lost_answer_proves_nothing(face, journal, last):
    """What was lost before an old token was refused may have been taken: the intent stays, and nobody says that nothing is."""
    server, args = in_memory(creates=[Trip(lost="after"), Trip(refuse=401, code="unauthenticated"), last])
    async with face.client(journal=journal, **args) as client:
        with pytest.raises(errors.AttachError, match="An attempt before it was not answered and may have been taken"):
            await client.start("work", key="k")
        assert [run.key for run in await client.runs(unfinished=True)] == ["k"]
        assert (await client.start("work", key="k")).id == "run_1"
    assert len(server.runs) == 1


async def test_a_start_is_given_up_at_once_for_a_retry_after_beyond_the_budget(face):
    """The words say how long the server wants, not that it was waited for."""
    _, args = in_memory(creates=[Trip(refuse=503, retry_after=3600)], jumps=False)
    async with face.client(journal=":memory:", **args) as client:
        with pytest.raises(errors.ReconnectExhausted, match=r"within 600 s \(1 attempt, .*asking to wait 3600 s"):
            await client.start("work", key="k")


@pytest.mark.parametrize("key", ["", "a b", "é", "x" * 256, 7, None, "a\n"])
async def test_a_key_that_cannot_be_sent_is_refused(face, key):
    server, args = in_memory()
    async with face.client(journal=":memory:", **args) as client:
        with pytest.raises(errors.UsageError, match="key"):
            await client.start("work", key=key)
    assert server.wire.requests == []


@pytest.mark.parametrize("given", [float("nan"), {1: "x"}, {"x": {1, 2}}, b"bytes"])
async def test_an_input_that_is_no_json_is_refused(face, given):
    server, args = in_memory()
    async with face.client(journal=":memory:", **args) as client:
        with pytest.raises(errors.UsageError, match="not JSON"):
            await client.start({"input": given}, key="k")
    assert server.wire.requests == []
