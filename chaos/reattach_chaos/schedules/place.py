"""`Place` and `Position`: where a fault comes, by meaning.

A place is a word, such as "after-event"; a position is a place with the event (or the byte) that it concerns. On the stream,
places lie in the bytes of one event; the client's places are instants of its own, the server's are steps of its writing.
"""

from dataclasses import dataclass
from enum import StrEnum


class Place(StrEnum):
    """Where a fault comes."""

    CONNECTING = "connecting"
    IN_REQUEST_HEAD = "in-request-head"
    IN_REQUEST_BODY = "in-request-body"
    AFTER_REQUEST = "after-request"
    IN_HEAD = "in-head"
    AFTER_HEAD = "after-head"
    IN_CHUNK_SIZE = "in-chunk-size"
    IN_FIELD_NAME = "in-field-name"
    IN_ID_LINE = "in-id-line"
    IN_EVENT_LINE = "in-event-line"
    IN_DATA_LINE = "in-data-line"
    AFTER_ID_LINE = "after-id-line"
    IN_CHARACTER = "in-character"
    IN_LINE_END = "in-line-end"
    BEFORE_BLANK_LINE = "before-blank-line"
    AFTER_EVENT = "after-event"
    IN_COMMENT = "in-comment"
    AFTER_COMMENT = "after-comment"
    BEFORE_LIVE = "before-live"
    IN_REPLAY = "in-replay"
    AFTER_TERMINAL = "after-terminal"
    AFTER_TERMINATOR = "after-terminator"
    IDLE = "idle"
    IN_BACKOFF = "in-backoff"
    OFFSET = "offset"
    RECEIVED = "received"
    COMMITTED = "committed"
    DELIVERED = "delivered"
    APPLIED = "applied"
    ACKNOWLEDGED = "acknowledged"
    APPENDED = "appended"
    PUBLISHED = "published"
    EXECUTED = "executed"
    RECORDED = "recorded"

    @property
    def code(self) -> str:
        """Its number in the chaos page: P1 to P19, C1 to C4; "S" for the server's steps, "B" for a byte, "C" for an ack."""
        return CODES[self]

    @property
    def of_event(self) -> bool:
        """Whether it needs the number of an event."""
        return self in OF_EVENT

    @property
    def of_client(self) -> bool:
        """Whether it is an instant of the client's own."""
        return self.code.startswith("C")

    @property
    def of_server(self) -> bool:
        """Whether it is a step of the server's writing."""
        return self.code == "S"


CODES = {
    Place.CONNECTING: "P1",
    Place.IN_REQUEST_HEAD: "P2",
    Place.IN_REQUEST_BODY: "P2",
    Place.AFTER_REQUEST: "P3",
    Place.IN_HEAD: "P4",
    Place.AFTER_HEAD: "P5",
    Place.IN_CHUNK_SIZE: "P6",
    Place.IN_FIELD_NAME: "P7",
    Place.IN_ID_LINE: "P7",
    Place.IN_EVENT_LINE: "P7",
    Place.IN_DATA_LINE: "P7",
    Place.AFTER_ID_LINE: "P8",
    Place.IN_CHARACTER: "P9",
    Place.IN_LINE_END: "P10",
    Place.BEFORE_BLANK_LINE: "P11",
    Place.AFTER_EVENT: "P12",
    Place.IN_COMMENT: "P13",
    Place.AFTER_COMMENT: "P13",
    Place.BEFORE_LIVE: "P14",
    Place.IN_REPLAY: "P15",
    Place.AFTER_TERMINAL: "P16",
    Place.AFTER_TERMINATOR: "P17",
    Place.IDLE: "P18",
    Place.IN_BACKOFF: "P19",
    Place.OFFSET: "B",
    Place.RECEIVED: "C1",
    Place.COMMITTED: "C2",
    Place.DELIVERED: "C3",
    Place.APPLIED: "C4",
    Place.ACKNOWLEDGED: "C",
    Place.APPENDED: "S",
    Place.PUBLISHED: "S",
    Place.EXECUTED: "S",
    Place.RECORDED: "S",
}

IN_EVENT = (
    Place.IN_CHUNK_SIZE,
    Place.IN_FIELD_NAME,
    Place.IN_ID_LINE,
    Place.IN_EVENT_LINE,
    Place.IN_DATA_LINE,
    Place.AFTER_ID_LINE,
    Place.IN_CHARACTER,
    Place.IN_LINE_END,
    Place.BEFORE_BLANK_LINE,
)
"""Places inside an event: it has not come whole."""

ON_REQUEST = (
    Place.CONNECTING,
    Place.IN_REQUEST_HEAD,
    Place.IN_REQUEST_BODY,
    Place.AFTER_REQUEST,
    Place.IN_HEAD,
    Place.AFTER_HEAD,
)
"""Places that every request has."""

UPSTREAM_PLACES = (Place.IN_REQUEST_HEAD, Place.IN_REQUEST_BODY)
"""Places in the client's own bytes."""

OF_CLIENT = (Place.RECEIVED, Place.COMMITTED, Place.DELIVERED, Place.APPLIED, Place.ACKNOWLEDGED)
OF_SERVER = (Place.APPENDED, Place.PUBLISHED, Place.EXECUTED, Place.RECORDED)
OF_EVENT = frozenset({*IN_EVENT, Place.AFTER_EVENT, Place.IN_REPLAY, Place.IDLE, *OF_CLIENT, *OF_SERVER})


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """A place, and which event, run or byte.

    Attributes:
        place: The word.
        event: The event's number in its run, from 1. A connection on which that event does not come is met at the first later one.
        run: The run's number in the case's session, from 1.
        offset: With "offset": so many bytes of the response have passed.
        width: With "in-character": that of the character, in bytes.
    """

    place: Place
    event: int | None = None
    run: int = 1
    offset: int | None = None
    width: int | None = None

    def __str__(self) -> str:
        """Return it as a readable id has it: after-event-7, run-2-before-blank-line-3, byte-118."""
        words = str(self.place)
        if self.offset is not None:
            words = f"at-byte-{self.offset}"
        elif self.width is not None:
            words = f"in-{self.width}-byte-character"
        if self.event is not None:
            words += f"-{self.event}" if words.endswith("event") else f"-of-event-{self.event}"
        return words if self.run == 1 else f"{words}-of-run-{self.run}"
