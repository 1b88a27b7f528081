import pytest

from reattach_chaos.history import (
    Applied,
    Committed,
    Delivered,
    Finished,
    Lease,
    Said,
    Surfaced,
    bytes_sha256,
    content_sha256,
    record_of,
)

FRAME = {"id": "evt_1", "sequence": 1, "type": "message.delta", "data": {"text": "é"}}


@pytest.mark.parametrize(
    ("line", "record"),
    [
        ({"kind": "rendered", "id": "e1.1"}, Delivered(id="e1.1")),
        ({"kind": "rendered", "id": "e1.1", "redelivered": True, "more": 1}, Delivered(id="e1.1", redelivered=True)),
        ({"kind": "committed", "id": "e1.1", "token": 3}, Committed(id="e1.1", token=3)),
        ({"kind": "applied", "id": "e1.1", "token": "x"}, Applied(id="e1.1")),
        ({"kind": "lease", "token": 2}, Lease(token=2)),
        ({"kind": "gap"}, Surfaced(what="gap")),
        (
            {"kind": "gap", "reason": "expired", "after": "e1.1", "until": "e1.5", "missing": 4},
            Surfaced(what="gap", reason="expired", after="e1.1", until="e1.5", missing=4),
        ),
        ({"kind": "error", "message": "no way"}, Surfaced(what="error", reason="no way")),
        ({"kind": "error", "code": "not_found", "message": "no"}, Surfaced(what="error", reason="not_found")),
        ({"kind": "error"}, Surfaced(what="error")),
        ({"kind": "finished", "status": "paused"}, Finished(status="paused")),
        (
            {"kind": "finished", "status": "failed", "evidence": "status"},
            Finished(status="failed", evidence="status"),
        ),
        ({"kind": "finished", "status": "failed", "evidence": 7}, Finished(status="failed")),
        ({"kind": "rendered"}, Said(text="{'kind': 'rendered'}")),
        ({"kind": "received", "id": "e1.1"}, Said(text="{'kind': 'received', 'id': 'e1.1'}")),
        ("hello", Said(text="hello")),
        (["x" * 2000], Said(text=str(["x" * 2000])[:1000])),
    ],
)
def test_a_line_says_what_the_contract_says(line, record):
    """Rendered, gap, error, finished; what is none of these is kept and not judged."""
    assert record_of(line) == record


def test_the_frame_and_its_data_are_compared_alike():
    """A client may tell either: the frame's JSON, or its member `data`."""
    whole = record_of({"kind": "rendered", "id": "e1.1", "data": FRAME})
    part = record_of({"kind": "rendered", "id": "e1.1", "data": FRAME["data"]})
    assert whole == part
    assert whole.sha256 == content_sha256({"text": "é"})
    assert record_of({"kind": "rendered", "id": "e1.1", "data": None}).sha256 == content_sha256(None)


def test_a_line_is_of_its_client_and_its_life():
    """Whoever reads several clients says which."""
    record = record_of({"kind": "rendered", "id": "a"}, who="other", life=2, run="r1")
    assert (record.who, record.life, record.run) == ("other", 2, "r1")


def test_bytes_are_compared_as_they_are():
    """White space counts on the wire, and not in the content."""
    assert bytes_sha256(b'{"a": 1}') != bytes_sha256(b'{"a":1}')
    assert content_sha256({"a": 1}) == bytes_sha256(b'{"a":1}')
