"""200 and a web page: a login page or a proxy has answered."""

from reattach_chaos.gate.faults.answering import answer
from reattach_chaos.gate.faults.base import Blow

PAGE = b"<!doctype html><html><head><title>Sign in</title></head><body><h1>Sign in</h1></body></html>\n"


async def strike(blow: Blow) -> None:
    """Answer with a page."""
    await answer(blow, "200 OK", PAGE, Content_Type="text/html; charset=utf-8")
