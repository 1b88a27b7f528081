"""Promise 1: what the journal does not know it says: each run is listed with what it needs, and a person's word settles a start."""

import sqlite3

import pytest

from client_stage import collected, in_memory, sent_long_ago
from reattach import Policy, Status, errors, profiles
from reattach.stores import SqliteStore, open_store
from reattach.testing import Beat, Trip

pytestmark = pytest.mark.anyio

PAUSE = Beat(do="pause", data=[{"id": "act_1"}])
KEYLESS = profiles.Native(keyed=False)


async def test_every_kind_of_need_is_listed_after_a_crash(face, journal):
    """B85: each run with its id, key and cursor, newest first; "nothing" is left out of the unfinished."""
    server, args = in_memory(creates=[Trip()] * 3 + [Trip(lost="before")] * 40, jumps=True)
    async with face.client(journal=journal, **args) as client:
        done = await client.start("done", key="done")
        await collected(done)
        half = await client.start("half", key="half")
        await collected(half, limit=2)
        server._beats = (PAUSE,)
        waits = await client.start("waits", key="waits")
        await waits.wait()
        with pytest.raises(errors.ReconnectExhausted):
            await client.start("lost", key="lost")
    store = open_store(journal)
    store.open()
    store.need(store.find(args["url"], "native", key="lost").run, "reconcile")
    store.need(store.adopt(args["url"], "native", "run_9").run, "repair")
    store.close()
    async with face.client(journal=journal, **args) as client:
        listed = [(run.id, run.key, run.needs) for run in await client.runs()]
        unfinished = [run.key for run in await client.runs(unfinished=True)]
        assert listed == [
            ("run_9", None, "repair"),
            ("", "lost", "reconcile"),
            ("run_3", "waits", "respond"),
            ("run_2", "half", "follow"),
            ("run_1", "done", "nothing"),
        ]
        assert unfinished == [None, "lost", "waits", "half"]
        assert len(await collected(client.attach("run_2"))) == 3


async def lost(face, journal):
    """Leave a start of which nobody knows: the request left, no answer came, and the vendor takes no key."""
    server, args = in_memory(creates=[Trip(lost="after")], keys="ignored")
    async with face.client(journal=journal, profile=KEYLESS, **args) as client:
        with pytest.raises(errors.AmbiguousOutcome):
            await client.start("work", key="k")
    assert len(server.wire.calls("POST", "/v1/runs")) == 1
    return server, args


async def test_an_ambiguous_start_says_all_that_a_person_needs(face, journal):
    """When it left, where to, why it was not repeated, what to do; and it says so again without sending anything."""
    server, args = await lost(face, journal)
    before = len(server.wire.requests)
    async with face.client(journal=journal, profile=KEYLESS, **args) as client:
        with pytest.raises(errors.AmbiguousOutcome) as caught:
            await client.start("work", key="k")
        (run,) = await client.runs(unfinished=True)
        assert (run.id, run.key, run.needs) == ("", "k", "reconcile")
        for ask in (run.wait, run.status, run.cancel):
            with pytest.raises(errors.AmbiguousOutcome):
                await ask()
        with pytest.raises(errors.AmbiguousOutcome):
            await collected(run)
    assert len(server.wire.requests) == before
    told = str(caught.value)
    for words in ("'k'", "http://memory.test", " UTC ", "takes no key", "may or may not", "It was not repeated."):
        assert words in told
    assert told.endswith(
        "Look at the server, then client.reconcile('k', run_id=\"…\"), or run_id=None if there is none."
    )


async def test_a_persons_word_that_names_the_run_goes_on_with_it(face, journal):
    _, args = await lost(face, journal)
    async with face.client(journal=journal, profile=KEYLESS, **args) as client:
        await client.reconcile("k", run_id="run_1")
        run = await client.start("work", key="k")
        assert (run.id, run.needs) == ("run_1", "follow")
        assert len(await collected(run)) == 5
        await client.reconcile("k", run_id="run_1")
        with pytest.raises(errors.KeyConflict):
            await client.start("other work", key="k")


async def test_a_persons_word_that_there_is_none_frees_the_key(face, journal):
    """For other input, too; a handle of the forgotten start says what happened."""
    server, args = await lost(face, journal)
    async with face.client(journal=journal, profile=KEYLESS, **args) as client:
        (old,) = await client.runs()
        await client.reconcile("k", run_id=None)
        assert await client.runs() == []
        with pytest.raises(errors.UsageError, match="created nothing, and the journal has forgotten it"):
            await old.wait()
        assert (await client.start("other work", key="k")).id == "run_2"
    assert len(server.runs) == 2


async def test_a_persons_word_joins_a_run_that_was_attached_meanwhile(face, journal):
    """What was read of it stays."""
    _, args = await lost(face, journal)
    async with face.client(journal=journal, profile=KEYLESS, **args) as client:
        await collected(client.attach("run_1"))
        await client.reconcile("k", run_id="run_1")
        (run,) = await client.runs()
        assert (run.id, run.key, run.needs) == ("run_1", "k", "nothing")


@pytest.mark.parametrize(
    ("key", "run_id", "told"),
    [
        ("nobody", None, "knows no start with key 'nobody'"),
        ("k", "", "is no run id"),
        ("k", "a\nb", "is no run id"),
        ("known", "run_7", "was answered: it made run 'run_2'"),
        ("known", None, "was answered: it made run 'run_2'"),
        ("k", "run_2", "run 'run_2' has key 'known' already"),
    ],
)
async def test_a_word_that_cannot_be_right_changes_nothing(face, journal, key, run_id, told):
    _, args = await lost(face, journal)
    async with face.client(journal=journal, profile=KEYLESS, **args) as client:
        await client.start("x", key="known")
        before = rows(journal)
        with pytest.raises(errors.UsageError, match=told) as caught:
            await client.reconcile(key, run_id=run_id)
        assert caught.value.key == key
        assert rows(journal) == before


def rows(journal):
    with sqlite3.connect(journal) as connection:
        found = connection.execute("SELECT run, key, run_id, needs FROM reattach_runs").fetchall()
    connection.close()
    return found


async def test_a_lost_response_without_keys_needs_a_persons_word_too(face, journal):
    """It has no key of its own: the one that it was sent under names it."""
    server, args = in_memory(story=[PAUSE], creates=[Trip(), Trip(lost="after")], keys="ignored")
    async with face.client(journal=journal, profile=KEYLESS, **args) as client:
        run = await client.start("work", key="k")
        (action,) = (await run.wait()).required_actions
        with pytest.raises(errors.AmbiguousOutcome, match="the response to run 'run_1' was sent") as caught:
            await run.respond(action.approve())
        with pytest.raises(errors.AmbiguousOutcome):
            await run.respond(action.approve())
        digest = server.wire.calls("POST", "/v1/runs")[1].headers["idempotency-key"]
        assert digest in str(caught.value)
        listed = [(each.id, each.needs) for each in await client.runs(unfinished=True)]
        assert listed == [("", "reconcile")]
        await client.reconcile(digest, run_id="run_2")
        assert (await run.respond(action.approve())).id == "run_2"
        assert (await (await client.start("work", key="k")).wait()).status is Status.COMPLETED
    assert len(server.wire.calls("POST", "/v1/runs")) == 2


async def test_a_vendor_without_keys_may_be_asked_again_while_nothing_has_left(face, journal):
    """Connection refused, and "too many requests": definite. Only what may have been taken is not repeated."""
    refused = [Trip(lost="before"), Trip(refuse=429, code="overloaded", retry_after=1), Trip(lost="before")]
    server, args = in_memory(creates=refused, keys="ignored")
    async with face.client(journal=journal, profile=KEYLESS, **args) as client:
        assert (await client.start("work", key="k")).id == "run_1"
    assert len(server.wire.calls("POST", "/v1/runs")) == 4


@pytest.mark.parametrize("trip", [Trip(refuse=502), Trip(refuse=503), Trip(lost="after"), Trip(delay=None)])
async def test_a_vendor_without_keys_is_not_asked_again_after_a_gateways_word(face, journal, trip):
    """A 502 says nothing about what is behind it; nor does silence."""
    server, args = in_memory(creates=[trip], keys="ignored")
    async with face.client(journal=journal, profile=KEYLESS, policy=Policy(give_up_after=None), **args) as client:
        with pytest.raises(errors.AmbiguousOutcome):
            await client.start("work", key="k")
    assert len(server.wire.calls("POST", "/v1/runs")) == 1


async def test_a_start_that_is_found_after_all_needs_nobody(face, journal):
    """The look-up found nothing yesterday; today it does: no person has to say so."""
    _, args = in_memory(creates=[Trip(lost="before")] * 40)
    async with face.client(journal=journal, **args) as client:
        with pytest.raises(errors.ReconnectExhausted):
            await client.start("work", key="k")
    sent_long_ago(journal)
    server, args = in_memory()
    async with face.client(journal=journal, **args) as client:
        with pytest.raises(errors.AmbiguousOutcome):
            await client.start("work", key="k")
        server.create("k", b'{"input":"work"}')
        run = await client.start("work", key="k")
        assert (run.id, [each.needs for each in await client.runs()]) == ("run_1", ["follow"])


async def test_an_old_response_is_looked_up_and_never_sent_again(face, journal):
    """Like a start: older than the server's memory of keys, it is found by its key, or needs a person."""
    _, args = in_memory(story=[PAUSE], creates=[Trip(), *[Trip(lost="before")] * 40])
    async with face.client(journal=journal, **args) as client:
        run = await client.start("work", key="k")
        (action,) = (await run.wait()).required_actions
        with pytest.raises(errors.ReconnectExhausted):
            await run.respond(action.approve())
    sent_long_ago(journal)
    server, args = in_memory(story=[PAUSE])
    server.create("k", b'{"input":"work"}')
    async with face.client(journal=journal, **args) as client:
        with pytest.raises(errors.AmbiguousOutcome, match="knows no run of it"):
            await client.attach("run_1").respond(action.approve())
    assert server.wire.calls("POST", "/v1/runs") == []


class Meanwhile(SqliteStore):
    """A journal in which something happens between a create's answer and its being stored, as another process can make it."""

    def __init__(self, path, happens):
        super().__init__(path)
        self._happens = [happens]

    def created(self, run, **told):
        if self._happens:
            self._happens.pop()(self, run)
        return super().created(run, **told)


async def test_an_answer_that_comes_after_a_persons_word_is_what_happened(face, journal):
    """Promise 1: reconcile(run_id=None) while the request was out. There is a run, and its id is not lost."""
    _, args = in_memory()
    store = Meanwhile(journal, lambda store, run: store.forget(run))
    async with face.client(journal=store, **args) as client:
        run = await client.start("work", key="k")
        assert [(each.id, each.key) for each in await client.runs()] == [(run.id, "k")]
        assert len(await collected(run)) == 5
    async with face.client(journal=journal, **args) as client:
        assert (await client.start("work", key="k")).id == run.id
        with pytest.raises(errors.KeyConflict):
            await client.start("other work", key="k")


async def test_a_start_that_was_joined_to_its_run_meanwhile_is_that_run(face, journal):
    """Promise 1: its run was attached by id and the two became one, while the answer was on its way."""

    def joined(store, run):
        row = store.row(run)
        store.adopt(row.server, row.profile, "run_1")
        SqliteStore.created(store, run, run_id="run_1", session_id=None, status="running")

    _, args = in_memory()
    async with face.client(journal=Meanwhile(journal, joined), **args) as client:
        run = await client.start("work", key="k")
        assert run.id == "run_1"
        assert [(each.id, each.key) for each in await client.runs()] == [("run_1", "k")]


async def test_a_handle_of_a_start_that_was_joined_to_its_run_is_that_run(face, journal):
    """It is not said to have created nothing: there is its run, under its key."""
    _, args = in_memory(creates=[Trip(lost="after")], keys="ignored")
    async with face.client(journal=journal, profile=KEYLESS, **args) as client:
        with pytest.raises(errors.AmbiguousOutcome):
            await client.start("work", key="k")
        (listed,) = await client.runs(unfinished=True)
        await collected(client.attach("run_1"), limit=1)
        await client.reconcile("k", run_id="run_1")
        await listed.view()
        assert (listed.id, listed.key) == ("run_1", "k")


async def test_a_run_that_is_not_the_one_a_person_named_is_a_conflict_and_no_fault_of_the_disk(face, journal):
    """Promise 12: both runs may be there; the journal keeps the person's word, and the error names the two."""

    def named(store, run):
        SqliteStore.created(store, run, run_id="run_77", session_id=None, status="unknown")

    _, args = in_memory()
    async with face.client(journal=Meanwhile(journal, named), **args) as client:
        with pytest.raises(errors.AttachError, match="already has run 'run_77', it cannot also be 'run_1'") as caught:
            await client.start("work", key="k")
        assert not isinstance(caught.value, errors.StoreError)
        assert [(each.id, each.key) for each in await client.runs()] == [("run_77", "k")]
