"""429 or 503, with or without Retry-After (whole seconds, rounded up, as HTTP has it)."""

import json
import math

from reattach_chaos.gate.faults.answering import answer
from reattach_chaos.gate.faults.base import Blow
from reattach_chaos.schedules.settings import settings_of

REASONS = {429: "Too Many Requests", 503: "Service Unavailable"}


async def strike(blow: Blow) -> None:
    """Answer that the server is busy."""
    status = int(blow.setting("status"))
    body = json.dumps({"type": "about:blank", "status": status, "code": "overloaded"}).encode()
    headers = {"Content_Type": "application/problem+json"}
    if "retry_after_ms" in settings_of(blow.planned):
        headers["Retry_After"] = str(math.ceil(blow.setting("retry_after_ms") / 1000))
    await answer(blow, f"{status} {REASONS.get(status, 'Busy')}", body, **headers)
