"""The member `responses` of a continuation: the form of each answer, before anything is known of what was asked.

Strict: an answer is given once and for ever, so what is not one is refused rather than read generously. Pure.

Where the rules come from: PROTOCOL, section 5. Checked by tests/mockserver/test_continue.py.
"""

from typing import Any

from reattach_mockserver.engine.continuation import Response
from reattach_mockserver.faces.problem import invalid_request


def parse_responses(given: Any) -> tuple[Response, ...]:
    """Return the responses of a create.

    Raises:
        Refusal: They are not a list of responses, or two are to one action.
    """
    if not isinstance(given, list):
        raise invalid_request("a continuation has a list of responses")
    for response in given:
        _check(response)
    ids = [response["action_id"] for response in given]
    if len(set(ids)) < len(ids):
        raise invalid_request("two responses are to the same action")
    return tuple(given)


def _check(response: Any) -> None:
    match response:
        case {"action_id": str(), "decision": "approve" | "reject", "reason": str(), **rest} if not rest:
            return
        case {"action_id": str(), "decision": "approve" | "reject", **rest} if not rest:
            return
        case {"action_id": str(), "result": _, **rest} if not rest:
            return
        case {"action_id": str(), "error": _, **rest} if not rest:
            return
        case _:
            raise invalid_request(
                "a response is an object of action_id and decision ('approve' or 'reject', perhaps with a reason), "
                "or of action_id and result, or of action_id and error"
            )
