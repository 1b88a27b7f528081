"""Rows of runs: a key is one row, an id is one row, and what is noted about a run is known to the next opener."""

from __future__ import annotations

from reattach.stores.base import Intent, StoreConflict
from reattach.testing.stores.material import PROFILE, SERVER, OpenStore, begun, events, mark_at, refused


class RunsContract:
    """Rows of runs: a key is one row, an id is one row, and what is noted about a run is known to the next opener."""

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
        with refused(StoreConflict):
            store.created(second.run, run_id="run_1", session_id=None, status="running")
        with refused(StoreConflict):
            store.created(first.run, run_id="run_2", session_id=None, status="running")
        assert store.rows() == before

    def test_only_what_is_a_mere_name_can_be_forgotten(self, open_store: OpenStore) -> None:
        """An intent without a run id, an id without anything else; a row that was ever known to be a run stays."""
        store = open_store()
        intent, _ = store.intend(Intent(SERVER, PROFILE, "k", "{}", "sha"))
        store.forget(intent.run)
        store.forget(store.adopt(SERVER, PROFILE, "typo").run)
        assert store.rows() == []
        started, _ = store.intend(Intent(SERVER, PROFILE, "other", "{}", "sha"))
        store.created(started.run, run_id="run_1", session_id=None, status="unknown")
        followed, lease, _ = begun(store, "run_2")
        store.commit([events(lease, 1, 1)])
        damaged = store.adopt(SERVER, PROFILE, "run_3")
        store.need(damaged.run, "repair")
        answered = store.adopt(SERVER, PROFILE, "run_4", continues="run_2")
        kept = [answered.run, damaged.run, followed.run, started.run]
        for run in (*kept, 1_000):
            store.forget(run)
        assert [row.run for row in store.rows()] == kept
        again, new = store.intend(Intent(SERVER, PROFILE, "k", "{}", "sha"))
        assert new
        assert again.run != intent.run, "a number is never given twice"

    def test_a_continuation_is_known_by_its_run_and_its_digest(self, open_store: OpenStore) -> None:
        """It has no key: the same answers are one row, other answers another, and several rows without a key are no conflict."""
        store = open_store()
        first, new = store.intend(Intent(SERVER, PROFILE, None, '{"a":1}', "sha-1", "run_1"))
        assert new
        assert (first.key, first.continues, first.run_id, first.request) == (None, "run_1", None, '{"a":1}')
        assert store.intend(Intent(SERVER, PROFILE, None, '{"a":1}', "sha-1", "run_1")) == (first, False)
        second, new = store.intend(Intent(SERVER, PROFILE, None, '{"a":2}', "sha-2", "run_1"))
        assert new
        third, new = store.intend(Intent(SERVER, PROFILE, None, '{"a":1}', "sha-1", "run_2"))
        assert new
        assert open_store().continuing(SERVER, PROFILE, "run_1") == [second, first]
        assert store.continuing(SERVER, PROFILE, "run_2") == [third]
        assert store.continuing("http://b", PROFILE, "run_1") == []

    def test_what_a_run_continues_is_noted_when_it_is_attached(self, open_store: OpenStore) -> None:
        """Also later; and it is never changed."""
        store = open_store()
        assert store.adopt(SERVER, PROFILE, "run_2").continues is None
        row = store.adopt(SERVER, PROFILE, "run_2", continues="run_1")
        assert (row.continues, store.row(row.run)) == ("run_1", row)
        assert store.adopt(SERVER, PROFILE, "run_2", continues="run_0") == row
        assert store.adopt(SERVER, PROFILE, "run_3", continues="run_2").continues == "run_2"

    def test_a_continuation_and_its_attached_run_become_one(self, open_store: OpenStore) -> None:
        """The row that was there stays, and says what it continues; a start's own key and digest are not lost to it."""
        store = open_store()
        started, _ = store.intend(Intent(SERVER, PROFILE, "k", "{}", "sha"))
        store.created(started.run, run_id="run_2", session_id=None, status="running")
        answered, _ = store.intend(Intent(SERVER, PROFILE, None, '{"a":1}', "sha-1", "run_1"))
        row = store.created(answered.run, run_id="run_2", session_id="s", status="running")
        assert (row.run, row.key, row.request_sha256, row.continues) == (started.run, "k", "sha", "run_1")
        assert store.rows() == [row]

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

    def test_a_row_that_is_gone_has_no_answer_and_no_needs(self, open_store: OpenStore) -> None:
        """Whoever still has its number is told by `created`, and changes nothing by the rest."""
        store = open_store()
        row, _ = store.intend(Intent(SERVER, PROFILE, "k", "{}", "sha"))
        store.forget(row.run)
        with refused(KeyError):
            store.created(row.run, run_id="run_1", session_id=None, status="running")
        store.need(row.run, "reconcile")
        store.hand_out(row.run)
        store.forget(row.run)
        assert store.rows() == []
