"""What a request may carry: headers judged before anything leaves, since a value that cannot be sent fails at every retry.

A server chooses ids, and an id may become a `Last-Event-ID`. Values are sent as UTF-8; what the wire would alter or another
server choke on is refused (nodejs/undici#5746, encode/httpx#3767). Nothing here knows which header means what.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from reattach.transports.base import WireRefused

LONGEST_VALUE = 8 * 1024  # bytes; common servers refuse a whole head above 8 to 16 KiB

_NAME = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # RFC 9110, 5.6.2: token
_CONTROL = re.compile(rb"[\x00-\x1f\x7f]")


def outgoing(headers: Mapping[str, str | bytes]) -> dict[bytes, bytes]:
    """Return the headers as bytes, names in lower case.

    Raises:
        WireRefused: A name is no token, or a value has a control character, a space at an end, or more than 8 KiB.
    """
    sent: dict[bytes, bytes] = {}
    for name, value in headers.items():
        try:
            raw_name = name.encode("ascii").lower()
            raw = value.encode() if isinstance(value, str) else bytes(value)
        except UnicodeEncodeError as exc:
            raise WireRefused(f"header {name!r}: cannot be encoded") from exc
        if not _NAME.fullmatch(raw_name):
            raise WireRefused(f"header {name!r}: not a header name")
        if len(raw) > LONGEST_VALUE:
            raise WireRefused(f"header {name!r}: {len(raw)} bytes, more than {LONGEST_VALUE}")
        if _CONTROL.search(raw):
            raise WireRefused(f"header {name!r}: has a control character")
        if raw != raw.strip(b" "):
            raise WireRefused(f"header {name!r}: begins or ends with a space")
        sent[raw_name] = raw
    return sent
