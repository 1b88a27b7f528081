"""Answers in the server's place: the request does not reach it. What they say is in the files of their names."""

from reattach_chaos.gate.faults.base import Blow
from reattach_chaos.gate.framing import Head


async def answer(blow: Blow, status: str, body: bytes, **headers: str) -> None:
    """Send an answer to the client; the connection stays for its next request.

    Args:
        blow: The fault.
        status: Number and reason.
        body: All of it.
        **headers: By name, with underscores for dashes.
    """
    link = blow.link
    named = [(name.replace("_", "-"), value) for name, value in headers.items()]
    named.append(("Content-Length", str(len(body))))
    head = Head(f"HTTP/1.1 {status}", tuple((name.lower(), value) for name, value in named))
    blow.tell()
    link.tap.head(blow.exchange, head)
    link.tap.body(blow.exchange, head, body)
    lines = [head.start_line, *(f"{name}: {value}" for name, value in named), "", ""]
    await link.send_down("\r\n".join(lines).encode() + body)
