"""I19, I20, I24, I26."""

from dataclasses import replace

import pytest

from chaos_history import (
    again,
    applied,
    committed,
    error,
    exited,
    finished,
    gap,
    holds,
    log,
    says,
    shown,
    silent,
    wrong,
)
from reattach_chaos.checkers import caused_store_error, fenced, isolation, resources
from reattach_chaos.history import Lease, Resources, Store


def theirs(*records):
    return [replace(record, who="other") for part in records for record in (part if isinstance(part, list) else [part])]


def test_other_subscribers_see_the_log():
    """Whole, where they told the end; without holes, where they still look."""
    assert holds(says(isolation, log(3), shown(1), theirs(shown(1, 2, 3), finished(), exited())))
    assert holds(says(isolation, log(3), theirs(shown(1, 2))))
    assert silent(says(isolation, log(3), shown(1, 1)))


@pytest.mark.parametrize(
    ("seen", "words"),
    [
        ([shown(1, 3)], "other: event 2 (e1.2) was never shown"),
        ([shown(1, 2), finished()], "other: event 3 (e1.3) was never shown"),
        ([shown(1, 1)], "other: event 1 (e1.1) was shown twice"),
        ([shown(2, 1)], "event 1 (e1.1) was shown after event 2 (e1.2)"),
    ],
)
def test_what_others_miss_is_told_with_their_name(seen, words):
    """The client's faults must not reach them."""
    proof = [] if len(seen) == 1 else shown(3, who="nobody")
    ends = theirs(*seen) if len(seen) == 1 else [*theirs(seen[0]), *theirs_end(seen[1])]
    assert wrong(says(isolation, log(3), ends, proof))[1] == words


def theirs_end(end):
    from chaos_history import came

    return theirs(came(3), end)


def test_a_log_that_was_replaced_is_not_required_of_others():
    """Only what is alive."""
    assert holds(says(isolation, log(2, settles=None), log(1, epoch="e2"), theirs(shown(1, epoch="e2"))))


def held(when, **facts):
    return Resources(when=when, sockets=3, tasks=2, memory_bytes=1000, **facts)


def test_what_was_held_before_may_be_held_after():
    """And some more memory, which is an allocator's habit."""
    assert holds(says(resources, held("before"), replace(held("after"), memory_bytes=2000)))
    assert silent(says(resources, held("before")))
    assert silent(says(resources, held("after")))


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"sockets": 4}, "1 more sockets"),
        ({"tasks": 4}, "2 more tasks"),
        ({"memory_bytes": 10**9}, "999999000 more bytes of memory"),
        ({"task_errors": 1}, "1 more task errors that nobody caught"),
    ],
)
def test_what_is_held_longer_is_a_leak(more, words):
    """The witness is before and after."""
    assert wrong(says(resources, held("before"), replace(held("after"), **more))) == (
        "leak",
        f"the client holds {words} than before",
        ["resources", "resources"],
    )


def test_who_holds_the_lease_writes():
    """Under the newest token; without tokens nothing is judged."""
    assert holds(says(fenced, Lease(token=1), committed(1, token=1), Lease(token=2), applied(1, token=2)))
    assert silent(says(fenced, committed(1, token=1)))
    assert silent(says(fenced, committed(1, token=1), Lease(token=2), committed(2)))


def test_a_write_under_an_old_token_is_stale():
    """A paused process woke, and nobody stopped it; an older lease that is told late changes nothing."""
    ruling = says(fenced, Lease(token=2), Lease(token=1), committed(1, token=1))
    assert wrong(ruling) == (
        "stale write",
        "e1.1 was committed under token 1, after 2 was given out",
        ["lease", "committed"],
    )
    assert holds(says(fenced, Lease(token=2), Lease(token=1), committed(1, token=2)))


@pytest.mark.parametrize("reason", ["commit_failed", "CommitFailed", "lease_lost"])
def test_a_store_error_has_a_cause(reason):
    """The store failed, or another process took it over."""
    assert holds(says(caused_store_error, Store(did="failed"), error(reason)))
    assert holds(says(caused_store_error, Lease(token=1), Lease(token=2), error(reason)))


@pytest.mark.parametrize("nothing", [[], [Lease(token=1)], [Store(did="recovered")]])
def test_a_store_error_without_a_cause_is_false(nothing):
    """One lease is no takeover; what fails later is no cause."""
    assert wrong(says(caused_store_error, nothing, error("JournalDamaged"), Store(did="failed"))) == (
        "false error",
        "the client blamed its store (JournalDamaged), and none had failed",
        ["surfaced"],
    )


def test_other_errors_blame_no_store():
    """Nor do gaps, nor other clients."""
    assert silent(says(caused_store_error, error(), gap(reason="commit_failed"), error("commit_failed", who="other")))
    assert again(1)[0].redelivered
