"""Commits: atomic, without holes, fenced; gaps and outcomes; what is read back is what was written."""

from __future__ import annotations

from datetime import timedelta

from reattach.core.messages import Mark
from reattach.stores.base import Lease, Refusal, Write
from reattach.stores.leases import current_holder
from reattach.testing.stores.material import PROFILE, SERVER, OpenStore, arrival, begun, events, gap, mark_at, refused


class EventsContract:
    """Commits: atomic, without holes, fenced; gaps and outcomes; what is read back is what was written."""

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
