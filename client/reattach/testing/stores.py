"""The contract suite of journals: what every `Store` must do, as a class of tests to inherit. For stores of your own, too.

    class TestMyStore(StoreContract):
        @pytest.fixture
        def open_store(self, tmp_path):
            return lambda: opened(MyStore(tmp_path / "runs.mine"))     # each call: the same journal, opened once more

Each test names one fact of the law in `reattach.stores.base`. Nothing here imports pytest, a clock or a network; no test waits.
What a store does under `kill -9`, on a full disk or with a damaged file cannot be asked from outside: test it beside this.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta

from reattach.core.messages import Arrival, Mark
from reattach.core.payload import digest_of
from reattach.stores.base import Busy, GapNote, Intent, Lease, LeaseGone, Refusal, RunRow, Store, StoreFailed, Write
from reattach.stores.leases import current_holder

OpenStore = Callable[[], Store]

SERVER, PROFILE = "http://127.0.0.1:8700", "native"
ELSEWHERE = current_holder("elsewhere")._replace(host="another.example", boot="another", pid=7)
DEAD = current_holder("dead")._replace(started="never")
"""This very process number, but of a process that began at another time: it is gone."""


def arrival(number: int, text: str = "") -> Arrival:
    """Return the event of a sequence number, as the native profile would have read it."""
    text = text or f"word {number} "
    stored = json.dumps({"id": f"e{number}", "type": "text.delta", "data": {"text": text}})
    return Arrival(
        id=f"e{number}",
        prev_id=f"e{number - 1}" if number > 1 else None,
        epoch="e1",
        sequence=number,
        cursor=f"e1.{number}",
        dedupe=f"e{number}",
        digest=digest_of(stored),
        type="text.delta",
        kind="text",
        text=text,
        time=None,
        data={"text": text},
        stored=stored,
        wrapped=True,
        outcome=None,
    )


def mark_at(position: int) -> Mark:
    """Return the mark behind the event of a number, in a log without gaps; 0 is the beginning."""
    return Mark(position, "e1", position, f"e{position}", f"e1.{position}") if position else Mark()


def events(lease: Lease, first: int, last: int) -> Write:
    """Return the commit of the events `first` to `last`."""
    batch = tuple(arrival(number) for number in range(first, last + 1))
    return Write(lease.run, lease.token, mark_at(first - 1), mark_at(last), batch)


def gap(lease: Lease, at: int) -> Write:
    """Return the commit of a gap that takes position `at`."""
    note = GapNote("expired", f"e1.{at - 1}", f"e1.{at + 9}", 9, {"text": "so far"})
    mark = Mark(at, "e1", at + 9, None, f"e1.{at + 9}")
    return Write(lease.run, lease.token, mark_at(at - 1), mark, gap=note)


def begun(store: Store, run_id: str = "run_1", *consumers: str) -> tuple[RunRow, Lease, list[Lease]]:
    """Return a new run with its writer's lease, and the lease of each consumer."""
    row = store.adopt(SERVER, PROFILE, run_id)
    holder = current_holder("test")
    found = [store.lease(row.run, consumer, holder, 60.0) for consumer in ("", *consumers)]
    held = [lease for lease in found if isinstance(lease, Lease)]
    assert len(held) == len(found), "a new run's leases are free"
    return row, held[0], held[1:]


@contextmanager
def refused(error: type[Exception]) -> Iterator[None]:
    """Expect an error."""
    try:
        yield
    except error:
        return
    raise AssertionError(f"{error.__name__} was expected")


class StoreContract:
    """Inherit it and give a fixture `open_store`, see the module."""

    # runs ---------------------------------------------------------------------------------------------------------

    def test_a_key_is_one_row(self, open_store: OpenStore) -> None:
        """The second intent under a key gets the first one's row, with the first one's request."""
        store = open_store()
        row, new = store.intend(Intent(SERVER, PROFILE, "k", '{"input":1}', "sha-1"))
        assert new
        assert (row.key, row.run_id, row.request, row.request_sha256) == ("k", None, '{"input":1}', "sha-1")
        again, new = store.intend(Intent(SERVER, PROFILE, "k", '{"input":2}', "sha-2"))
        assert not new
        assert again == row

    def test_a_key_belongs_to_its_server_and_profile(self, open_store: OpenStore) -> None:
        """The same key elsewhere is other work."""
        store = open_store()
        places = [(server, profile) for server in (SERVER, "http://b") for profile in (PROFILE, "x")]
        rows = {store.intend(Intent(*place, "k", "{}", "sha"))[0].run for place in places}
        assert len(rows) == 4

    def test_the_body_is_erased_when_the_run_id_is_known(self, open_store: OpenStore) -> None:
        """Its digest stays."""
        store = open_store()
        row, _ = store.intend(Intent(SERVER, PROFILE, "k", '{"input":1}', "sha"))
        row = store.created(row.run, run_id="run_1", session_id="s", status="running")
        assert (row.run_id, row.session_id, row.status) == ("run_1", "s", "running")
        assert (row.request, row.request_sha256) == (None, "sha")
        assert store.find(SERVER, PROFILE, key="k") == store.find(SERVER, PROFILE, run_id="run_1") == row

    def test_two_rows_of_one_run_become_one(self, open_store: OpenStore) -> None:
        """Attached by id while the create was on its way: the events, the key and the leases are of one row."""
        store = open_store()
        intent, _ = store.intend(Intent(SERVER, PROFILE, "k", "{}", "sha"))
        attached, lease, _ = begun(store, "run_1")
        store.commit([events(lease, 1, 2)])
        row = store.created(intent.run, run_id="run_1", session_id=None, status="running")
        assert (row.run, row.key, row.request_sha256) == (attached.run, "k", "sha")
        assert row.committed == mark_at(2)
        assert store.rows() == [row]
        assert store.commit([events(lease, 3, 3)]) == [None]

    def test_neither_key_nor_run_is_taken_from_another(self, open_store: OpenStore) -> None:
        """One key names one run: a create that says otherwise fails and changes nothing."""
        store = open_store()
        first, _ = store.intend(Intent(SERVER, PROFILE, "k1", "{}", "sha"))
        store.created(first.run, run_id="run_1", session_id=None, status="running")
        second, _ = store.intend(Intent(SERVER, PROFILE, "k2", "{}", "sha"))
        before = store.rows()
        with refused(StoreFailed):
            store.created(second.run, run_id="run_1", session_id=None, status="running")
        with refused(StoreFailed):
            store.created(first.run, run_id="run_2", session_id=None, status="running")
        assert store.rows() == before

    def test_only_an_unanswered_intent_can_be_forgotten(self, open_store: OpenStore) -> None:
        """A row with a run id stays."""
        store = open_store()
        attached = store.adopt(SERVER, PROFILE, "run_1")
        intent, _ = store.intend(Intent(SERVER, PROFILE, "k", "{}", "sha"))
        store.forget(intent.run)
        store.forget(attached.run)
        assert [row.run for row in store.rows()] == [attached.run]
        again, new = store.intend(Intent(SERVER, PROFILE, "k", "{}", "sha"))
        assert new
        assert again.run != intent.run, "a number is never given twice"

    def test_rows_come_newest_first_and_by_server(self, open_store: OpenStore) -> None:
        """Without a server, of all."""
        store = open_store()
        for server, run_id in ((SERVER, "a"), ("http://b", "b"), (SERVER, "c")):
            store.adopt(server, PROFILE, run_id)
        assert [row.run_id for row in store.rows()] == ["c", "b", "a"]
        assert [row.run_id for row in store.rows(SERVER)] == ["c", "a"]
        assert store.rows(SERVER, "other") == []

    def test_what_was_handed_out_and_needed_is_known(self, open_store: OpenStore) -> None:
        """Also to who opens the journal next."""
        store = open_store()
        row = store.adopt(SERVER, PROFILE, "run_1")
        store.hand_out(row.run)
        store.need(row.run, "repair")
        found = open_store().row(row.run)
        assert (found.handed_out, found.needs) == (True, "repair")
        store.need(row.run, "")
        assert store.row(row.run).needs == ""

    # events -------------------------------------------------------------------------------------------------------

    def test_a_commit_is_read_back_with_its_cursor(self, open_store: OpenStore) -> None:
        """Events and cursor are there together, for every opener."""
        store = open_store()
        row, lease, _ = begun(store)
        assert store.commit([events(lease, 1, 3)]) == [None]
        for journal in (store, open_store()):
            assert journal.row(row.run).committed == mark_at(3)
            found = journal.read(row.run, 0, 10)
            assert [(entry.position, entry.element["id"]) for entry in found] == [(1, "e1"), (2, "e2"), (3, "e3")]
            assert found[0].element["event"]["data"] == {"text": "word 1 "}

    def test_reading_begins_anywhere_and_misses_nothing(self, open_store: OpenStore) -> None:
        """From any position, by any limit, page after page gives the log; also from inside a batch."""
        store = open_store()
        row, lease, _ = begun(store)
        store.commit([events(lease, 1, 4), events(lease, 5, 5), events(lease, 6, 9), gap(lease, 10)])
        for after in range(11):
            for limit in (1, 3, 100):
                seen, at = [], after
                while page := store.read(row.run, at, limit):
                    seen += [entry.position for entry in page]
                    at = seen[-1]
                assert seen == list(range(after + 1, 11)), (after, limit)

    def test_any_text_comes_back_unchanged(self, open_store: OpenStore) -> None:
        """Line separators, NUL, four-byte characters, and half a surrogate pair, which UTF-8 cannot hold."""
        text = "a\u2028b\x00c🙂d\ud83d"
        store = open_store()
        row, lease, _ = begun(store)
        store.commit([Write(lease.run, lease.token, Mark(), mark_at(1), (arrival(1, text),))])
        (entry,) = store.read(row.run, 0, 10)
        assert entry.element["text"] == text
        assert entry.element["event"]["data"]["text"] == text

    def test_a_stale_write_is_refused_alone(self, open_store: OpenStore) -> None:
        """No holes and no repeats: it must follow exactly what is there. The others of its group are kept."""
        store = open_store()
        row, lease, _ = begun(store)
        other, other_lease, _ = begun(store, "run_2")
        store.commit([events(lease, 1, 2)])
        for wrong in (events(lease, 2, 2), events(lease, 4, 4)):
            number = store.row(other.run).committed.position + 1
            told = store.commit([wrong, events(other_lease, number, number)])
            assert isinstance(told[0], Refusal)
            assert (told[0].why, told[1]) == ("stale", None)
        assert [entry.position for entry in store.read(row.run, 0, 10)] == [1, 2]
        assert store.row(other.run).committed == mark_at(2)

    def test_what_follows_a_refused_write_is_refused_too(self, open_store: OpenStore) -> None:
        """In the same group as well."""
        store = open_store()
        row, lease, _ = begun(store)
        told = store.commit([events(lease, 2, 3), events(lease, 4, 5), events(lease, 1, 1)])
        assert [each and each.why for each in told] == ["stale", "stale", None]
        assert store.row(row.run).committed == mark_at(1)

    def test_a_write_of_a_former_owner_is_refused(self, open_store: OpenStore) -> None:
        """Fenced by the token, even where it would follow exactly."""
        store = open_store()
        row, lease, _ = begun(store)
        store.release(lease)
        successor = store.lease(row.run, "", current_holder("next"), 60.0)
        assert isinstance(successor, Lease)
        told = store.commit([events(lease, 1, 1), events(successor, 1, 1)])
        assert isinstance(told[0], Refusal)
        assert (told[0].why, told[1]) == ("fenced", None)

    def test_a_write_without_any_lease_is_refused(self, open_store: OpenStore) -> None:
        """Nobody owns the run, so nobody writes it."""
        store = open_store()
        row = store.adopt(SERVER, PROFILE, "run_1")
        (told,) = store.commit([events(Lease(row.run, "", 1), 1, 1)])
        assert isinstance(told, Refusal)
        assert told.why == "fenced"

    def test_a_write_that_would_leave_a_hole_is_an_error(self, open_store: OpenStore) -> None:
        """Its mark is not where its events end: nothing of its group is kept, and the store goes on."""
        store = open_store()
        row, lease, _ = begun(store)
        wrong = events(lease, 2, 2)._replace(mark=mark_at(3))
        with refused(ValueError):
            store.commit([events(lease, 1, 1), wrong])
        assert store.read(row.run, 0, 10) == []
        assert store.commit([events(lease, 1, 1)]) == [None]

    def test_a_gap_takes_a_position_and_begins_an_incarnation(self, open_store: OpenStore) -> None:
        """It is read back as an entry in its place; the newest events are those behind it."""
        store = open_store()
        row, lease, _ = begun(store)
        store.commit([events(lease, 1, 2), gap(lease, 3)])
        found = store.row(row.run)
        assert (found.committed.position, found.committed.cursor, found.incarnation) == (
            3,
            "e1.12",
            row.incarnation + 1,
        )
        assert store.newest(row.run, 10) == []
        batch = (arrival(13), arrival(14))
        behind = Write(lease.run, lease.token, found.committed, mark_at(14)._replace(position=5), batch)
        assert store.commit([behind]) == [None]
        element = store.read(row.run, 2, 1)[0].element
        assert element["kind"] == "gap"
        assert element["gap"]["reason"] == "expired"
        assert element["gap"]["missing"] == 9
        assert element["gap"]["snapshot"] == {"text": "so far"}
        assert [entry.element["id"] for entry in store.newest(row.run, 1)] == ["e14"]
        assert [entry.position for entry in store.newest(row.run, 10)] == [4, 5]

    def test_an_outcome_known_by_status_alone_moves_no_mark(self, open_store: OpenStore) -> None:
        """It is durable all the same, with its word and its time, and a later intent's answer does not undo it."""
        store = open_store()
        row, lease, _ = begun(store)
        store.commit([events(lease, 1, 1)])
        ended = Write(
            lease.run, lease.token, mark_at(1), mark_at(1), status="completed", outcome='{"status":"completed"}'
        )
        assert store.commit([ended]) == [None]
        found = open_store().row(row.run)
        assert (found.status, found.outcome, found.committed) == ("completed", '{"status":"completed"}', mark_at(1))
        assert found.settled_at is not None
        assert found.settled_at - found.created_at < timedelta(hours=1)
        assert store.created(row.run, run_id="run_1", session_id=None, status="running").status == "completed"

    # marks --------------------------------------------------------------------------------------------------------

    def test_a_mark_moves_up_and_never_back(self, open_store: OpenStore) -> None:
        """For every opener."""
        store = open_store()
        row, lease, (main,) = begun(store, "run_1", "main")
        store.commit([events(lease, 1, 5)])
        assert store.applied(row.run, "main") == 0
        store.mark(main, 3)
        store.mark(main, 2)
        assert store.applied(row.run, "main") == open_store().applied(row.run, "main") == 3
        assert store.applied(row.run, "other") == 0

    def test_nothing_is_applied_that_is_not_committed(self, open_store: OpenStore) -> None:
        """Neither by a mark nor by a note."""
        store = open_store()
        row, lease, (main,) = begun(store, "run_1", "main")
        store.commit([events(lease, 1, 2)])
        with refused(ValueError):
            store.mark(main, 3)
        store.note(main, 3)
        store.carry()
        assert store.applied(row.run, "main") <= 2

    def test_a_noted_mark_counts_at_once_and_is_carried(self, open_store: OpenStore) -> None:
        """For this opener, for another, and for the one after `close`."""
        store = open_store()
        row, lease, (main,) = begun(store, "run_1", "main")
        store.commit([events(lease, 1, 5)])
        store.note(main, 1)
        store.note(main, 2)
        assert store.applied(row.run, "main") == open_store().applied(row.run, "main") == 2
        store.commit([events(lease, 6, 6)])
        store.note(main, 4)
        store.close()
        assert open_store().applied(row.run, "main") == 4

    def test_a_noted_mark_is_the_next_owners(self, open_store: OpenStore) -> None:
        """Also if the one who noted it is dead and carried nothing."""
        store = open_store()
        row, lease, _ = begun(store)
        store.commit([events(lease, 1, 5)])
        main = store.lease(row.run, "main", DEAD, 60.0)
        assert isinstance(main, Lease)
        store.note(main, 4)
        other = open_store()
        assert isinstance(other.lease(row.run, "main", current_holder("next"), 60.0), Lease)
        assert other.applied(row.run, "main") == open_store().applied(row.run, "main") == 4

    def test_a_former_owner_moves_no_mark(self, open_store: OpenStore) -> None:
        """Neither by a mark nor by a note."""
        store = open_store()
        row, lease, (main,) = begun(store, "run_1", "main")
        store.commit([events(lease, 1, 5)])
        store.release(main)
        assert isinstance(open_store().lease(row.run, "main", current_holder("next"), 60.0), Lease)
        with refused(LeaseGone):
            store.mark(main, 3)
        store.note(main, 4)
        store.carry()
        assert store.applied(row.run, "main") == 0

    def test_an_owner_that_does_not_know_yet_moves_no_mark_either(self, open_store: OpenStore) -> None:
        """It slept, was taken over, wakes and confirms: its note is never carried."""
        store = open_store()
        row, lease, _ = begun(store)
        store.commit([events(lease, 1, 5)])
        main = store.lease(row.run, "main", DEAD, 60.0)
        assert isinstance(main, Lease)
        other = open_store()
        assert isinstance(other.lease(row.run, "main", current_holder("next"), 60.0), Lease)
        store.note(main, 4)
        store.carry()
        store.commit([events(lease, 6, 6)])
        with refused(LeaseGone):
            store.mark(main, 5)
        assert other.applied(row.run, "main") == store.applied(row.run, "main") == 0

    def test_a_gap_keeps_the_marks_before_it(self, open_store: OpenStore) -> None:
        """A new incarnation forgets nothing that was confirmed, and takes new notes."""
        store = open_store()
        row, lease, (main,) = begun(store, "run_1", "main")
        store.commit([events(lease, 1, 3)])
        store.note(main, 2)
        store.commit([gap(lease, 4)])
        assert open_store().applied(row.run, "main") == 2
        store.note(main, 4)
        assert open_store().applied(row.run, "main") == 4

    # leases -------------------------------------------------------------------------------------------------------

    def test_a_living_holder_keeps_its_lease(self, open_store: OpenStore) -> None:
        """Another client in the same process is told who has it and since when."""
        store = open_store()
        row = store.adopt(SERVER, PROFILE, "run_1")
        mine = current_holder("mine")
        assert isinstance(store.lease(row.run, "main", mine, 60.0), Lease)
        busy = open_store().lease(row.run, "main", current_holder("other"), 60.0)
        assert isinstance(busy, Busy)
        assert busy.holder == mine
        assert busy == store.holder(row.run, "main")
        assert isinstance(store.lease(row.run, "second", current_holder("other"), 60.0), Lease)

    def test_a_dead_holder_of_this_host_is_replaced_at_once(self, open_store: OpenStore) -> None:
        """With a token one higher."""
        store = open_store()
        row = store.adopt(SERVER, PROFILE, "run_1")
        first = store.lease(row.run, "main", DEAD, 60.0)
        assert store.holder(row.run, "main") is None
        second = store.lease(row.run, "main", current_holder("next"), 60.0)
        assert isinstance(first, Lease)
        assert second == first._replace(token=first.token + 1)

    def test_a_holder_elsewhere_is_replaced_when_its_time_is_over(self, open_store: OpenStore) -> None:
        """Not before: from here nobody can know."""
        store = open_store()
        row = store.adopt(SERVER, PROFILE, "run_1")
        store.lease(row.run, "main", ELSEWHERE, 60.0)
        assert isinstance(store.lease(row.run, "main", current_holder("next"), 60.0), Busy)
        store.lease(row.run, "other", ELSEWHERE, 0.0)
        assert isinstance(store.lease(row.run, "other", current_holder("next"), 60.0), Lease)

    def test_renewing_keeps_and_tells_what_was_lost(self, open_store: OpenStore) -> None:
        """A lease whose time was over, but which nobody took, is still one's own."""
        store = open_store()
        row = store.adopt(SERVER, PROFILE, "run_1")
        kept = store.lease(row.run, "main", ELSEWHERE, 0.0)
        lost = store.lease(row.run, "other", ELSEWHERE, 0.0)
        assert isinstance(kept, Lease)
        assert isinstance(lost, Lease)
        assert isinstance(store.lease(row.run, "other", current_holder("next"), 60.0), Lease)
        assert store.renew([kept, lost], 60.0) == [lost]
        assert isinstance(store.lease(row.run, "main", current_holder("next"), 60.0), Busy)

    def test_a_lease_given_back_is_free_and_its_token_spent(self, open_store: OpenStore) -> None:
        """Giving back a lost one changes nothing."""
        store = open_store()
        row = store.adopt(SERVER, PROFILE, "run_1")
        first = store.lease(row.run, "main", current_holder("one"), 60.0)
        assert isinstance(first, Lease)
        store.release(first)
        assert store.holder(row.run, "main") is None
        second = store.lease(row.run, "main", current_holder("two"), 60.0)
        assert second == first._replace(token=first.token + 1)
        store.release(first)
        assert isinstance(store.holder(row.run, "main"), Busy)

    # the whole ----------------------------------------------------------------------------------------------------

    def test_a_transaction_moves_the_mark_or_nothing(self, open_store: OpenStore) -> None:
        """Where the store has SQL; and a former owner gets none."""
        store = open_store()
        row, lease, (main,) = begun(store, "run_1", "main")
        store.commit([events(lease, 1, 2)])
        try:
            transaction = store.begin(main, expected=0)
        except NotImplementedError:
            return
        transaction.execute("CREATE TABLE bill (event TEXT)", ())
        transaction.execute("INSERT INTO bill VALUES (?)", ("e1",))
        transaction.commit(1)
        transaction = store.begin(main, expected=1)
        transaction.execute("INSERT INTO bill VALUES (?)", ("e2",))
        transaction.rollback()
        assert store.applied(row.run, "main") == 1
        transaction = store.begin(main, expected=1)
        assert transaction.execute("SELECT event FROM bill", ()) == [("e1",)]
        transaction.rollback()
        store.release(main)
        store.lease(row.run, "main", current_holder("next"), 60.0)
        with refused(LeaseGone):
            store.begin(main, expected=1)

    def test_another_openers_write_is_noticed(self, open_store: OpenStore) -> None:
        """Where the journal can be shared."""
        store = open_store()
        row, lease, _ = begun(store)
        other = open_store()
        before = other.changed()
        assert other.changed() == before
        store.commit([events(lease, 1, 1)])
        if store.shared:
            assert other.changed() != before
        assert other.row(row.run).committed == mark_at(1)

    def test_closing_twice_and_opening_again_is_fine(self, open_store: OpenStore) -> None:
        """What was committed is there."""
        store = open_store()
        row, lease, _ = begun(store)
        store.commit([events(lease, 1, 1)])
        store.close()
        store.close()
        store.open()
        assert store.row(row.run).committed == mark_at(1)
