"""The history of a case: records of what was seen, on one clock, as values and as JSON lines.

    from reattach_chaos.history import Case, Delivered, Recorder, read_history

Start with `record.py`; the kinds are in `case.py` (plan and faults), `wire.py` (the gate), `client.py` (the client), `truth.py`
(the server and the stores). Never here: a conclusion. Those are the laws', in `reattach_chaos.checkers`.
"""

from reattach_chaos.history.case import Case, CutFired, CutMissed, CutPlanned, Resources, Server, Store
from reattach_chaos.history.client import (
    Acked,
    Applied,
    Backoff,
    Born,
    Committed,
    Delivered,
    Died,
    Discarded,
    Exited,
    Finished,
    Said,
    Surfaced,
)
from reattach_chaos.history.content import bytes_sha256, content_sha256
from reattach_chaos.history.files import HistoryError, from_json, parse_history, read_history, to_json, write_history
from reattach_chaos.history.foreign import is_number, is_plain, json_of, printable
from reattach_chaos.history.history import History
from reattach_chaos.history.lines import record_of
from reattach_chaos.history.record import Other, Record
from reattach_chaos.history.recorder import Recorder
from reattach_chaos.history.truth import (
    Answer,
    Cancel,
    Counts,
    Create,
    Created,
    Effect,
    Journal,
    Lease,
    Logged,
    Snapshot,
    Status,
    Terminal,
)
from reattach_chaos.history.wire import (
    Close,
    Connect,
    Head,
    Heartbeat,
    Received,
    Request,
    Resume,
    ResumeEnd,
    ResumeOk,
    ResumeRejected,
    Route,
)

__all__ = [
    # the whole
    "History", "Recorder", "HistoryError", "read_history", "write_history", "parse_history", "to_json", "from_json",
    "content_sha256", "bytes_sha256", "record_of",
    # what others wrote
    "json_of", "is_plain", "is_number", "printable",
    # records
    "Record", "Other", "Case", "CutPlanned", "CutFired", "CutMissed", "Server", "Store", "Resources",
    "Connect", "Request", "Head", "Resume", "ResumeEnd", "ResumeOk", "ResumeRejected", "Received", "Heartbeat", "Close", "Route",
    "Born", "Died", "Committed", "Delivered", "Applied", "Acked", "Discarded", "Backoff", "Surfaced", "Finished", "Exited", "Said",
    "Logged", "Status", "Snapshot", "Create", "Created", "Cancel", "Answer", "Effect", "Counts", "Terminal", "Journal", "Lease",
]  # fmt: skip
